// SPDX-License-Identifier: Apache-2.0
// Applies the changes of a model's reply to a kernel program, either all changes or no change.
//
// Contract: every SEARCH text must occur exactly once in the base program (blanks at line ends and
// indentation may differ). Edits must not overlap. The resulting program must differ from the base,
// have balanced brackets and a plan that parses, contain no placeholder such as "rest unchanged",
// and pass `check`. If a condition does not hold, apply_reply() returns a Reask (a message to the
// model) that names the fault, its place and its remedy.
//
// Example: auto p = apply_reply(*reply, &incumbent, check); if (!p) ask_again(p.error().text);
#pragma once

#include <functional>

#include "agent/reply.h"
#include "core/program.h"

namespace cutegen::agent {

// A ProgramCheck returns the faults of a program that can be found without a compiler. It compares
// the plan with the task and with the kernels' signatures, and checks the sources by the rules for
// candidates.
using ProgramCheck = std::function<std::vector<Error>(const KernelProgram&)>;

// `base`: the program that the reply changes. If `base` is null, the reply must contain a whole
// program.
tl::expected<KernelProgram, Reask> apply_reply(const Reply& reply, const KernelProgram* base,
                                               const ProgramCheck& check);

}  // namespace cutegen::agent
