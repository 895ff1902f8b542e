// SPDX-License-Identifier: Apache-2.0
// Nest: the loops that remain after merging neighbouring axes along which every operand moves
// alike.
//
// Contract: loops are outermost first, split into kept and reduced ones. `size` is the official
// size, `extent` the plan expression. stride() says how an operand moves along a loop: not at all,
// to the neighbouring element, or by the number of elements in the expression.
//
// Example: relu on [A, B, C] has one loop; x + bias[B, 1] on it has three.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "recipes/nest/fused.h"

namespace cutegen::recipes {

struct Loop {
  std::vector<int> axes;
  int64_t size = 1;
  std::string extent = "1";
};

struct Nest {
  std::vector<Loop> kept, reduced;
  bool reduced_inside = false;  // the innermost loop is a reduced one
  // Whether several loops are reduced, and each operand is contiguous along the row or has one
  // element for each run of the innermost loop. Then a vector may contain elements of two runs.
  bool in_runs = false;
  int64_t rows() const;    // official product of the kept loops
  int64_t length() const;  // official product of the reduced loops
  int64_t inner() const;   // the number of elements that the vector width must divide
};

enum class Move { none, next, stride };
struct Stride {
  Move move = Move::none;
  std::string expression;  // for Move::stride
};

// Vector widths worth trying on an innermost loop of `size` elements, widest first; 16 bytes at
// most for the widest element of the operands.
std::vector<int64_t> vector_widths(const Fused& fused, int64_t size);
Nest make_nest(const Fused& fused);
// The size of an operand's axis: the size of the nest's axis that it follows, or a number if it
// follows none.
std::string seen_size(const Fused& fused, const Operand& operand, size_t axis);
// Size and stride of an operand's own axis, and where its slice begins ("0": the whole tensor), in
// elements, as plan expressions.
std::string size_text(const Fused& fused, const Operand& operand, size_t axis);
std::string stride_text(const Fused& fused, const Operand& operand, size_t axis);
std::string start_text(const Fused& fused, const Operand& operand);
// What an index along an axis is added to or subtracted from, as a plan expression.
std::string shift_text(const Fused& fused, const Start& start);
// How many lists of elements are interleaved in the operand's tensor; 1: only the operand.
int64_t turns_in(const Nest& nest, const Operand& operand);
// Whether two operands are interleaved lists of the same elements of a tensor, or the same list.
bool turns_together(const Operand& a, const Operand& b);
// The plan expression of the vector's width: `wanted` if the innermost size, a plan expression, is
// a multiple of it, and every slice keeps vectors aligned; else 1.
std::string width_text(const Fused& fused, const std::string& size, int64_t wanted);
Stride stride(const Fused& fused, const Operand& operand, const Loop& loop);
// Whether the operand differs along the reduced loops, but not along the innermost one.
bool one_a_run(const Fused& fused, const Nest& nest, const Operand& operand);

// Which of the operand's axes `axis` is, or -1.
inline int position(const Operand& operand, int axis) {
  auto it = std::find(operand.axes.begin(), operand.axes.end(), axis);
  return it == operand.axes.end() ? -1 : int(it - operand.axes.begin());
}

}  // namespace cutegen::recipes
