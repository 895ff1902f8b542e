// SPDX-License-Identifier: Apache-2.0
// The CuTe tensors with which a kernel reads and writes the rows or columns of a loop nest.
//
// Contract: view() is the tensor of this thread's row (the innermost loop is reduced or scanned) or
// columns: (element of a vector of kVector, step along the axis). The kernel declares `along` and
// `across` with shape_text(), and `row` or `column`. Strides that are not static become arguments
// of the kernel; strides() has their plan expressions. An index tensor may choose elements of an
// operand. If the index is the same for the whole row or for all of the thread's columns, it is
// added to the tensor's address; otherwise the kernel reads it for each vector or element.
//
// Example: NestTensors t(fused, nest, code); "Tensor g_x = " + t.view(operand) + ";"
#pragma once

#include <map>
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
  // Like view(), with given strides between elements and between steps.
  std::string view(const Operand& operand, std::string element, const std::string& along);
  // An operand's strides over `loops`, innermost first. With `vectors`, the innermost loop counts
  // vectors, and `element` gets the stride between the elements of a vector.
  std::string strides_over(const Operand& operand, const std::vector<Loop>& loops, char prefix,
                           bool vectors, std::string* element);
  // From now on, a load with an index outside its axis does not stop the kernel at once: it sets
  // the variable `outside`. If checks_later(), the kernel has to test this variable at its end.
  void defer_checks(std::string outside) { outside_ = std::move(outside); }
  bool checks_later() const { return checks_later_; }
  std::string check() const { return "if (" + outside_ + ") __trap();\n"; }
  // Declares the tensors of the indices that choose the elements of `operand` one by one.
  std::string indices(const Operand& operand);
  // Loads a vector of an input at `step`, through index tensors if there are any.
  std::string load(const Operand& operand, const std::string& tensor, const std::string& step,
                   const std::string& to);
  // The address of this thread's row or column.
  std::string base(const Operand& operand, std::string* element);
  const std::vector<StrideArgument>& strides() const { return strides_; }

 private:
  // Whether one index chooses the elements of a whole row, or of a thread's columns.
  bool once(const Start& start) const;
  std::string row_address(const Operand& operand);
  std::string size_and_stride(const Operand& operand, size_t axis);
  std::string first_of(const Operand& operand, const Start& start);
  std::string first_and_step(const Operand& operand, const Start& start);
  bool row() const { return nest_.reduced_inside; }

  const Fused& fused_;
  const Nest& nest_;
  Code& code_;
  std::vector<StrideArgument> strides_;
  std::map<int, std::string> indices_;  // tensors, by operand
  std::string outside_;
  bool checks_later_ = false;
};

}  // namespace cutegen::recipes
