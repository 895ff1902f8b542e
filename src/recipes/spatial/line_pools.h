// SPDX-License-Identifier: Apache-2.0
// Pooling along one axis, which PyTorch records as pooling along two, the first of size 1.
//
// Contract: line_pools() replaces squeeze(pool2d(unsqueeze(x, -2)), -2) by a node pool1d(x), if the
// pooling leaves the added axis as it is. Other nodes stay; nobody may read the replaced ones.
//
// Example: unsqueeze(x, -2), max_pool2d([1, 8]), squeeze(-2) -> max_pool1d(x, [8])
#pragma once

#include "core/graph.h"

namespace cutegen::recipes {

Graph line_pools(Graph graph);

}  // namespace cutegen::recipes
