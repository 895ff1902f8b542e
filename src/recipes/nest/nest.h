// SPDX-License-Identifier: Apache-2.0
// Nest: the loops of a kernel. One loop replaces several neighbouring axes if every operand has a
// single stride along these axes.
//
// Contract: Nest::kept lists the loops over axes that the results have, and Nest::reduced those
// over reduced axes, both with the outermost loop first. `size` is a loop's size at the official
// shape (the shape in the task file), and `extent` is the size as an expression of the launch plan,
// such as "dim(x,0)". stride() returns how an operand's address changes from one iteration of a
// loop to the next: not at all, to the neighbouring element, or by a number of elements that a plan
// expression gives.
//
// Example: relu on [A, B, C] has one loop; x + bias[B, 1] on it has three.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "recipes/fuse/fused.h"

namespace cutegen::recipes {

struct Loop {
  std::vector<int> axes;
  int64_t size = 1;
  std::string extent = "1";
};

struct Nest {
  std::vector<Loop> kept, reduced;
  bool reduced_inside = false;  // the innermost loop is reduced
  // Whether several loops are reduced, and each operand is either contiguous along the whole row or
  // has one element for each run of the innermost loop. A vector may then contain elements of two
  // runs.
  bool in_runs = false;
  int64_t rows() const;    // product of the kept loops' sizes
  int64_t length() const;  // product of the reduced loops' sizes
  int64_t inner() const;   // a number that the vector width must divide
};

enum class Move { none, next, stride };
struct Stride {
  Move move = Move::none;
  std::string expression;  // for Move::stride
};

// Returns the vector widths for an innermost loop of `size` elements, widest first. A vector has at
// most 16 bytes of the narrowest dtype among the operands (except 1-byte dtypes), and at most 32
// bytes of the widest dtype.
std::vector<int64_t> vector_widths(const Fused& fused, int64_t size);
Nest make_nest(const Fused& fused);
// Returns the size of an operand's axis as a plan expression: the size of the corresponding axis of
// the loop nest, or a number if no axis of the nest corresponds.
std::string seen_size(const Fused& fused, const Operand& operand, size_t axis);
// These functions return plan expressions: the size and the stride of an operand's axis, and the
// offset in elements at which the operand's slice begins ("0" if it is no slice).
std::string size_text(const Fused& fused, const Operand& operand, size_t axis);
std::string stride_text(const Fused& fused, const Operand& operand, size_t axis);
std::string start_text(const Fused& fused, const Operand& operand);
// Returns Start::shift as a plan expression.
std::string shift_text(const Fused& fused, const Start& start);
// Returns the step (2 or 4) if the operand is every second or fourth element along the innermost
// axis of its tensor, and 1 for other operands.
int64_t turns_in(const Nest& nest, const Operand& operand);
// Returns whether one access can read both operands, such as x[..., ::2] and x[..., 1::2]. The
// operands must be slices of one tensor with the same step, and may differ only in the start along
// the last axis.
bool turns_together(const Operand& a, const Operand& b);
// Returns the plan expression for the vector width. Its value is `wanted` if the innermost size
// `size` is a multiple of `wanted` and every slice keeps vectors aligned, and 1 if not.
std::string width_text(const Fused& fused, const std::string& size, int64_t wanted);
Stride stride(const Fused& fused, const Operand& operand, const Loop& loop);
// Returns the loop along which a thread should take its items, or -1 if no loop is better. For all
// items of a thread, the kernel reads an operand only once if its address does not change along
// this loop.
int shared_loop(const Fused& fused, const Nest& nest);
// Returns whether the operand varies along the reduced loops, but not along the innermost loop.
bool one_a_run(const Fused& fused, const Nest& nest, const Operand& operand);

// Returns the axis of the operand that corresponds to axis `axis` of the nest, or -1 if no axis
// does.
inline int position(const Operand& operand, int axis) {
  auto it = std::find(operand.axes.begin(), operand.axes.end(), axis);
  return it == operand.axes.end() ? -1 : int(it - operand.axes.begin());
}

}  // namespace cutegen::recipes
