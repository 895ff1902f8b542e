// SPDX-License-Identifier: Apache-2.0
// EventType: the type of each event in a run's journal.
//
// Contract: docs/journal.md describes every type and its data. The names must not change, because
// journals store them as text. For an unknown name, parse_event_type() returns nullopt.
//
// Example: to_string(EventType::tool_called) == "tool_called";
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "base/names.h"

namespace cutegen {

enum class EventType {
  opened,
  task,
  baselines,
  asked,
  call_started,
  call_ended,
  call_refused,
  tool_called,
  drafted,
  answered,
  evaluation_started,
  evaluated,
  accepted,
  rejected,
  compared,
  interrupted,
  resumed,
  finished,
  profiled,
  certifying,
  certified,
  imported,
};
inline constexpr size_t kEventTypes = 22;

// The strategy's decision about a candidate; `open` if there is no decision yet.
enum class Decision { open, accepted, rejected };
Names<Decision> enum_names(Decision);

const char* to_string(EventType type);
std::optional<EventType> parse_event_type(std::string_view name);

}  // namespace cutegen
