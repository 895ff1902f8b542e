// SPDX-License-Identifier: Apache-2.0
// The part of an axis that a slice reads.
//
// Contract: part_of() reads the arguments of slice, narrow, select, split, unbind and the like, for
// one output of a node whose input has the given shape. part_of() returns nullopt for arguments
// that a loop nest cannot express.
//
// Example: part_of(narrow(x, 0, 8, 4), 0, {64, 32}) -> dim 0, at 8
#pragma once

#include <optional>

#include "core/graph.h"

namespace cutegen::recipes {

// The elements that a slice takes along one axis of its input.
struct SlicePart {
  size_t dim = 0;
  int64_t raw = 0, at = 0;  // raw: start in the graph, may be negative; at: start >= 0
  bool drops = false;       // the result lacks the axis
  bool by_number = false;   // the bounds are numbers; if false: one of equal parts
  int64_t step = 1;         // if above 1: every step-th element from `at` on
};

std::optional<SlicePart> part_of(const Node& node, size_t output, const Shape& shape);

}  // namespace cutegen::recipes
