// SPDX-License-Identifier: Apache-2.0
// Replaces composite operators by simpler nodes. An operator is composite if simpler operators can
// compute its result: PyTorch's, or those that only cutegen has (graph/decompose.h).
//
// Contract: expand_composites() replaces each such node by simpler nodes with the same values under
// the same names. cutegen calls it before it looks for products, windows and scans, because
// composites may expand to these operators. If it does not cover a use of an operator, the node
// stays as it is. A later step then returns an error that names the operator.
//
// Example: aten.dot.default(x, y) -> sum(x * y)
#pragma once

#include "core/graph.h"

namespace cutegen::recipes {

Graph expand_composites(const Graph& graph);
// Replaces tril and triu by where() over a comparison of row and column numbers.
Graph expand_triangles(const Graph& graph);

}  // namespace cutegen::recipes
