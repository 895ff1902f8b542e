// SPDX-License-Identifier: Apache-2.0
#include "recipes/algebra/rewrites.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "recipes/algebra/rules.h"
#include "recipes/fuse/fused.h"

namespace cutegen::recipes {
namespace {

constexpr int kMostChanges = 256;

struct Rule {
  RewriteRule rule;
  Effect (*apply)(Editor&);
  const char* meaning;
};

// In the order in which they apply: a rule may prepare the graph for a later one.
constexpr std::array kRules = {
    Rule{.rule = RewriteRule::one_element,
         .apply = one_element,
         .meaning = "a sum, mean, maximum, ... over one element is that element"},
    Rule{.rule = RewriteRule::constant_result,
         .apply = constant_result,
         .meaning = "a result is the same number for all inputs"},
    Rule{
        .rule = RewriteRule::sum_of_product,
        .apply = sum_of_product,
        .meaning = "a sum or mean over the results of a matrix product is a product with a vector"},
    Rule{.rule = RewriteRule::mean_of_convolution,
         .apply = mean_of_convolution,
         .meaning =
             "a mean over all positions of a convolution is a product of means and summed weights"},
    Rule{.rule = RewriteRule::merge_clamps,
         .apply = merge_clamps,
         .meaning = "two clamps in a row are one"},
    Rule{.rule = RewriteRule::fold_scales,
         .apply = fold_scales,
         .meaning = "two constant factors in a row are one"},
};

// Applies the first rule that changes something.
bool change_once(Editor& edit, const RewriteRules& chosen, std::vector<Rewrite>& applied) {
  for (const Rule& rule : kRules) {
    if (!chosen.count(rule.rule)) continue;
    Effect effect = rule.apply(edit);
    if (!effect) continue;
    const std::string name = to_string(rule.rule);
    const bool known = std::any_of(applied.begin(), applied.end(),
                                   [&](const Rewrite& r) { return r.rule == name; });
    if (!known) applied.push_back({.rule = name, .effect = *effect, .applied = true});
    return true;
  }
  return false;
}

}  // namespace

cutegen::Names<RewriteRule> enum_names(RewriteRule) {
  static constexpr Name<RewriteRule> names[] = {
      {RewriteRule::one_element, "one-element"},
      {RewriteRule::constant_result, "constant-result"},
      {RewriteRule::sum_of_product, "sum-of-product"},
      {RewriteRule::mean_of_convolution, "mean-of-convolution"},
      {RewriteRule::merge_clamps, "merge-clamps"},
      {RewriteRule::fold_scales, "fold-scales"}};
  return names;
}

RewriteRules all_rewrites() {
  RewriteRules rules;
  for (const Rule& rule : kRules) rules.insert(rule.rule);
  return rules;
}

Result<RewriteRules> parse_rewrites(const std::string& text, const std::string& where) {
  if (text.empty() || text == kNoRewrites) return RewriteRules{};
  if (text == kAllRewrites) return all_rewrites();
  RewriteRules rules;
  for (const std::string& name : split(text, ',')) {
    CG_TRY(RewriteRule rule, from_name<RewriteRule>(name, "rewrite", where));
    rules.insert(rule);
  }
  return rules;
}

std::string meaning_of(RewriteRule rule) {
  for (const Rule& known : kRules)
    if (known.rule == rule) return known.meaning;
  return {};
}

Rewritten rewrite(const Task& task, const RewriteRules& chosen) {
  Rewritten out{.task = task, .applied = {}, .requirements = {}};
  if (chosen.empty()) return out;
  auto graph = prepare(task);
  if (!graph) return out;
  Editor edit(task, *graph);
  for (int i = 0; i < kMostChanges && change_once(edit, chosen, out.applied);) ++i;
  if (out.applied.empty()) return out;
  out.requirements = edit.requirements();
  out.task.graph = std::move(*graph);
  return out;
}

std::vector<Rewrite> find_rewrites(const Task& task, const RewriteRules& chosen) {
  std::vector<Rewrite> list = rewrite(task, chosen).applied;
  for (Rewrite& other : rewrite(task, all_rewrites()).applied) {
    auto rule = from_name<RewriteRule>(other.rule, "rewrite");
    if (!rule || chosen.count(*rule)) continue;
    other.applied = false;
    list.push_back(std::move(other));
  }
  return list;
}

}  // namespace cutegen::recipes
