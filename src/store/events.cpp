// SPDX-License-Identifier: Apache-2.0
#include "store/events.h"

namespace cutegen::store {

std::optional<int> event_version(const std::string& type) {
  static const std::map<std::string, int> versions{
      {"opened", 1},     {"task", 1},         {"asked", 1},       {"answered", 1},
      {"accepted", 1},   {"rejected", 1},     {"resumed", 1},     {"evaluation_started", 1},
      {"finished", 1},   {"evaluated", 1},    {"interrupted", 1}, {"call_started", 1},
      {"call_ended", 1}, {"call_refused", 1}, {"drafted", 1},     {"tool_called", 1},
      {"baselines", 1},  {"compared", 1},     {"profiled", 1},    {"certifying", 1},
      {"certified", 1},  {"imported", 1}};
  auto it = versions.find(type);
  if (it == versions.end()) return std::nullopt;
  return it->second;
}

const Upcasts& journal_upcasts() {
  static const Upcasts none;  // every type is still at version 1
  return none;
}

Result<Event> upcast(Event event, const Upcasts& steps) {
  for (auto it = steps.find({event.type, event.version}); it != steps.end();
       it = steps.find({event.type, event.version})) {
    event.data = it->second(std::move(event.data));
    ++event.version;
  }
  std::string place = "event " + std::to_string(event.seq);
  auto known = event_version(event.type);
  if (!known)
    return user_error("the journal has an event of unknown type '" + event.type + "'", place,
                      "read it with the version of cutegen that wrote it");
  if (event.version != *known)
    return user_error("the journal has a '" + event.type + "' event of version " +
                          std::to_string(event.version) + "; this program reads version " +
                          std::to_string(*known),
                      place, "read it with the version of cutegen that wrote it");
  return event;
}

}  // namespace cutegen::store
