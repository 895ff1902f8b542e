// SPDX-License-Identifier: Apache-2.0
// The CuTe tensors with which a kernel reads and writes the rows or columns of a loop nest.
//
// Contract: view() is the tensor of this thread's row (the innermost loop is reduced or scanned) or
// columns: (element of a vector of kVector, step along the axis). The kernel declares `along` and
// `across` with shape_text(), and `row` or `column`. Strides that are not static become arguments
// of the kernel; strides() has their plan expressions.
//
// Example: NestTensors t(fused, nest, code); "Tensor g_x = " + t.view(operand) + ";"
#pragma once

#include <utility>

#include "recipes/nest/nest.h"
#include "recipes/text/kernel_text.h"

namespace cutegen::recipes {

using StrideArgument = std::pair<std::string, std::string>;  // argument, expression

// The shape of `loops`, innermost first. Their sizes are arguments: the prefix and a number. With
// `vectors`, the innermost loop counts vectors. Sizes with the prefix 'r' become an Index.
std::string shape_text(const std::vector<Loop>& loops, char prefix, bool vectors);

class NestTensors {
 public:
  NestTensors(const Fused& fused, const Nest& nest, Code& code)
      : fused_(fused), nest_(nest), code_(code) {}
  std::string view(const Operand& operand);
  // The same with given strides between elements and between steps.
  std::string view(const Operand& operand, std::string element, const std::string& along);
  // An operand's strides over `loops`, innermost first. With `vectors`, the innermost loop counts
  // vectors, and `element` gets the stride between the elements of a vector.
  std::string strides_over(const Operand& operand, const std::vector<Loop>& loops, char prefix,
                           bool vectors, std::string* element);
  // The address of this thread's row or column.
  std::string base(const Operand& operand, std::string* element);
  const std::vector<StrideArgument>& strides() const { return strides_; }

 private:
  bool row() const { return nest_.reduced_inside; }

  const Fused& fused_;
  const Nest& nest_;
  Code& code_;
  std::vector<StrideArgument> strides_;
};

}  // namespace cutegen::recipes
