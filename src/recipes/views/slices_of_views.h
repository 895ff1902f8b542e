// SPDX-License-Identifier: Apache-2.0
// Replaces a slice of a reshaped tensor by a reshaped slice.
//
// Contract: slices_before_views() returns a graph with the same values under the same names.
// slices_before_views() turns a slice (slice, narrow, split, split_with_sizes) of a view into a
// view of a slice if the view keeps the sliced axis. A loop nest can read a slice of a tensor in
// place, but not a slice of a reshaped tensor.
//
// Example: split(view(y, [4, 1000, 3840]), 1280, -1) with y of 4000 x 3840
//          -> parts of split(y, 1280, 1), each viewed as [4, 1000, 1280]
#pragma once

#include "core/graph.h"

namespace cutegen::recipes {

Graph slices_before_views(Graph graph);

}  // namespace cutegen::recipes
