// SPDX-License-Identifier: Apache-2.0
// Faults: classifies the error that a model server returned, and says how cutegen must react.
//
// Contract: read_fault() accepts status, headers and error body from any API. The error body may be
// JSON or not, and the error may come with status 200 or in the middle of a stream. The function
// read_fault() shortens and sanitises the server's text, but the caller must remove API keys from
// the text.
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
  retry,      // overload, rate limit or another temporary failure
  parameter,  // the server refuses `parameter`; repeat the request without it
  // The question violates the provider's rules. The caller of read_fault() then returns a reply
  // with Stop::refusal, not an error.
  refusal,
  fatal,  // wrong key, no quota, unknown model, prompt too long, ...
};

struct Fault {
  FaultKind kind = FaultKind::fatal;
  Error error;
  // The parameter that the server refuses; Shape::refused lists the possible names.
  std::string parameter = {};
  std::optional<std::chrono::milliseconds> wait = {};  // the wait that the server demands
};

struct Refused {
  int status = 0;
  Headers headers = {};
  std::string body = {};
  Json error = {};  // an error from a stream; if null, read_fault reads the error from `body`
};
Fault read_fault(const Refused& refused, const std::string& provider);

// Returns the wait that the server demands, from the header retry-after-ms or else retry-after
// (seconds, which may have a fraction, or an HTTP date).
std::optional<std::chrono::milliseconds> asked_wait(const Headers& headers);
// Returns the field `error` of an error body ({"error": ...}, {"type": "error", ...}), or null if
// the body is not an error.
Json error_of_body(const Json& body);

}  // namespace cutegen::llm
