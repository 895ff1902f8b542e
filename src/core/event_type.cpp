// SPDX-License-Identifier: Apache-2.0
#include "core/event_type.h"

#include <algorithm>

namespace cutegen {
namespace {

// In the order of the enumerators.
constexpr std::array<const char*, kEventTypes> kNames{
    "opened",       "task",       "baselines",          "asked",
    "call_started", "call_ended", "call_refused",       "tool_called",
    "drafted",      "answered",   "evaluation_started", "evaluated",
    "accepted",     "rejected",   "compared",           "interrupted",
    "resumed",      "finished",   "profiled",           "certifying",
    "certified",    "imported"};

}  // namespace

Names<Decision> enum_names(Decision) {
  static constexpr Name<Decision> names[] = {
      {Decision::open, "open"}, {Decision::accepted, "accepted"}, {Decision::rejected, "rejected"}};
  return names;
}

const char* to_string(EventType type) {
  return kNames[size_t(type)];
}

std::optional<EventType> parse_event_type(std::string_view name) {
  auto at = std::ranges::find(kNames, name, [](const char* n) { return std::string_view(n); });
  if (at == kNames.end()) return std::nullopt;
  return EventType(at - kNames.begin());
}

}  // namespace cutegen
