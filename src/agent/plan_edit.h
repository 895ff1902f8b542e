// SPDX-License-Identifier: Apache-2.0
// JSON-pointer edits of plan.json, and its text as models see it.
//
// Contract: edits are made one after the other. `set` replaces a value or adds a field to an object
// that is there, `replace` and `remove` need the value, `add` inserts (into arrays before the
// index, "-" at the end). A pointer that leads nowhere is a Reask that lists what is there.
//
// Example: auto r = edit_plan(json, {"set", "/steps/0/block/0", 256}, 1);
#pragma once

#include "agent/reply.h"

namespace cutegen {

// `number`: of the edit, for messages.
[[nodiscard]] tl::expected<void, Reask> edit_plan(Json& plan, const PlanEdit& edit, int number);
// One line for each field; one for each element of steps, prepare and scratch.
[[nodiscard]] std::string plan_text(const Plan& plan);

}  // namespace cutegen
