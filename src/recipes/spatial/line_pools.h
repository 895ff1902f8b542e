// SPDX-License-Identifier: Apache-2.0
// Restores pooling along one axis. PyTorch records it as pooling along two axes and inserts the
// first axis with size 1.
//
// Contract: line_pools() replaces squeeze(pool2d(unsqueeze(x, -2)), -2) by a node pool1d(x). It
// does so only if the pooling does not change the added axis, and no other node reads the replaced
// nodes.
//
// Example: unsqueeze(x, -2), max_pool2d([1, 8]), squeeze(-2) -> max_pool1d(x, [8])
#pragma once

#include "core/graph.h"

namespace cutegen::recipes {

Graph line_pools(Graph graph);

}  // namespace cutegen::recipes
