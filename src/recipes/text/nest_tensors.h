// SPDX-License-Identifier: Apache-2.0
// NestTensors: writes the CuTe tensors with which a kernel reads and writes the rows or columns of
// a loop nest.
//
// Contract: a thread processes elements of a row if the innermost loop is reduced or scanned, and a
// vector of neighbouring columns if not. view() writes the CuTe tensor of the thread's row or
// columns. The tensor has two modes: the element within a vector of kVector elements, and the step
// along the reduced axis. The kernel must declare the variables `along` and `across` with the text
// of shape_text(), and `row` or `column`. Strides that are not static become arguments of the
// kernel; strides() returns the arguments' values as expressions of the launch plan. An index
// tensor may choose the elements of an operand. If one index applies to the whole row or to all
// columns of the thread, view() adds it to the tensor's address. Otherwise, the kernel loads an
// index for each vector or element. The view of joined operands (JoinedParts) is a cutegen::Joined
// instead of a CuTe tensor; declare it with `auto`.
//
// Example: NestTensors t(fused, nest, code); "Tensor g_x = " + t.view(operand) + ";"
#pragma once

#include <map>
#include <utility>

#include "recipes/nest/nest.h"
#include "recipes/text/kernel_text.h"

namespace cutegen::recipes {

using StrideArgument = std::pair<std::string, std::string>;  // name, plan expression

// Writes the CuTe shape of `loops`, innermost first. The kernel's argument `prefix` followed by 2,
// such as "r2", is the size of loop 2. With the prefix 'r', the text converts sizes to Index. If
// `vectors` is set, the text divides the innermost size by kVector.
std::string shape_text(const std::vector<Loop>& loops, char prefix, bool vectors);

class NestTensors {
 public:
  NestTensors(const Fused& fused, const Nest& nest, Code& code)
      : fused_(fused), nest_(nest), code_(code) {}
  std::string view(const Operand& operand);
  // Does what view(operand) does, with the caller's strides between elements and between steps.
  std::string view(const Operand& operand, std::string element, const std::string& along);
  // Writes an operand's strides over `loops`, innermost first. If `vectors` is set, the innermost
  // stride is the stride between vectors, and `*element` becomes the stride between a vector's
  // elements.
  std::string strides_over(const Operand& operand, const std::vector<Loop>& loops, char prefix,
                           bool vectors, std::string* element);
  // After defer_checks(), load() writes loads that do not stop the kernel at an index outside its
  // axis, but set the kernel's variable `outside`. If checks_later() is true, the kernel must
  // contain the text of check(), which tests `outside`, at its end.
  void defer_checks(std::string outside) { outside_ = std::move(outside); }
  bool checks_later() const { return checks_later_; }
  std::string check() const { return "if (" + outside_ + ") __trap();\n"; }
  // After place_rows(), the kernel must declare the function `place`, which returns the coordinates
  // of a row or of a vector of columns. `inverses` are further arguments of the kernel.
  void place_rows(std::string place, const std::vector<StrideArgument>& inverses) {
    place_ = std::move(place);
    strides_.insert(strides_.end(), inverses.begin(), inverses.end());
  }
  // Declares the index tensors of `operand`, except index tensors with one index for the whole row
  // or all columns of a thread.
  std::string indices(const Operand& operand);
  // Writes the load of a vector of an input at `step`, with the input's index tensors, if any.
  std::string load(const Operand& operand, const std::string& tensor, const std::string& step,
                   const std::string& to);
  // Writes the address of the thread's row or first column.
  std::string base(const Operand& operand, std::string* element);
  const std::vector<StrideArgument>& strides() const { return strides_; }

 private:
  std::string view(const Operand& operand, std::string element, const std::string& along,
                   const std::string& positions);
  std::string view(const JoinedParts& joined);
  // Returns whether one index applies to a whole row, or to all columns of a thread.
  bool once(const Start& start) const;
  std::string row_address(const Operand& operand);
  std::string argument(const Operand& operand, const std::string& word,
                       const std::string& expression);
  std::string size_and_stride(const Operand& operand, size_t axis);
  std::string first_of(const Operand& operand, const Start& start);
  std::string first_and_step(const Operand& operand, const Start& start);
  std::string offset(const std::string& strides) const;
  bool row() const { return nest_.reduced_inside; }

  const Fused& fused_;
  const Nest& nest_;
  Code& code_;
  std::vector<StrideArgument> strides_;
  std::map<std::string, std::string> arguments_;  // by tensor and expression
  std::map<int, std::string> indices_;            // index operand -> name of its CuTe tensor
  std::string outside_, place_;
  bool checks_later_ = false;
};

}  // namespace cutegen::recipes
