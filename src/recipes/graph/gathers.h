// SPDX-License-Identifier: Apache-2.0
// Gathers: operators that read a tensor at the positions that index tensors contain: embedding,
// index_select, x[ids] and gather.
//
// Contract: find_gather() returns nullopt for operators that are not gathers, and an error for a
// use that no recipe covers. `taken` lists the input's axes along which an index tensor gives the
// position. The index tensors are broadcast to a shape with `rank` axes. In the result, these axes
// replace the axes in `taken` and begin at axis `first`. The input's axes that `taken` does not
// list keep their order. If `along` is set, the operator (gather, take_along_dim) has one index
// tensor, which has the result's shape.
//
// Example: table[ids] with ids [8, 512] -> {"table", {{0, "ids", true}}, first 0, rank 2}
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "core/task.h"

namespace cutegen::recipes {

struct Taken {
  size_t axis = 0;      // axis of the input
  std::string index;    // name of the index tensor
  bool wraps = false;   // negative positions count from the end of the axis
  bool modulo = false;  // positions count modulo the size of the axis
};

struct Gather {
  std::string input;
  std::vector<Taken> taken;
  size_t first = 0, rank = 0;
  bool along = false;
};

bool is_gather(const Node& node);
Result<std::optional<Gather>> find_gather(const Graph& graph, const Node& node);

}  // namespace cutegen::recipes
