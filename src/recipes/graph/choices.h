// SPDX-License-Identifier: Apache-2.0
// Choices: the operators topk, sort and argsort, which order the elements of each row.
//
// Contract: find_choice() returns nullopt for other operators, and an error for a use that no
// recipe covers. topk and sort return values and their positions in the row; argsort returns only
// positions. Equal values keep the order of their positions. As in PyTorch, NaN counts as the
// largest value. `count` is the number of elements that topk returns, or 0 for sort and argsort.
//
// Example: topk(x, 6, -1) with x [4096, 64] -> {"x", count 6, largest true}
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "core/task.h"

namespace cutegen::recipes {

// The largest `count` for which a kernel selects elements from a row that a CTA could sort in
// shared memory.
inline constexpr int64_t kMostSelected = 64;
// The largest `count` for which a kernel selects elements from a row that is too long to be sorted
// in shared memory.
inline constexpr int64_t kMostBounded = 256;
inline constexpr int64_t kMostSorted = 4096;  // the longest row that a CTA sorts in shared memory
inline constexpr int64_t kLongest = int64_t{1} << 24;  // the longest row that several CTAs sort

struct Choice {
  std::string input;
  int64_t count = 0;
  bool largest = true;
  bool positions_only = false;
  bool long_row = false;    // the row is too long to be sorted in shared memory
  bool integers = false;    // the row has integers, so that kernels sort 16-byte keys
  int inst = -1;            // the instruction that computes an element of the row
  std::string extent = {};  // number of results along the row: an expression of the launch plan
  // Returns whether the kernel selects the first `count` elements instead of sorting the row.
  bool selects() const {
    return !integers && count > 0 && count <= (long_row ? kMostBounded : kMostSelected);
  }
  // Returns how many elements a CTA can sort in shared memory.
  int64_t capacity() const { return integers ? kMostSorted / 2 : kMostSorted; }
};

bool is_choice(const Node& node);
Result<std::optional<Choice>> find_choice(const Graph& graph, const Node& node);

}  // namespace cutegen::recipes
