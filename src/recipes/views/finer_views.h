// SPDX-License-Identifier: Apache-2.0
// Removes reshapes that merge axes before a transposition and split them again after it.
//
// Contract: finer_views() returns a graph with the same values under the same names. finer_views()
// replaces view(transpose(view(x))) by a transposition of one view of x, if a view with this result
// exists. A loop nest needs the sizes of all axes, but the size of a merged axis does not determine
// the sizes of its parts. nn.MultiheadAttention, for example, merges batches and heads.
//
// Example: x of [s, b, h * d]: view(transpose(view(x, [s, b * h, d]), 0, 1), [b, h, s, d])
//          -> permute(view(x, [s, b, h, d]), [1, 2, 0, 3])
#pragma once

#include "core/graph.h"

namespace cutegen::recipes {

Graph finer_views(Graph graph);

}  // namespace cutegen::recipes
