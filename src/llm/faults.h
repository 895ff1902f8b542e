// SPDX-License-Identifier: Apache-2.0
// Faults: classifies a server's refusal and says how to react.
//
// Contract: read_fault takes the status, headers and error body of any API (JSON or not, with
// status 200 or in the middle of a stream). It caps and sanitises the server's text. The caller
// must remove keys.
//
// Example:
//   Fault f = read_fault({429, headers, body}); if (f.kind == FaultKind::retry) wait(f.wait);
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "llm/http.h"

#include "base/json.h"

namespace cutegen::llm {

enum class FaultKind {
  retry,      // overload, rate limit, a temporary failure
  parameter,  // the server refuses `parameter`; ask again without it
  // The question violates the provider's rules. This becomes a reply, not an error.
  refusal,
  fatal,  // key, quota, unknown model, too long a prompt, ...
};

struct Fault {
  FaultKind kind = FaultKind::fatal;
  Error error;
  // The parameter that the model refuses: see Shape::refused.
  std::string parameter = {};
  std::optional<std::chrono::milliseconds> wait = {};  // the wait that the server asks for
};

struct Refused {
  int status = 0;
  Headers headers = {};
  std::string body = {};
  Json error = {};  // the error of a stream; null: read it from the body
};
Fault read_fault(const Refused& refused, const std::string& provider);

// Reads retry-after-ms, or else retry-after: seconds, with a fraction, or an HTTP date.
std::optional<std::chrono::milliseconds> asked_wait(const Headers& headers);
// The `error` of an error body ({"error": ...}, {"type": "error", ...}); null if the body is an
// answer.
Json error_of_body(const Json& body);

}  // namespace cutegen::llm
