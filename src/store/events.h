// SPDX-License-Identifier: Apache-2.0
// Lists the event types of the journal with their current versions, and converts events of older
// versions.
//
// Contract: events.cpp lists every event type with its fields. The store writes each event in the
// current version of its type. The function upcast() converts an event of an older version to the
// current version, one version at a time. For an event of a newer version, it returns a user error
// that advises to use a newer cutegen.
//
// Example: CG_TRY(Event now, upcast(old, journal_upcasts()));
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "core/candidate.h"

namespace cutegen::store {

int event_version(EventType type);
// Returns the type of a stored event, or a user error if the type's name is unknown, because a
// newer cutegen must then have written the event.
Result<EventType> event_type_of(const std::string& name, int64_t seq);

// Maps (type, version) to the function that converts an event's data to version + 1.
using Upcasts = std::map<std::pair<EventType, int>, std::function<Json(Json)>>;
const Upcasts& journal_upcasts();
Result<Event> upcast(Event event, const Upcasts& steps);

}  // namespace cutegen::store
