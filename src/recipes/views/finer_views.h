// SPDX-License-Identifier: Apache-2.0
// Finer views: a reshape that merges axes, a transposition, and a reshape that splits them again.
//
// Contract: finer_views() returns a graph with the same values under the same names. If a
// transposed view is viewed again, and a finer view of the first tensor only needs a transposition
// instead, that replaces the second view. A merged axis hides the sizes of its parts, so a loop
// nest could not tell them. nn.MultiheadAttention merges batches and heads in this way.
//
// Example: x of [s, b, h * d]: view(transpose(view(x, [s, b * h, d]), 0, 1), [b, h, s, d])
//          -> permute(view(x, [s, b, h, d]), [1, 2, 0, 3])
#pragma once

#include "core/graph.h"

namespace cutegen::recipes {

Graph finer_views(Graph graph);

}  // namespace cutegen::recipes
