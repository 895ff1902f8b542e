// SPDX-License-Identifier: Apache-2.0
// Writes: the elements that forward() replaces in a tensor that it mutates, such as a KV cache.
//
// Contract: find_writes() returns one Write for each mutated tensor, or an error that names a
// tensor that forward() also reads or changes in another way. `source` is the value with the new
// elements; it has the tensor's rank. Along `axis`, the new elements go to the positions in the
// index tensor, or to consecutive positions from `start` on. A negative `start` counts from the end
// of the axis.
//
// Example: cache.index_copy_(0, slots, k) -> {"cache", "k", axis 0, "slots"}
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "core/task.h"

namespace cutegen::recipes {

// How a write combines the new element with the old one.
enum class WriteMode { store, add, multiply, largest, smallest };

struct Write {
  std::string tensor, source;
  size_t axis = 0;
  std::string index;   // empty: a slice
  bool wraps = false;  // a negative index counts from the end
  int64_t start = 0;
  bool along = false;  // the index has a place for each element of the source
  WriteMode mode = WriteMode::store;
  bool whole = false;  // the value replaces the whole tensor, whose old values may be read before
};

Result<std::vector<Write>> find_writes(const Task& task);

}  // namespace cutegen::recipes
