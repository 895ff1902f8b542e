// SPDX-License-Identifier: Apache-2.0
// The journal's event types, their current versions, and how older versions are read.
//
// Contract: docs/journal.md describes every type. An event is written with the current version of
// its type; an older one is brought up to date on read (upcast), step by step; a newer one, or a
// type nobody knows, is a user error that says to use the newer program.
//
// Example: CG_TRY(Event now, upcast(old, journal_upcasts()));
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "core/candidate.h"

namespace cutegen {

// The version in which events of `type` are written now; empty for an unknown type.
[[nodiscard]] std::optional<int> event_version(const std::string& type);

// (type, version) -> the step that turns its data into the data of version + 1.
using Upcasts = std::map<std::pair<std::string, int>, std::function<Json(Json)>>;
[[nodiscard]] const Upcasts& journal_upcasts();
[[nodiscard]] Result<Event> upcast(Event event, const Upcasts& steps);

}  // namespace cutegen
