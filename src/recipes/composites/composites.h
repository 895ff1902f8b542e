// SPDX-License-Identifier: Apache-2.0
// Replaces composite operators by simpler nodes. An operator is composite if simpler operators can
// compute its result: operators of PyTorch, or operators that only cutegen has (graph/decompose.h).
//
// Contract: expand_composites() replaces each composite node by simpler nodes with the same values
// under the same names. cutegen calls expand_composites() before it looks for matrix products,
// windows (convolutions and pooling) and scans, because composite operators may expand to these. If
// expand_composites() does not cover a node's use of an operator, it leaves the node unchanged, and
// a later step returns an error that names the operator.
//
// Example: aten.dot.default(x, y) -> sum(x * y)
#pragma once

#include "core/graph.h"

namespace cutegen::recipes {

Graph expand_composites(const Graph& graph);
// Replaces tril and triu by where() over a comparison of row and column numbers.
Graph expand_triangles(const Graph& graph);

}  // namespace cutegen::recipes
