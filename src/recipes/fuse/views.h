// SPDX-License-Identifier: Apache-2.0
// Kinds of operators that move or fill elements without computing: views, slices, joins, fills.
//
// Contract: each function looks only at the operator and its arguments.
//
// Example: if (is_join(node)) joins.push_back(&node);
#pragma once

#include <optional>

#include "recipes/graph/decompose.h"

namespace cutegen::recipes {

// is_view() is true for operators that only change the shape or strides of a value. is_fill() is
// true for operators that fill a tensor with one constant.
bool is_view(const Node& node);
bool is_fill(const Node& node);
// Returns whether a view, such as expand, keeps the order of the elements and does not reshape
// them.
bool keeps_order(const Node& node);
// Returns whether a fill, such as zeros_like(x), takes its sizes from another value.
bool is_like(const Node& node);
// The constant of a fill, and the index of the argument that gives the constant. `value` is empty
// if this argument is not a number.
struct Fill {
  std::optional<double> value;
  size_t argument = 0;
};
Fill fill_of(const Node& node);
// Returns whether the operator returns parts of its input (slice, select, split, unbind).
bool is_slice(const Node& node);
// Returns whether the operator joins its operands along an existing axis (cat) or a new axis
// (stack).
bool is_join(const Node& node);
// The new axis along which an operator stacks tensors.
struct Stacked {
  size_t axis = 0;
  int64_t count = 0;  // tensors
};
// Returns nullopt unless the operator stacks tensors along an axis other than the first.
std::optional<Stacked> stacked(const Node& node);
// Returns the shape of stacked tensors after a reshape has merged the new axis with the axis before
// it.
Shape merged_turns(const Stacked& turns, Shape shape);

}  // namespace cutegen::recipes
