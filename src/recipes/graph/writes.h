// SPDX-License-Identifier: Apache-2.0
// Writes: the elements that a module's forward() replaces in a tensor that it mutates, such as a KV
// cache.
//
// Contract: find_writes() returns one Write for each mutated tensor. If forward() also reads the
// tensor or changes it in another way, the error names the tensor. `source` is the value with the
// new elements, which has as many axes as the tensor. Along `axis`, the new elements go to the
// positions in the index tensor or, without an index tensor, to consecutive positions from `start`
// on. A negative `start` counts from the end of the axis.
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
  std::string index;   // name of the index tensor; empty if the positions begin at `start`
  bool wraps = false;  // a negative position counts from the end
  int64_t start = 0;
  bool along = false;  // the index tensor has one position for each element of the source
  WriteMode mode = WriteMode::store;
  bool whole = false;  // the value replaces the whole tensor, whose old values may be read before
};

Result<std::vector<Write>> find_writes(const Task& task);

}  // namespace cutegen::recipes
