// SPDX-License-Identifier: Apache-2.0
// The proposer `builtin`: proposes programs from cutegen's recipes.
//
// Contract: first proposes the recipe with its safe parameters (RecipeMatch::safe), then changes
// one parameter at a time. Skips programs that the run has already judged. `arch` is the GPU's
// architecture; if it is empty, the programs run on any GPU. `chosen` are the algebraic rewrites
// that may simplify the graph before a recipe is selected.
//
// Example: auto p = make_builtin_proposer(task, "sm_90a", recipes::all_rewrites());
#pragma once

#include "engine/propose/proposer.h"
#include "recipes/algebra/rewrites.h"

namespace cutegen::engine {

std::unique_ptr<Proposer> make_builtin_proposer(const Task& task, const std::string& arch,
                                                const recipes::RewriteRules& chosen);

}  // namespace cutegen::engine
