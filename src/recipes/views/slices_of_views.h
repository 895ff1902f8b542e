// SPDX-License-Identifier: Apache-2.0
// Replaces a slice of a reshaped tensor by a reshaped slice.
//
// Contract: slices_before_views() returns a graph with the same values under the same names. It
// changes a slice (slice, narrow, split, split_with_sizes) of a view if the view keeps the sliced
// axis. A loop nest can then read the slice in place, because it supports slices of tensors, but
// not slices of reshaped tensors.
//
// Example: split(view(y, [4, 1000, 3840]), 1280, -1) with y of 4000 x 3840
//          -> parts of split(y, 1280, 1), each viewed as [4, 1000, 1280]
#pragma once

#include "core/graph.h"

namespace cutegen::recipes {

Graph slices_before_views(Graph graph);

}  // namespace cutegen::recipes
