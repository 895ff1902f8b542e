// SPDX-License-Identifier: Apache-2.0
// Rewrites composite operators as simpler operators: norms over channels and groups, losses, and
// operators with several results.
//
// Contract: decompose() returns a graph with the same values under the same names, in which
// pointwise operators, reductions and views replace the composite operators. If it does not support
// a use of an operator, the error is `unsupported`. `extents` has the sizes that are not the size
// of any tensor's axis, such as the number of groups of a group norm. It maps a value's name and an
// axis to a plan expression.
//
// The graph may contain these operators, which PyTorch does not have:
// - cutegen.pick(x, t, d): the element of x at position t along axis d
// - cutegen.part(x, dim, k): the k-th of equal parts of x along the axis
// - cutegen.inside(x, low, high): x, in which the first `low` and the last `high` elements along
//   each axis after the first two are zero. Only rewrites (algebra/rewrites.h) add this operator.
// - cutegen.counting(start, step): a tensor with one axis and the values start, start + step, ...
//   The module fixes its length. With the further argument kAnyCount, its length may depend on the
//   task's sizes. With a value and an axis as further arguments, its length is the size of that
//   axis.
// - cutegen.shift(x, dim, rule, shift, reversed, fill, before, after): along axis `dim`, element i
//   of the result is element shift + i of x, or shift - i if `reversed`. The rule says how to treat
//   an index outside the axis. "": there is no such index; "cyclic", "modulo": the index is taken
//   modulo the size; "nearest": it means the nearest element; "reflect": it means the mirror image;
//   "fill": the result has `before` elements with the value `fill` at the start and `after` at the
//   end.
// - cutegen.affine(x, axes, sizes, fill): reads x at indices that are linear in the result's
//   indices. axes has [[[axis, step], ...], shift, at] for each axis of x. The index along that
//   axis is `shift` plus the sum of step * (index along the result's axis `axis`). `shift` is a
//   number or an expression, and `at` is its value at the official shape. sizes has an expression
//   for each axis of the result, or "". "@0" in an expression means the size of x along axis 0.
//   Elements outside x are `fill`. Without `fill`, no index lies outside.
// - cutegen.filled(number, value, axis, ...): a tensor filled with the number. Each pair of a value
//   and an axis gives the size of one axis of the result.
// - cutegen.values(list): a tensor with these constants. The torch worker writes this operator.
// - cutegen.scatter(x, part, axis, index, along, mode, wraps): x with the elements of `part` stored
//   at the positions along `axis` that `index` contains. `index` has one position for each element
//   of `part` if `along` is set, and otherwise one for each slice of `part` along that axis. The
//   mode is store, add, multiply, amax or amin. If `wraps` is set, negative positions count from
//   the end.
//
// Example: mse_loss(a, b, mean) -> mean(square(a - b))
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
