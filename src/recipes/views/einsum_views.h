// SPDX-License-Identifier: Apache-2.0
// Simplifies the views with which PyTorch prepares the operands of einsum.
//
// Contract: einsum_views() returns a graph with the same values under the same names. PyTorch adds
// axes of size 1 to an operand, permutes the axes, often twice, and then merges axes for a batched
// product. einsum_views() replaces such a chain by one view of the operand, by a permutation of one
// view if the merged axes are neighbours in the operand, or otherwise by a view of one permutation.
// Without this replacement, an earlier kernel would copy the operand.
//
// Example: view(permute(unsqueeze(x, 4), [0, 1, 3, 2, 4]), [32, 64, 2048]) with x of
//          [4, 8, 2048, 64] -> permute(view(x, [32, 2048, 64]), [0, 2, 1])
#pragma once

#include "core/graph.h"

namespace cutegen::recipes {

Graph einsum_views(Graph graph);

}  // namespace cutegen::recipes
