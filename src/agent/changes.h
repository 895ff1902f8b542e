// SPDX-License-Identifier: Apache-2.0
// A program told as changes to an earlier one, so that a question can stand on a text that the
// provider's cache holds already.
//
// Contract: the text is in the form of answers (agent/reply.h): short functions whole as they are
// now, SEARCH/REPLACE for parts of long ones, JSON pointers for the plan. It is given only if
// applying it to `base` was tried and gave `program`, byte for byte, and if it is short beside the
// program; otherwise the program is to be shown whole.
//
// Example: if (auto text = changes_text(base, program)) say(*text); else say(whole(program));
#pragma once

#include <optional>
#include <string>

#include "core/program.h"

namespace cutegen {

// Whether a program is long enough to be told as changes, or to be what they are told from.
[[nodiscard]] bool is_long(const KernelProgram& program);
[[nodiscard]] std::optional<std::string> changes_text(const KernelProgram& base,
                                                      const KernelProgram& program);

}  // namespace cutegen
