// SPDX-License-Identifier: Apache-2.0
// Writes a program as changes to an earlier program, the base. A prompt that begins with the base's
// full text and ends with changes can use the provider's prompt cache.
//
// Contract: the changes have the format of answers (agent/reply.h): whole functions if they are
// short, SEARCH/REPLACE for parts of long functions, JSON pointers for the plan. The function
// changes_text() returns nothing unless the changes are much shorter than the program and reproduce
// `program` byte for byte when applied to `base`. If changes_text() returns nothing, the prompt
// must show the whole program.
//
// Example: if (auto text = changes_text(base, program)) say(*text); else say(whole(program));
#pragma once

#include <optional>
#include <string>

#include "core/program.h"

namespace cutegen::agent {

// Returns whether a program is long enough to be shown as changes, or to be the base of changes.
bool is_long(const KernelProgram& program);
std::optional<std::string> changes_text(const KernelProgram& base, const KernelProgram& program);

}  // namespace cutegen::agent
