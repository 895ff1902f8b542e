// SPDX-License-Identifier: Apache-2.0
// Restores pooling along one axis. PyTorch records pooling along one axis as pooling along two
// axes, and inserts the first of these axes with size 1.
//
// Contract: line_pools() replaces squeeze(pool2d(unsqueeze(x, -2)), -2) by a node pool1d(x), if the
// pooling does not change the inserted axis and no other node reads the replaced nodes.
//
// Example: unsqueeze(x, -2), max_pool2d([1, 8]), squeeze(-2) -> max_pool1d(x, [8])
#pragma once

#include "core/graph.h"

namespace cutegen::recipes {

Graph line_pools(Graph graph);

}  // namespace cutegen::recipes
