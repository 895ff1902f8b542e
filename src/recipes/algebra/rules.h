// SPDX-License-Identifier: Apache-2.0
// The rewrite rules (rewrites.h). Each function in this header is one rule and has its own .cpp
// file.
//
// Contract: a rule changes the graph in one place, or not at all. A rule returns one sentence that
// says what the rule changed, or nullopt if the rule changed nothing. Sizes in the sentence are the
// sizes in the task file.
//
// Example: while (auto effect = sum_of_product(edit)) effects.push_back(*effect);
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "recipes/algebra/editor.h"

namespace cutegen::recipes {

using Effect = std::optional<std::string>;

Effect one_element(Editor& edit);
Effect sum_of_product(Editor& edit);
Effect mean_of_convolution(Editor& edit);
Effect constant_result(Editor& edit);
Effect merge_clamps(Editor& edit);
Effect fold_scales(Editor& edit);

// Returns the lower and upper limit of an operator that clamps by constant numbers, or nullopt for
// other operators. If the operator has only one limit, the other limit is infinite.
std::optional<std::pair<double, double>> clamp_limits(const Node& node);

}  // namespace cutegen::recipes
