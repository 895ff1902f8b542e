// SPDX-License-Identifier: Apache-2.0
// Applies the changes of a reply to a kernel program, either all of them or none.
//
// Contract: every anchor must occur exactly once in the program as the model saw it (blanks at line
// ends and indentation may differ). Edits must not overlap. The result must differ from the base,
// have balanced brackets, contain no placeholder such as "rest unchanged", have a plan that parses,
// and pass `check`. Otherwise nothing is applied, and the Reask says what is wrong, where, and how
// to correct it.
//
// Example: auto p = apply_reply(*reply, &incumbent, check); if (!p) ask_again(p.error().text);
#pragma once

#include <functional>

#include "agent/reply.h"
#include "core/program.h"

namespace cutegen::agent {

// Finds faults without a compiler: checks the plan against task and signatures, and the sources
// against the policy.
using ProgramCheck = std::function<std::vector<Error>(const KernelProgram&)>;

// `base`: the program that the reply changes. If null, the reply must hold a whole program.
tl::expected<KernelProgram, Reask> apply_reply(const Reply& reply, const KernelProgram* base,
                                               const ProgramCheck& check);

}  // namespace cutegen::agent
