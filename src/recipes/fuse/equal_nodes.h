// SPDX-License-Identifier: Apache-2.0
// Merges nodes that compute the same values. A module that writes an expression twice, such as
// torch.cat([torch.sin(x @ w), torch.cos(x @ w)], -1), has two nodes for it in its graph.
//
// Contract: merge_equal_nodes() keeps the first of several nodes with equal operators and
// arguments, and lets the readers of the others read its values. The graph must have no in-place
// operators left. A node stays if its value is an output of the graph or a value in `kept`, so that
// these keep their names.
//
// Example: mm_1 = mm(x, w); sin(mm_1); mm_2 = mm(x, w); cos(mm_2)  ->  ... cos(mm_1)
#pragma once

#include <map>
#include <set>
#include <string>

#include "core/graph.h"

namespace cutegen::recipes {

// Replaces the names of values in an argument of a node.
void rename_values(Json& argument, const std::map<std::string, std::string>& names);
Graph merge_equal_nodes(Graph graph, std::set<std::string> kept = {});

}  // namespace cutegen::recipes
