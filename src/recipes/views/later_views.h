// SPDX-License-Identifier: Apache-2.0
// Moves a reshape of a slice behind the work on its rows.
//
// Contract: later_views() returns a graph with the same values under the same names. Suppose that a
// view merges the leading axes of a slice, and that an operator works on each element of the view,
// or on rows of axes that the view keeps. later_views() then applies the operator to the slice and
// views the result. A loop nest can read a slice in place, but not the merged axes of a slice.
//
// Example: log_softmax(view(x[:, :-1], [4 * 511, 32000]), 1) with x of [4, 512, 32000]
//          -> view(log_softmax(x[:, :-1], 2), [4 * 511, 32000])
#pragma once

#include "core/graph.h"

namespace cutegen::recipes {

Graph later_views(Graph graph);

}  // namespace cutegen::recipes
