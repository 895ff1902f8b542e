// SPDX-License-Identifier: Apache-2.0
// Gathers: operators that read the elements of a tensor at the positions in index tensors:
// embedding, index_select, x[ids] and gather.
//
// Contract: find_gather() returns nothing for other operators, and an error for a use that no
// recipe covers. `taken` lists the input's axes that index tensors replace. The axes of the
// indices' broadcast shape begin at axis `first` of the result; the input's other axes keep their
// order. If `along` is set, the index tensor has the result's shape instead (gather,
// take_along_dim).
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
  size_t axis = 0;  // of the input
  std::string index;
  bool wraps = false;   // a negative index counts from the end of the axis
  bool modulo = false;  // every index is taken modulo the size of the axis
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
