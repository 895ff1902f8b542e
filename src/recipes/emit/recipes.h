// SPDX-License-Identifier: Apache-2.0
// Recipes: expert kernels with parameters, matched on the task's graph (never on file names).
//
// Contract: match() returns the recipe that applies with its parameters and legal values, or why no
// recipe applies. instantiate() returns the program for one choice of parameters; the first choice
// is the safe one. Programs work for all sizes of the task: sizes come from plan symbols.
//
// Example:
//   auto m = match_recipe(task, "sm_90a"); if (m.recipe) auto p = instantiate(task, m, m.safe);
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/candidate.h"
#include "core/task.h"
#include "recipes/text/parameter.h"

namespace cutegen::recipes {

struct RecipeMatch {
  std::string recipe;  // "elementwise", "reduction", "matmul"; empty: none applies
  std::string why;     // why it applies, or the first operator that no recipe covers
  std::vector<RecipeParameter> parameters;
  Json safe;                          // the first choice, {"vector": 1, ...}
  std::shared_ptr<const void> state;  // private to the recipe
};

// `arch`: the GPU's architecture. kHopperArch adds what only Hopper has; empty: programs for any
// GPU.
RecipeMatch match_recipe(const Task& task, std::string_view arch = {});
Result<KernelProgram> instantiate(const Task& task, const RecipeMatch& match, const Json& params);
// The edits worth trying from `params`: one parameter changed at a time, most promising first.
std::vector<Json> neighbours(const RecipeMatch& match, const Json& params);
// A program that compiles and writes the outputs' shapes, for `cutegen new`.
Result<KernelProgram> skeleton(const Task& task);

}  // namespace cutegen::recipes
