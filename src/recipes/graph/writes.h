// SPDX-License-Identifier: Apache-2.0
// Writes: the elements that a module's forward() replaces in a tensor that it mutates, such as a KV
// cache.
//
// Contract: find_writes() returns one Write for each mutated tensor. If forward() changes a tensor
// in a way that no recipe covers, the error names the tensor. `source` is the value with the new
// elements, which has as many axes as the tensor. Along `axis`, forward() writes the new elements
// to the positions in the index tensor or, without an index tensor, to consecutive positions from
// `start` on. A negative `start` counts from the end of the axis. If `whole` is set, `source`
// replaces the whole tensor, and forward() may also read the old values.
//
// Example: cache.index_copy_(0, slots, k) -> {"cache", "k", axis 0, "slots"}
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "core/task.h"

namespace cutegen::recipes {

// How a write combines the new element with the old element.
enum class WriteMode { store, add, multiply, largest, smallest };

struct Write {
  std::string tensor, source;
  size_t axis = 0;
  std::string index;   // name of the index tensor; empty: positions from `start` on
  bool wraps = false;  // negative positions count from the end
  int64_t start = 0;
  bool along = false;  // the index tensor has a position for each element of `source`
  WriteMode mode = WriteMode::store;
  bool whole = false;  // `source` replaces the whole tensor
};

Result<std::vector<Write>> find_writes(const Task& task);

}  // namespace cutegen::recipes
