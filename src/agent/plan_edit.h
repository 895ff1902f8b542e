// SPDX-License-Identifier: Apache-2.0
// Applies edits to plan.json, and formats plans for prompts. An edit names a field of the plan by a
// JSON pointer.
//
// Contract: edit_plan() applies one edit. `set` replaces a value or adds a field to an existing
// object. `replace` and `remove` need an existing value. `add` adds a field to an object, or
// inserts an array element before the given index ("-" means the end). If a pointer does not match
// the plan, the returned Reask (a message to the model) lists the fields or elements that exist at
// this place in the plan.
//
// Example: auto r = edit_plan(json, {.path = "/steps/0/block/0", .value = 256}, 1);
#pragma once

#include "agent/reply.h"

namespace cutegen::agent {

// `number`: the number of the edit in the reply, for messages.
tl::expected<void, Reask> edit_plan(Json& plan, const PlanEdit& edit, int number);
// Returns the plan as JSON, with one line for each field and for each element of the fields
// `steps`, `prepare` and `scratch`.
std::string plan_text(const Plan& plan);

}  // namespace cutegen::agent
