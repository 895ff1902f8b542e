// SPDX-License-Identifier: Apache-2.0
// Composites: operators that other operators of PyTorch, or cutegen's own, compute.
//
// Contract: expand_composites() replaces each such node by simpler nodes with the same values under
// the same names. It runs before products, windows and scans are found, so a composite may become
// one of these. Uses that it does not cover stay as they are: a later step refuses them by name.
//
// Example: aten.dot.default(x, y) -> sum(x * y)
#pragma once

#include "core/graph.h"

namespace cutegen::recipes {

Graph expand_composites(const Graph& graph);
// Replaces tril and triu by a choice that positions decide.
Graph expand_triangles(const Graph& graph);

}  // namespace cutegen::recipes
