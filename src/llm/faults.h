// SPDX-License-Identifier: Apache-2.0
// Faults: what a server's refusal means, and what to do about it.
//
// Contract: read_fault takes the status, the headers and the error body of any of the APIs (JSON or
// not, in a 200 or in the middle of a stream). Foreign text in it is capped and sanitized; keys are
// the caller's to remove.
//
// Example: Fault f = read_fault({429, headers, body}); if (f.kind == FaultKind::retry)
// wait(f.wait);
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "llm/http.h"

#include "base/json.h"

namespace cutegen::llm {

enum class FaultKind {
  retry,      // overload, rate limit, a passing failure
  parameter,  // the server does not know or take `parameter`; ask again without
  refusal,    // what is asked is against the provider's rules: a reply, no error
  fatal,      // key, quota, unknown model, too long a prompt, ...
};

struct Fault {
  FaultKind kind = FaultKind::fatal;
  Error error;
  std::string parameter = {};                          // a name of Shape::refused
  std::optional<std::chrono::milliseconds> wait = {};  // what the server asks for
};

struct Refused {
  int status = 0;
  Headers headers = {};
  std::string body = {};
  Json error = {};  // of a stream, or null: read from the body
};
[[nodiscard]] Fault read_fault(const Refused& refused, const std::string& provider);

// retry-after-ms, else retry-after: seconds, a fraction of one, or an HTTP date.
[[nodiscard]] std::optional<std::chrono::milliseconds> asked_wait(const Headers& headers);
// The `error` of a body that is no answer ({"error": ...}, {"type": "error", ...}); null if none.
[[nodiscard]] Json error_of_body(const Json& body);

}  // namespace cutegen::llm
