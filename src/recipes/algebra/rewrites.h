// SPDX-License-Identifier: Apache-2.0
// Rewrites: algebraic rules that remove work from a task's graph. Each rule has a name and a file.
//
// Contract: rewrite() returns the task with a graph that has the same outputs in exact arithmetic,
// and one entry for each rule that changed it. It applies the rules of `chosen` only. A rule
// applies only if its numerical condition holds: the rewritten float32 program is as accurate as
// the graph as written, and infinite or undefined results stay infinite or undefined. A graph that
// prepare() refuses stays as it is. find_rewrites() also names the rules that would apply but were
// not chosen.
//
// Example: CG_TRY(auto chosen, parse_rewrites("sum-of-product", "--rewrites"));
//          Rewritten r = rewrite(task, chosen); match_recipe(r.task);
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
// "all", "none", or names separated by commas. A user error lists the names.
Result<RewriteRules> parse_rewrites(const std::string& text, const std::string& where);
// One sentence about a rule, for help texts and reports.
std::string meaning_of(RewriteRule rule);

struct Rewritten {
  Task task;
  std::vector<Rewrite> applied;
  std::vector<std::string> requirements;  // requirements of a program, as plan expressions
};

Rewritten rewrite(const Task& task, const RewriteRules& chosen);
// The rewrites that were applied, and those that would apply if the user chose them.
std::vector<Rewrite> find_rewrites(const Task& task, const RewriteRules& chosen);

}  // namespace cutegen::recipes
