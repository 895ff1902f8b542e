// SPDX-License-Identifier: Apache-2.0
#include "base/result.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace cutegen {

std::string Error::text() const {
  std::string out = where.empty() ? "" : where + ": ";
  out += kind == ErrorKind::internal ? "internal error: " : "error: ";
  out += message;
  if (!remedy.empty()) out += " (" + remedy + ")";
  return out;
}

tl::unexpected<Error> user_error(std::string message, std::string where, std::string remedy) {
  return fail({.kind = ErrorKind::user,
               .message = std::move(message),
               .where = std::move(where),
               .remedy = std::move(remedy)});
}

tl::unexpected<Error> world_error(std::string message, std::string remedy) {
  return fail({.kind = ErrorKind::world,
               .message = std::move(message),
               .where = {},
               .remedy = std::move(remedy)});
}

tl::unexpected<Error> unsupported_error(std::string message, std::string where) {
  return fail({.kind = ErrorKind::unsupported,
               .message = std::move(message),
               .where = std::move(where),
               .remedy = {}});
}

tl::unexpected<Error> errno_error(const std::string& what) {
  return world_error(what + ": " + std::strerror(errno));
}

const char* to_string(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::user:
      return "user";
    case ErrorKind::world:
      return "world";
    case ErrorKind::timeout:
      return "timeout";
    case ErrorKind::cancelled:
      return "cancelled";
    case ErrorKind::unsupported:
      return "unsupported";
    case ErrorKind::internal:
      return "internal";
  }
  return "internal";
}

int exit_code(const Error& error) {
  switch (error.kind) {
    case ErrorKind::user:
      return kExitUser;
    case ErrorKind::world:
    case ErrorKind::timeout:
      return kExitEnvironment;
    case ErrorKind::cancelled:
      return kExitInterrupted;
    case ErrorKind::unsupported:
      return kExitUnsupported;
    case ErrorKind::internal:
      return kExitInternal;
  }
  return kExitInternal;
}

void assertion_failed(const char* expression, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: internal error: assertion '%s' failed\n", file, line, expression);
  std::abort();
}

}  // namespace cutegen
