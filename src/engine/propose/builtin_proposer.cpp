// SPDX-License-Identifier: Apache-2.0
#include "engine/propose/builtin_proposer.h"

#include <set>

#include "recipes/emit/recipes.h"

namespace cutegen::engine {
namespace {

const std::string kRecipe = "recipe:";  // prefix of a recipe program's origin

std::string value_text(const Json& value) {
  return value.is_string() ? value.get<std::string>() : dump_json(value);
}

// "vector 1 -> 4, threads 128 -> 256"
std::string change_text(const Json& before, const Json& after) {
  std::string text;
  for (const auto& [name, value] : after.items()) {
    auto old = before.find(name);
    if (old != before.end() && *old == value) continue;
    if (!text.empty()) text += ", ";
    text +=
        name + " " + (old == before.end() ? "none" : value_text(*old)) + " -> " + value_text(value);
  }
  return text;
}

class BuiltinProposer final : public Proposer {
 public:
  BuiltinProposer(const Task& task, const std::string& arch, const recipes::RewriteRules& chosen)
      : rewritten_(recipes::rewrite(task, chosen)),
        match_(recipes::match_recipe(rewritten_.task, arch)),
        rewrites_(recipes::find_rewrites(task, chosen)) {
    if (!match_.recipe.empty() || rewritten_.applied.empty()) return;
    // Without rewrites, the graph as written may match a recipe.
    rewritten_ = {.task = task, .applied = {}, .requirements = {}};
    match_ = recipes::match_recipe(task, arch);
    std::erase_if(rewrites_, [](const Rewrite& rewrite) { return rewrite.applied; });
  }

  Result<Answer> answer(const Context&, const search::Ask& ask, const RunView& run) override {
    if (ask.role != Role::coder)
      return unsupported_error("the model 'builtin' has no role '" +
                               std::string(to_string(ask.role)) + "'");
    if (match_.recipe.empty()) return Answer{.candidate = {}, .reason = "no recipe: " + match_.why};
    Tried tried = tried_in(run);
    const auto recipes_of = sources(ask, run);
    if (recipes_of.empty()) return first();
    for (const RunStep* from : recipes_of)
      for (const Json& params : recipes::neighbours(match_, from->candidate.edit.params)) {
        if (tried.params.count(canonical_json(params))) continue;
        auto program = instantiate(params);
        // Skip a choice that is not legal here, or whose program was already judged.
        if (!program || tried.programs.count(program_id(*program))) continue;
        return changed(*from, params, std::move(*program));
      }
    return Answer{.candidate = {}, .reason = "nothing left to try"};
  }

 private:
  struct Tried {
    std::set<std::string> params, programs;
  };

  static Tried tried_in(const RunView& run) {
    Tried tried;
    for (const RunStep& step : run.steps) {
      tried.params.insert(canonical_json(step.candidate.edit.params));
      tried.programs.insert(program_id(step.candidate.program));
    }
    return tried;
  }

  static bool is_recipe(const RunStep& step) {
    return step.candidate.edit.origin.starts_with(kRecipe);
  }

  // An improvement starts from the incumbent, a repair from any earlier choice. A source kernel
  // comes from no recipe, so it cannot be changed.
  static std::vector<const RunStep*> sources(const search::Ask& ask, const RunView& run) {
    if (auto it = ask.context.find("parent"); it != ask.context.end() && it->is_string())
      if (const RunStep* parent = run.find(it->get<std::string>()); parent && is_recipe(*parent))
        return {parent};
    std::vector<const RunStep*> out;
    for (const RunStep& step : run.steps)
      if (is_recipe(step)) out.push_back(&step);
    return out;
  }

  Result<KernelProgram> instantiate(const Json& params) const {
    CG_TRY(KernelProgram program, recipes::instantiate(rewritten_.task, match_, params));
    for (const std::string& text : rewritten_.requirements) {
      CG_TRY(Expr requirement, Expr::parse(text));
      program.plan.requires_.push_back(std::move(requirement));
    }
    return program;
  }

  Result<Answer> first() {
    CG_TRY(KernelProgram program, instantiate(match_.safe));
    Candidate c;
    c.edit = {.summary = "first program: the safe choice of recipe '" + match_.recipe + "'",
              .rationale = match_.why,
              .origin = kRecipe + match_.recipe,
              .params = match_.safe,
              .rewrites = rewrites_};
    c.program = std::move(program);
    return Answer{.candidate = std::move(c), .reason = {}};
  }

  Answer changed(const RunStep& from, const Json& params, KernelProgram program) {
    Candidate c;
    c.parent = from.candidate.id;
    c.edit = {.summary = change_text(from.candidate.edit.params, params),
              .rationale = {},
              .origin = kRecipe + match_.recipe,
              .params = params,
              .rewrites = rewrites_};
    for (const recipes::RecipeParameter& parameter : match_.parameters)
      if (params.contains(parameter.name) && from.candidate.edit.params.contains(parameter.name) &&
          params[parameter.name] != from.candidate.edit.params[parameter.name])
        c.edit.rationale +=
            (c.edit.rationale.empty() ? "" : "; ") + parameter.name + ": " + parameter.meaning;
    c.program = std::move(program);
    return Answer{.candidate = std::move(c), .reason = {}};
  }

  recipes::Rewritten rewritten_;
  recipes::RecipeMatch match_;
  std::vector<Rewrite> rewrites_;  // applied or possible
};

}  // namespace

std::unique_ptr<Proposer> make_builtin_proposer(const Task& task, const std::string& arch,
                                                const recipes::RewriteRules& chosen) {
  return std::make_unique<BuiltinProposer>(task, arch, chosen);
}

}  // namespace cutegen::engine
