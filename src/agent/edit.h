// SPDX-License-Identifier: Apache-2.0
// Applies the changes of a reply to a kernel program, all of them or none.
//
// Contract: every anchor is looked up in the program as the model saw it and must be there exactly
// once (blanks at line ends and indentation may differ); edits must not overlap; the result must
// differ, have its brackets in balance, hold no "rest unchanged" gaps, have a plan that parses, and
// pass `check`. Otherwise nothing is applied and the Reask says what, where and what would do.
//
// Example: auto p = apply_reply(*reply, &incumbent, check); if (!p) ask_again(p.error().text);
#pragma once

#include <functional>

#include "agent/reply.h"
#include "core/program.h"

namespace cutegen {

// Faults that need no compiler: the plan against task and signatures, the policy of sources.
using ProgramCheck = std::function<std::vector<Error>(const KernelProgram&)>;

// `base`: the program that the reply changes; null: there is none and the reply brings all of it.
[[nodiscard]] tl::expected<KernelProgram, Reask> apply_reply(const Reply& reply,
                                                             const KernelProgram* base,
                                                             const ProgramCheck& check);

}  // namespace cutegen
