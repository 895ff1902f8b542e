// SPDX-License-Identifier: Apache-2.0
// Rewrites composite operators as simpler operators: norms over channels and groups, losses, and
// operators with several results.
//
// Contract: decompose() returns a graph with the same values under the same names, in which
// pointwise operators, reductions and views replace the composite operators. If decompose() does
// not support a use of an operator, the error is `unsupported`. `extents` maps a value's name and
// an axis to an expression of the launch plan, for each size that is not the size of any tensor's
// axis, such as the number of groups of a group norm.
//
// The graph may contain these operators, which PyTorch does not have:
// - cutegen.pick(x, t, d) selects the element of x at position t along axis d.
// - cutegen.part(x, dim, k) selects part k of x, if axis dim is divided into equal parts.
// - cutegen.inside(x, low, high) is x with zeros in place of the first `low` and the last `high`
//   elements along each axis after the first two. Only rewrites (algebra/rewrites.h) add
//   cutegen.inside.
// - cutegen.counting(start, step) is a tensor with one axis and the values start, start + step, ...
//   Its length is a constant of the module, unless there are more arguments. The argument kAnyCount
//   says that the length may depend on the task's sizes. The arguments (value, axis) say that the
//   length is the size of the value's axis. The arguments (value, axis, expression) say that the
//   length is the expression, in which "@0" means the size of the value along axis 0.
// - cutegen.shift(x, dim, rule, shift, reversed, fill, before, after): along axis `dim`, element
//   i of the result is element shift + i of x, or shift - i if `reversed`. The argument `rule` says
//   what an index outside the axis means. With "", no index is outside. With "cyclic" and "modulo",
//   the index counts modulo the size. "nearest" means the nearest element, and "reflect" the mirror
//   image. With "fill", the result has `before` elements with the value `fill` at the start and
//   `after` such elements at the end.
// - cutegen.affine(x, axes, sizes, fill) reads x at indices that are linear in the result's
//   indices. For each axis of x, `axes` has [[[axis, step], ...], shift, at]: the index along the
//   axis of x is `shift` plus the sum of step * (index along the result's axis `axis`). `shift` is
//   a number or an expression, and `at` is the value of `shift` at the sizes in the task file. For
//   each axis of the result, `sizes` has an expression or "". "@0" in an expression means the size
//   of x along axis 0. Elements outside x have the value `fill`. Without the argument `fill`, no
//   index of a cutegen.affine lies outside x.
// - cutegen.blocks(x, filter) divides each image of x, [n, c, h, w], into blocks of the filter's
//   size: [n, c, h / fh, fh, w / fw, fw]. The plan requires that the blocks cover the image.
// - cutegen.filled(number, value, axis, ...) is a tensor that contains only the number. Each pair
//   of a value and an axis among the arguments gives the size of one axis of the result.
// - cutegen.values(list) is a tensor with the constants of the list. The torch worker, the process
//   that traces modules, adds cutegen.values to graphs.
// - cutegen.scatter(x, part, axis, index, along, mode, wraps) is x with the elements of `part` at
//   the positions along `axis` that `index` contains. `index` has one position for each element of
//   `part` if `along` is set, and one for each slice of `part` along `axis` if not. The argument
//   `mode` is store, add, multiply, amax or amin. If `wraps` is set, negative positions count from
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
inline constexpr const char* kBlocks = "cutegen.blocks";
inline constexpr const char* kFilled = "cutegen.filled";
inline constexpr const char* kValues = "cutegen.values";
inline constexpr const char* kScatter = "cutegen.scatter";

struct Decomposed {
  Graph graph;
  std::map<std::string, std::map<size_t, std::string>> extents;
};

Result<Decomposed> decompose(const Graph& graph, const Task& task);

}  // namespace cutegen::recipes
