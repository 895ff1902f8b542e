// SPDX-License-Identifier: Apache-2.0
#include "recipes/recipes.h"

#include <fmt/format.h>

#include <algorithm>

#include "recipes/elementwise.h"
#include "recipes/matmul.h"
#include "recipes/reduction.h"

namespace cutegen {
namespace {

const recipes::Form& form_of(const RecipeMatch& match) {
  CG_ASSERT(match.state != nullptr);
  return *static_cast<const recipes::Form*>(match.state.get());
}

bool legal(const RecipeMatch& match, const Json& params) {
  if (auto* product = std::get_if<recipes::Contraction>(&form_of(match)))
    return recipes::matmul_legal(*product, params);
  return match.recipe != "reduction" ||
         recipes::reduction_legal(std::get<recipes::Fused>(form_of(match)), params);
}

void offer(RecipeMatch& match, const recipes::Contraction& product) {
  match.recipe = "matmul";
  match.why = "one matrix product (" + product.op + ") and pointwise work on its result";
  match.parameters = recipes::matmul_parameters(product);
  match.safe = recipes::matmul_safe(product);
}

void offer(RecipeMatch& match, const recipes::Fused& fused) {
  bool reduces = fused.reduces();
  match.recipe = reduces ? "reduction" : "elementwise";
  match.why =
      reduces ? fmt::format("pointwise work around reductions over the same axes, {} pass(es) deep",
                            fused.max_depth())
              : "a chain of pointwise operators";
  match.parameters =
      reduces ? recipes::reduction_parameters(fused) : recipes::elementwise_parameters(fused);
  match.safe = reduces ? recipes::reduction_safe(fused) : recipes::elementwise_safe(fused);
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
  auto form = recipes::find_form(task);
  if (!form) {
    match.why = form.error().message;
    if (!form.error().where.empty()) match.why += " (node " + form.error().where + ")";
    return match;
  }
  std::visit([&](const auto& f) { offer(match, f); }, *form);
  match.state = std::make_shared<const recipes::Form>(std::move(*form));
  return match;
}

Result<KernelProgram> instantiate(const Task& task, const RecipeMatch& match, const Json& params) {
  if (match.recipe.empty()) return unsupported_error("no recipe: " + match.why);
  CG_CHECK(check_params(match, params));
  if (auto* product = std::get_if<recipes::Contraction>(&form_of(match)))
    return recipes::matmul_program(task, *product, params);
  const auto& fused = std::get<recipes::Fused>(form_of(match));
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
