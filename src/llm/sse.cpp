// SPDX-License-Identifier: Apache-2.0
#include "llm/sse.h"

namespace cutegen::llm {

Result<void> SseParser::feed(std::string_view bytes, const Sink& sink) {
  while (!bytes.empty()) {
    if (std::exchange(after_cr_, false) && bytes.front() == '\n') {
      bytes.remove_prefix(1);
      continue;
    }
    size_t end = bytes.find_first_of("\r\n");
    std::string_view part = bytes.substr(0, end);
    if (line_.size() + part.size() + event_.data.size() > limit_)
      return world_error("the server sent an event of more than " + std::to_string(limit_) +
                         " bytes");
    line_.append(part);
    if (end == std::string_view::npos) return {};
    after_cr_ = bytes[end] == '\r';
    bytes.remove_prefix(end + 1);
    CG_CHECK(end_line(sink));
  }
  return {};
}

Result<void> SseParser::finish(const Sink& sink) {
  if (!line_.empty()) CG_CHECK(end_line(sink));
  return dispatch(sink);
}

Result<void> SseParser::end_line(const Sink& sink) {
  std::string line = std::exchange(line_, {});
  if (std::exchange(first_line_, false) && line.starts_with("\xEF\xBB\xBF")) line.erase(0, 3);
  if (line.empty()) return dispatch(sink);
  size_t colon = line.find(':');
  if (colon == 0) return {};  // a comment that keeps the connection alive
  std::string_view name = std::string_view(line).substr(0, colon), value;
  if (colon != std::string::npos) value = std::string_view(line).substr(colon + 1);
  if (value.starts_with(' ')) value.remove_prefix(1);
  field(name, value);
  return {};
}

void SseParser::field(std::string_view name, std::string_view value) {
  if (name == "event") event_.name = value;
  if (name != "data") return;
  if (std::exchange(has_data_, true)) event_.data += '\n';
  event_.data += value;
}

Result<void> SseParser::dispatch(const Sink& sink) {
  SseEvent event = std::exchange(event_, {});
  if (!std::exchange(has_data_, false)) return {};
  return sink(event);
}

}  // namespace cutegen::llm
