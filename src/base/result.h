// SPDX-License-Identifier: Apache-2.0
// Result<T> holds a value or an Error. A function returns a Result if it can fail without a bug in
// cutegen.
//
// Contract: Error::kind says who is at fault:
// - `user`: the input is wrong; `message` names the fault, `where` its place, and `remedy` the
//   correction.
// - `world`: the environment failed (no GPU, a dead child process, a full disk), so the caller may
//   retry.
// - `timeout`, `cancelled`: a Context expired, or the caller stopped it.
// Use CG_ASSERT for bugs in cutegen itself.
//
// Example:
//   Result<int> parse(std::string_view s);
//   Result<void> f() { CG_TRY(int n, parse("7")); CG_CHECK(g(n)); return {}; }
#pragma once

#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace cutegen {

enum class ErrorKind { user, world, timeout, cancelled, unsupported, internal };

struct Error {
  ErrorKind kind = ErrorKind::internal;
  std::string message;      // one line that describes the fault
  std::string where = {};   // file:line:col or a JSON pointer; may be empty
  std::string remedy = {};  // what the user can do; may be empty

  // Returns "where: error: message (remedy)", the form that cutegen prints.
  std::string text() const;
};

// A caller that ignores a Result gets a compiler warning.
template <class T>
class [[nodiscard]] Result : public tl::expected<T, Error> {
 public:
  using tl::expected<T, Error>::expected;
};

inline tl::unexpected<Error> fail(Error e) {
  return tl::unexpected(std::move(e));
}
tl::unexpected<Error> user_error(std::string message, std::string where = {},
                                 std::string remedy = {});
tl::unexpected<Error> world_error(std::string message, std::string remedy = {});
tl::unexpected<Error> unsupported_error(std::string message, std::string where = {});
// Returns a world_error whose message ends with strerror(errno).
tl::unexpected<Error> errno_error(const std::string& what);

const char* to_string(ErrorKind kind);

// The exit codes that all programs share.
enum ExitCode : int {
  kExitOk = 0,
  kExitInternal = 1,
  kExitUser = 2,
  kExitFailed = 3,
  kExitRejected = 4,
  kExitUnsupported = 5,
  kExitEnvironment = 6,
  kExitBelow = 7,
  kExitInterrupted = 130,
};
int exit_code(const Error& error);

[[noreturn]] void assertion_failed(const char* expression, const char* file, int line);

}  // namespace cutegen

#define CG_CONCAT_(a, b) a##b
#define CG_CONCAT(a, b) CG_CONCAT_(a, b)
#define CG_TRY_(tmp, decl, expr)                            \
  auto tmp = (expr);                                        \
  if (!tmp) return ::cutegen::fail(std::move(tmp).error()); \
  decl = std::move(*tmp)
// CG_TRY(auto x, f()) sets x to the value of f(). If f() fails, the macro returns the error from
// the current function.
#define CG_TRY(decl, expr) CG_TRY_(CG_CONCAT(cg_try_, __LINE__), decl, expr)
// CG_CHECK(f()) returns from the current function with the error of f() if f() fails. If f()
// succeeds, CG_CHECK(f()) ignores the value.
#define CG_CHECK(expr)                                                    \
  do {                                                                    \
    auto cg_check_ = (expr);                                              \
    if (!cg_check_) return ::cutegen::fail(std::move(cg_check_).error()); \
  } while (0)
#define CG_ASSERT(cond) ((cond) ? void(0) : ::cutegen::assertion_failed(#cond, __FILE__, __LINE__))
