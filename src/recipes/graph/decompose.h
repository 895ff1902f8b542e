// SPDX-License-Identifier: Apache-2.0
// Rewrites composite operators as nodes of simpler ones: norms over channels and groups, losses,
// operators with several results.
//
// Contract: decompose() returns a graph with the same values under the same names, in which those
// operators are pointwise operators, reductions and views. If it does not support a use of an
// operator, the error is `unsupported`. `extents` has plan expressions, by value and axis, for
// sizes that no tensor has (the number of groups of a group norm).
//
// The graph may have operators that PyTorch does not have:
// - cutegen.pick(x, t, d): the element of x at position t along axis d
// - cutegen.part(x, dim, k): the k-th of equal parts along an axis
// - cutegen.inside(x, low, high), added by algebra: x with zeros for the first `low` and the last
//   `high` elements along each axis after the first two
// - cutegen.counting(start, step): start, start + step, ... along one axis of fixed length; with
//   kAnyCount, the length may follow the task's sizes; with a value and an axis, it is that size
// - cutegen.shift(x, dim, rule, shift, reversed, fill, before, after): element i along an axis is
//   element shift + i of x, or shift - i. The rule says which element an index outside the axis
//   means. "": no index lies outside; "cyclic", "modulo": the index modulo the size; "nearest": the
//   nearest element; "reflect": its mirror image; "fill": `before` and `after` elements are `fill`
// - cutegen.affine(x, axes, sizes, fill): an element at a sum of multiples of its position.
//   axes has [[[axis, step], ...], shift, at] for each axis of x: the place along it is `shift` (a
//   number or an expression; `at` is its value at the official shape) plus position * step for
//   these axes of the result. sizes has an expression for each axis of the result, or "". "@0" is
//   the size of x along axis 0. Places outside x are `fill`; without it, no place lies outside.
// - cutegen.filled(number, value, axis, ...): as large as these axes of these values
// - cutegen.values(list): a tensor of constants, in the order of its elements; the worker writes it
// - cutegen.scatter(x, part, axis, index, along, mode, wraps): x, with the elements of `part`
//   put to the places along `axis` that the index says; one index for each place along that axis of
//   `part` or, if `along`, for each element. The mode is store, add, multiply, amax or amin.
//
// Example: mse_loss(a, b, mean) -> square(a - b), mean of that
#pragma once

#include <map>
#include <string>

#include "core/task.h"

namespace cutegen::recipes {

inline constexpr const char* kPart = "cutegen.part";
inline constexpr const char* kInside = "cutegen.inside";
inline constexpr const char* kShift = "cutegen.shift";
inline constexpr const char* kCounting = "cutegen.counting";
inline constexpr bool kAnyCount = true;
inline constexpr const char* kAffine = "cutegen.affine";
inline constexpr const char* kFilled = "cutegen.filled";
inline constexpr const char* kValues = "cutegen.values";
inline constexpr const char* kScatter = "cutegen.scatter";

struct Decomposed {
  Graph graph;
  std::map<std::string, std::map<size_t, std::string>> extents;
};

Result<Decomposed> decompose(const Graph& graph, const Task& task);

}  // namespace cutegen::recipes
