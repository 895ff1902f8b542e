// SPDX-License-Identifier: Apache-2.0
// SseParser: parses server-sent events from bytes that arrive in pieces of any size.
//
// Contract: the parser accepts line ends CR, LF and CRLF, comments, a byte order mark, and events
// with several lines of data. The parser ignores unknown fields and events without data. It returns
// an error if an event is larger than `limit`. SseParser::finish() passes the last event to `sink`
// even if the blank line after the event is missing.
//
// Example: SseParser sse; CG_CHECK(sse.feed(bytes, [&](const SseEvent& e) { return take(e); }));
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace cutegen::llm {

struct SseEvent {
  std::string name;  // the value of the field `event`; often empty
  std::string data;
};

class SseParser {
 public:
  using Sink = std::function<Result<void>(const SseEvent&)>;
  explicit SseParser(size_t limit = size_t{16} << 20) : limit_(limit) {}
  Result<void> feed(std::string_view bytes, const Sink& sink);
  Result<void> finish(const Sink& sink);

 private:
  Result<void> end_line(const Sink& sink);
  void field(std::string_view name, std::string_view value);
  Result<void> dispatch(const Sink& sink);

  size_t limit_;
  std::string line_;
  SseEvent event_;
  bool has_data_ = false, after_cr_ = false, first_line_ = true;
};

}  // namespace cutegen::llm
