// SPDX-License-Identifier: Apache-2.0
// Shows a program as changes to an earlier one, so that the question begins with text that is in
// the provider's cache.
//
// Contract: the text has the format of answers (agent/reply.h): short functions as a whole,
// SEARCH/REPLACE for parts of long ones, JSON pointers for the plan. changes_text() returns it only
// if it is much shorter than the program and applying it to `base` gives `program` byte for byte.
// Otherwise the prompt must show the whole program.
//
// Example: if (auto text = changes_text(base, program)) say(*text); else say(whole(program));
#pragma once

#include <optional>
#include <string>

#include "core/program.h"

namespace cutegen::agent {

// Whether a program is long enough to be shown as changes, or to be the base of changes.
bool is_long(const KernelProgram& program);
std::optional<std::string> changes_text(const KernelProgram& base, const KernelProgram& program);

}  // namespace cutegen::agent
