// SPDX-License-Identifier: Apache-2.0
// Rewrites composite operators as nodes of simpler ones: norms over channels and groups, losses,
// operators with several results.
//
// Contract: decompose() returns a graph with the same values under the same names, in which those
// operators are pointwise operators, reductions and views. A use that it does not cover is an
// unsupported error. `extents` has plan expressions, by value and axis, for sizes that no tensor
// has (the number of groups of a group norm). Ops named "cutegen.*" exist only here:
// (Algebra adds cutegen.inside(x, low, high): x without the first `low` and last `high` elements
// along the axes behind the first two, with zeros in their place.)
// cutegen.pick(x, t, d) is the element of x at position t along axis d.
//
// Example: mse_loss(a, b, mean) -> square(a - b), mean of that
#pragma once

#include <map>
#include <string>

#include "core/task.h"

namespace cutegen::recipes {

// cutegen.part(x, dim, k): the k-th of equal parts along an axis.
inline constexpr const char* kPart = "cutegen.part";
inline constexpr const char* kInside = "cutegen.inside";

struct Decomposed {
  Graph graph;
  std::map<std::string, std::map<size_t, std::string>> extents;
};

Result<Decomposed> decompose(const Graph& graph, const Task& task);

}  // namespace cutegen::recipes
