// SPDX-License-Identifier: Apache-2.0
// Writes: how forward() changes tensors that it mutates, if it only replaces some of their elements
// by new ones, as a cache of keys and values is written.
//
// Contract: find_writes() gives one Write for each mutated tensor, or an error that names a tensor
// which forward() changes in another way or reads besides. `source` is the value with the new
// elements, with the tensor's rank. Along `axis`, they replace the elements that the index tensor
// names, or neighbours from `start` on; a negative start counts from the end.
//
// Example: cache.index_copy_(0, slots, k) -> {"cache", "k", axis 0, "slots"}
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "core/task.h"

namespace cutegen::recipes {

struct Write {
  std::string tensor, source;
  size_t axis = 0;
  std::string index;   // empty: a slice
  bool wraps = false;  // a negative index counts from the end
  int64_t start = 0;
};

Result<std::vector<Write>> find_writes(const Task& task);

}  // namespace cutegen::recipes
