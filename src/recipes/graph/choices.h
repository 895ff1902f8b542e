// SPDX-License-Identifier: Apache-2.0
// Choices: operators that put elements of a row in order: topk, sort and argsort.
//
// Contract: find_choice() returns nothing for other operators, and an error for a use that no
// recipe covers. The node returns the values and their positions; argsort returns only positions.
// Equal values keep the order of their positions. NaN counts as the largest value, as in PyTorch.
// `count` is 0 for a whole row.
//
// Example: topk(x, 6, -1) with x [4096, 64] -> {"x", count 6, largest true}
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "core/task.h"

namespace cutegen::recipes {

// The most elements that a kernel selects one by one from a row.
inline constexpr int64_t kMostSelected = 64;
// The most elements that a kernel selects from a long row.
inline constexpr int64_t kMostBounded = 256;
inline constexpr int64_t kMostSorted = 4096;  // the longest row that a CTA sorts in shared memory
inline constexpr int64_t kLongest = int64_t{1} << 24;  // the longest row that several CTAs sort

struct Choice {
  std::string input;
  int64_t count = 0;
  bool largest = true;
  bool positions_only = false;
  bool long_row = false;    // a CTA could not sort the row
  bool integers = false;    // keys have 16 bytes
  int inst = -1;            // the instruction that computes an element of the row
  std::string extent = {};  // number of results along the row, as a plan expression
  // Whether the kernel selects the first elements. If not, it sorts the row.
  bool selects() const {
    return !integers && count > 0 && count <= (long_row ? kMostBounded : kMostSelected);
  }
  // The elements that a CTA sorts at once.
  int64_t capacity() const { return integers ? kMostSorted / 2 : kMostSorted; }
};

bool is_choice(const Node& node);
Result<std::optional<Choice>> find_choice(const Graph& graph, const Node& node);

}  // namespace cutegen::recipes
