// SPDX-License-Identifier: Apache-2.0
#include "recipes/recipes.h"

#include <fmt/format.h>

#include <algorithm>

#include "recipes/elementwise.h"
#include "recipes/fused.h"
#include "recipes/reduction.h"

namespace cutegen {
namespace {

const recipes::Fused& fused_of(const RecipeMatch& match) {
  CG_ASSERT(match.state != nullptr);
  return *static_cast<const recipes::Fused*>(match.state.get());
}

bool legal(const RecipeMatch& match, const Json& params) {
  return match.recipe != "reduction" || recipes::reduction_legal(fused_of(match), params);
}

// Every parameter present, an integer, and one of the legal values (or the safe one).
Result<void> check_params(const RecipeMatch& match, const Json& params) {
  if (!params.is_object()) return user_error("recipe parameters are no JSON object");
  for (const auto& [name, safe] : match.safe.items()) {
    if (!params.contains(name) || !params.at(name).is_number_integer())
      return user_error(fmt::format("recipe parameter {} is missing or no integer", name));
    const Json& value = params.at(name);
    auto it = std::find_if(match.parameters.begin(), match.parameters.end(),
                           [&, key = name](const RecipeParameter& p) { return p.name == key; });
    bool known = value == safe || (it != match.parameters.end() &&
                                   std::find(it->legal.begin(), it->legal.end(),
                                             value.get<int64_t>()) != it->legal.end());
    if (!known)
      return user_error(fmt::format("recipe parameter {} cannot be {}", name, value.dump()));
  }
  if (!legal(match, params))
    return user_error("these recipe parameters do not go together: " + params.dump());
  return {};
}

}  // namespace

RecipeMatch match_recipe(const Task& task) {
  RecipeMatch match;
  auto fused = recipes::fuse(task);
  if (!fused) {
    match.why = fused.error().message;
    if (!fused.error().where.empty()) match.why += " (node " + fused.error().where + ")";
    return match;
  }
  auto state = std::make_shared<const recipes::Fused>(std::move(*fused));
  bool reduces = state->reduces();
  match.recipe = reduces ? "reduction" : "elementwise";
  match.why =
      reduces ? fmt::format("pointwise work around reductions over the same axes, {} pass(es) deep",
                            state->max_depth())
              : "a chain of pointwise operators";
  match.parameters =
      reduces ? recipes::reduction_parameters(*state) : recipes::elementwise_parameters(*state);
  match.safe = reduces ? recipes::reduction_safe(*state) : recipes::elementwise_safe(*state);
  match.state = state;
  return match;
}

Result<KernelProgram> instantiate(const Task& task, const RecipeMatch& match, const Json& params) {
  if (match.recipe.empty()) return unsupported_error("no recipe: " + match.why);
  CG_CHECK(check_params(match, params));
  const recipes::Fused& fused = fused_of(match);
  return match.recipe == "reduction" ? recipes::reduction_program(task, fused, params)
                                     : recipes::elementwise_program(task, fused, params);
}

std::vector<Json> neighbours(const RecipeMatch& match, const Json& params) {
  std::vector<Json> list;
  size_t longest = 0;
  for (const RecipeParameter& p : match.parameters) longest = std::max(longest, p.legal.size());
  // The best value of every parameter, then the second best of every parameter, ...
  for (size_t rank = 0; rank < longest; ++rank)
    for (const RecipeParameter& p : match.parameters) {
      if (rank >= p.legal.size() || !params.contains(p.name)) continue;
      if (params.at(p.name) == p.legal[rank]) continue;
      Json next = params;
      next[p.name] = p.legal[rank];
      if (check_params(match, next)) list.push_back(std::move(next));
    }
  return list;
}

}  // namespace cutegen
