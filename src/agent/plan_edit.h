// SPDX-License-Identifier: Apache-2.0
// Applies edits that name a field of plan.json by JSON pointer, and formats a plan for prompts.
//
// Contract: applies one edit at a time. `set` replaces a value or adds a field to an existing
// object. `replace` and `remove` need an existing value. `add` adds a field to an object, or
// inserts an element into an array before the index ("-": at the end). If a pointer names nothing,
// the Reask lists what exists there.
//
// Example: auto r = edit_plan(json, {.path = "/steps/0/block/0", .value = 256}, 1);
#pragma once

#include "agent/reply.h"

namespace cutegen::agent {

// `number`: the edit's number, for messages.
tl::expected<void, Reask> edit_plan(Json& plan, const PlanEdit& edit, int number);
// One line per field, and one per element of steps, prepare and scratch.
std::string plan_text(const Plan& plan);

}  // namespace cutegen::agent
