// SPDX-License-Identifier: Apache-2.0
#include "recipes/emit/recipes.h"

#include <fmt/format.h>

#include <algorithm>

#include "recipes/emit/accuracy.h"
#include "recipes/emit/elementwise.h"
#include "recipes/emit/matmul.h"
#include "recipes/emit/reduction.h"
#include "recipes/emit/window.h"
#include "recipes/nest/nest.h"

namespace cutegen::recipes {
namespace {

using recipes::Fused;

constexpr int64_t kWorthTuning = 16;  // a stage with this part of the most elements is tuned, too

// A program of stages. The parameters of the largest stage keep their names. The names of other
// stages worth tuning get the stage's number as a prefix; all other stages keep the safe choice.
struct Staged {
  recipes::Stages stages;
  std::vector<std::string> prefixes;  // "" or "s1_"
  std::vector<bool> tuned;
  bool hopper = false;
};

using State = std::variant<Staged, recipes::Contraction>;

const State& state_of(const RecipeMatch& match) {
  CG_ASSERT(match.state != nullptr);
  return *static_cast<const State*>(match.state.get());
}

Json safe_of(const Fused& fused, bool hopper) {
  if (fused.window) return recipes::window_safe(fused);
  return fused.reduces() ? recipes::reduction_safe(fused, hopper)
                         : recipes::elementwise_safe(fused);
}

// Returns the parameters of stage `i` under the recipe's own names.
Json params_of(const Staged& staged, size_t i, const Json& params) {
  Json own = safe_of(staged.stages.list[i], staged.hopper);
  if (staged.tuned[i])
    for (auto& [name, value] : own.items()) value = params.at(staged.prefixes[i] + name);
  return own;
}

bool legal(const recipes::Contraction& product, const Json& params) {
  return recipes::matmul_legal(product, params);
}

bool legal(const Staged& staged, const Json& params) {
  for (size_t i = 0; i < staged.stages.list.size(); ++i) {
    const Fused& fused = staged.stages.list[i];
    if (fused.window && !recipes::window_legal(fused, params_of(staged, i, params))) return false;
    if (fused.reduces() &&
        !recipes::reduction_legal(fused, params_of(staged, i, params), staged.hopper))
      return false;
  }
  return true;
}

// Each parameter must be present, an integer, and one of the legal values (or the safe one).
Result<void> check_params(const RecipeMatch& match, const Json& params) {
  if (!params.is_object()) return user_error("recipe parameters are not a JSON object");
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
  if (!std::visit([&](const auto& state) { return legal(state, params); }, state_of(match)))
    return user_error("these recipe parameters cannot be combined: " + params.dump());
  return {};
}

int64_t elements(const Fused& fused) {
  recipes::Nest nest = recipes::make_nest(fused);
  return std::max<int64_t>(1, nest.rows()) * std::max<int64_t>(1, nest.length());
}

// Chooses the stages to tune and the prefixes of their parameters.
void name_parameters(Staged& staged) {
  const auto& list = staged.stages.list;
  size_t largest = 0;
  for (size_t i = 1; i < list.size(); ++i)
    if (elements(list[i]) > elements(list[largest])) largest = i;
  for (size_t i = 0; i < list.size(); ++i) {
    staged.prefixes.push_back(i == largest ? "" : fmt::format("s{}_", i + 1));
    staged.tuned.push_back(elements(list[i]) >= elements(list[largest]) / kWorthTuning);
  }
}

std::string why_of(const Staged& staged) {
  const auto& list = staged.stages.list;
  if (list.size() == 1 && list[0].window)
    return fmt::format("one {} and pointwise work on its result", list[0].window->window.op);
  if (list.size() > 1)
    return fmt::format("pointwise work and reductions in {} stages", list.size());
  if (!list[0].reduces()) return "a chain of pointwise operators";
  return fmt::format("pointwise work around reductions over the same axes, {} pass(es) deep",
                     list[0].max_depth());
}

// Lists the parameters of the tuned stages, the largest stage's first.
void list_parameters(const Staged& staged, RecipeMatch& match) {
  for (bool main : {true, false})
    for (size_t i = 0; i < staged.stages.list.size(); ++i) {
      const std::string& prefix = staged.prefixes[i];
      if (prefix.empty() != main || !staged.tuned[i]) continue;
      const Fused& fused = staged.stages.list[i];
      auto own = fused.window      ? recipes::window_parameters(fused)
                 : fused.reduces() ? recipes::reduction_parameters(fused, staged.hopper)
                                   : recipes::elementwise_parameters(fused);
      for (RecipeParameter& parameter : own) {
        parameter.name = prefix + parameter.name;
        match.parameters.push_back(std::move(parameter));
      }
      Json safe = safe_of(fused, staged.hopper);
      for (const auto& [name, value] : safe.items()) match.safe[prefix + name] = value;
    }
}

State offer(RecipeMatch& match, recipes::Contraction product, bool hopper) {
  product.hopper = hopper;
  match.recipe = "matmul";
  match.why = "one matrix product (" + product.op + ") and pointwise work on its result";
  match.parameters = recipes::matmul_parameters(product);
  match.safe = recipes::matmul_safe(product);
  return product;
}

State offer(RecipeMatch& match, recipes::Stages stages, bool hopper) {
  Staged staged{.stages = std::move(stages), .hopper = hopper};
  name_parameters(staged);
  const auto& list = staged.stages.list;
  bool reduces = std::any_of(list.begin(), list.end(), [](const Fused& f) { return f.reduces(); });
  auto window = std::find_if(list.begin(), list.end(), [](const Fused& f) { return !!f.window; });
  match.recipe = window != list.end() ? "windows" : reduces ? "reduction" : "elementwise";
  match.why = why_of(staged);
  list_parameters(staged, match);
  return staged;
}

Result<KernelProgram> program(const Task& task, const recipes::Contraction& product,
                              const Json& params) {
  return recipes::matmul_program(task, product, params);
}

Result<KernelProgram> program(const Task& task, const Staged& staged, const Json& params) {
  const auto& list = staged.stages.list;
  std::vector<recipes::ProgramPart> parts;
  for (size_t i = 0; i < list.size(); ++i) {
    recipes::Label label{list.size() == 1 ? "" : std::to_string(i + 1)};
    Json own = params_of(staged, i, params);
    const Fused fused = recipes::relaxed(recipes::needed_accuracy(task, list[i]), list[i]);
    parts.push_back(fused.window      ? recipes::window_part(task, fused, own, label)
                    : fused.reduces() ? recipes::reduction_part(task, fused, own, label)
                                      : recipes::elementwise_part(task, fused, own, label));
  }
  return recipes::assemble(task, staged.stages, parts);
}

}  // namespace

RecipeMatch match_recipe(const Task& task, std::string_view arch) {
  RecipeMatch match;
  for (const TensorInfo& tensor : task.tensors)
    if (tensor.mutated) {
      match.why = "forward() mutates '" + tensor.name + "', and no recipe writes mutated tensors";
      return match;
    }
  auto form = recipes::find_form(task);
  if (!form) {
    match.why = form.error().message;
    if (!form.error().where.empty()) match.why += " (node " + form.error().where + ")";
    return match;
  }
  const bool hopper = arch == kHopperArch;
  match.state = std::make_shared<const State>(
      std::visit([&](auto& f) { return offer(match, std::move(f), hopper); }, *form));
  return match;
}

Result<KernelProgram> instantiate(const Task& task, const RecipeMatch& match, const Json& params) {
  if (match.recipe.empty()) return unsupported_error("no recipe: " + match.why);
  CG_CHECK(check_params(match, params));
  return std::visit([&](const auto& state) { return program(task, state, params); },
                    state_of(match));
}

std::vector<Json> neighbours(const RecipeMatch& match, const Json& params) {
  std::vector<Json> list;
  size_t longest = 0;
  for (const RecipeParameter& p : match.parameters) longest = std::max(longest, p.legal.size());
  // Change one parameter: each to its best value, then each to its second best value, ...
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

}  // namespace cutegen::recipes
