// SPDX-License-Identifier: Apache-2.0
// Recipes: kernels that experts wrote, as templates with parameters. A recipe matches the task's
// graph, never the names of files or classes.
//
// Contract: match_recipe() returns the recipe that applies, with its parameters and their legal
// values. If no recipe applies, `why` gives the reason. instantiate() returns the program for one
// choice of parameter values. `safe` has the values with which a search starts. A program works for
// all sizes of the task, because it takes sizes from symbols (named expressions) of the launch
// plan.
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
  std::string recipe;  // "elementwise", "reduction", ...; empty if no recipe applies
  std::string why;     // why the recipe applies, or the first operator that no recipe covers
  std::vector<RecipeParameter> parameters;
  Json safe;                          // the initial parameters, {"vector": 1, ...}
  std::shared_ptr<const void> state;  // private data of the recipe
};

// `arch` is the GPU's architecture. With kHopperArch, programs may use features that only Hopper
// has. With an empty `arch`, programs run on any GPU.
RecipeMatch match_recipe(const Task& task, std::string_view arch = {});
Result<KernelProgram> instantiate(const Task& task, const RecipeMatch& match, const Json& params);
// Returns the choices of parameters that a search should try after `params`, most promising first.
// Each choice differs from `params` in one parameter.
std::vector<Json> neighbours(const RecipeMatch& match, const Json& params);
// Returns the program that `cutegen new` writes for the user to complete: a program that compiles
// and writes placeholder values to every output.
Result<KernelProgram> skeleton(const Task& task);

}  // namespace cutegen::recipes
