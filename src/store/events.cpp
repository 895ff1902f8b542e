// SPDX-License-Identifier: Apache-2.0
#include "store/events.h"

namespace cutegen::store {

int event_version(EventType) {
  return 1;  // every type is still at its first version
}

Result<EventType> event_type_of(const std::string& name, int64_t seq) {
  if (auto known = parse_event_type(name)) return *known;
  return user_error("the journal has an event of unknown type '" + name + "'",
                    "event " + std::to_string(seq),
                    "read it with the version of cutegen that wrote it");
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
  const int known = event_version(event.type);
  if (event.version != known)
    return user_error(
        std::string("the journal has a '") + to_string(event.type) + "' event of version " +
            std::to_string(event.version) + "; this program reads version " + std::to_string(known),
        "event " + std::to_string(event.seq), "read it with the version of cutegen that wrote it");
  return event;
}

}  // namespace cutegen::store
