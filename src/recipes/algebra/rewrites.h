// SPDX-License-Identifier: Apache-2.0
// Rewrites: algebraic rules that remove work from a task's graph. Each rule has a name and its own
// source file.
//
// Contract: rewrite() applies the rules in `chosen` and no others. The graph of the returned task
// has the same outputs in exact arithmetic. `applied` has one entry for each rule that changed the
// graph. Each rule has a numerical condition, which ensures that the float32 program of the new
// graph is as accurate as a program of the original graph, and that infinite or undefined results
// stay infinite or undefined. If prepare() (fuse/fused.h) returns an error for the graph, rewrite()
// does not change the graph. find_rewrites() lists the rules in `chosen` that changed the graph,
// and the rules that would change it but that `chosen` lacks.
//
// Example:
//   CG_TRY(auto chosen, parse_rewrites("sum-of-product", "--rewrites"));
//   Rewritten r = rewrite(task, chosen); match_recipe(r.task);
#pragma once

#include <set>
#include <string>
#include <vector>

#include "core/candidate.h"
#include "core/task.h"

namespace cutegen::recipes {

enum class RewriteRule {
  one_element,
  constant_result,
  sum_of_product,
  mean_of_convolution,
  merge_clamps,
  fold_scales
};
cutegen::Names<RewriteRule> enum_names(RewriteRule);

inline constexpr const char *kAllRewrites = "all", *kNoRewrites = "none";

using RewriteRules = std::set<RewriteRule>;

RewriteRules all_rewrites();
// Parses "all", "none", or names separated by commas. The error for an unknown name lists all names
// of rules.
Result<RewriteRules> parse_rewrites(const std::string& text, const std::string& where);
// Returns one sentence that explains a rule, for help texts and reports.
std::string meaning_of(RewriteRule rule);

struct Rewritten {
  Task task;
  std::vector<Rewrite> applied;
  // Conditions on sizes, as expressions of the launch plan. A program of `task` is correct only if
  // all of them hold.
  std::vector<std::string> requirements;
};

Rewritten rewrite(const Task& task, const RewriteRules& chosen);
std::vector<Rewrite> find_rewrites(const Task& task, const RewriteRules& chosen);

}  // namespace cutegen::recipes
