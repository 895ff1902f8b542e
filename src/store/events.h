// SPDX-License-Identifier: Apache-2.0
// The journal's event types, their current versions, and how to read older versions.
//
// Contract: events.cpp lists every type with its fields. Events are written in the current version
// of their type. Readers upcast older versions step by step. A newer version or an unknown type is
// a user error that says to use the newer program.
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

// The current version of events of `type`.
int event_version(EventType type);
// The type of a stored event. An unknown name is a user error, because a newer program wrote it.
Result<EventType> event_type_of(const std::string& name, int64_t seq);

// (type, version) -> the step that converts its data to version + 1.
using Upcasts = std::map<std::pair<EventType, int>, std::function<Json(Json)>>;
const Upcasts& journal_upcasts();
Result<Event> upcast(Event event, const Upcasts& steps);

}  // namespace cutegen::store
