// SPDX-License-Identifier: Apache-2.0
// The proposer `builtin`: cutegen's recipes.
//
// Contract: proposes the recipe's safe choice first, then changes one parameter at a time. Skips
// programs that the run has already judged. `arch` is the GPU's architecture; empty: programs for
// any GPU. `chosen`: the algebraic rewrites that may change the graph first.
//
// Example: auto p = make_builtin_proposer(task, "sm_90a", recipes::all_rewrites());
#pragma once

#include "engine/propose/proposer.h"
#include "recipes/algebra/rewrites.h"

namespace cutegen::engine {

std::unique_ptr<Proposer> make_builtin_proposer(const Task& task, const std::string& arch,
                                                const recipes::RewriteRules& chosen);

}  // namespace cutegen::engine
