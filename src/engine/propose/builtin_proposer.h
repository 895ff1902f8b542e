// SPDX-License-Identifier: Apache-2.0
// The proposer `builtin`: proposes programs from cutegen's recipes.
//
// Contract: the proposer first proposes the recipe (kernel template) for the task with safe
// parameters (RecipeMatch::safe), then changes one parameter at a time. The proposer skips programs
// that the run has already judged. `arch` is the GPU's architecture; if `arch` is empty, the
// programs run on any GPU. `chosen` contains the algebraic rewrites that may simplify the graph
// before the proposer selects a recipe.
//
// Example: auto p = make_builtin_proposer(task, "sm_90a", recipes::all_rewrites());
#pragma once

#include "engine/propose/proposer.h"
#include "recipes/algebra/rewrites.h"

namespace cutegen::engine {

std::unique_ptr<Proposer> make_builtin_proposer(const Task& task, const std::string& arch,
                                                const recipes::RewriteRules& chosen);

}  // namespace cutegen::engine
