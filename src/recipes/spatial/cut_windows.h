// SPDX-License-Identifier: Apache-2.0
// Lets a convolution compute only the results that a later slice keeps: modules often write a
// causal convolution as a convolution that pads both ends and a slice that drops the last results.
//
// Contract: fold_cut_results() removes a slice that keeps the first results of a convolution along
// a spatial axis. The convolution then pads less at the end of the axis. Conditions: nothing else
// reads the convolution, the number of dropped results is the same at every shape, the stride along
// the axis is 1, and the convolution is not transposed.
//
// Example: conv1d(x, w, padding=3)[..., : x.shape[-1]] -> a convolution that pads 3 before x only
#pragma once

#include "core/graph.h"

namespace cutegen::recipes {

Graph fold_cut_results(Graph graph);

}  // namespace cutegen::recipes
