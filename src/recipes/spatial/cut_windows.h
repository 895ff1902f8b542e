// SPDX-License-Identifier: Apache-2.0
// Cuts results of convolutions: a causal convolution pads both ends and drops the last results.
//
// Contract: fold_cut_results() removes a slice that keeps the first results of a convolution along
// an axis behind the channels, if nothing else reads the convolution and the number of dropped
// results is the same at every shape. The convolution then pads less behind the axis. It needs
// stride 1 along the axis, and must not be transposed.
//
// Example: conv1d(x, w, padding=3)[..., : x.shape[-1]] -> a convolution that pads 3 before x only
#pragma once

#include "core/graph.h"

namespace cutegen::recipes {

Graph fold_cut_results(Graph graph);

}  // namespace cutegen::recipes
