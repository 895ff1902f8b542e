// SPDX-License-Identifier: Apache-2.0
// The text of the work after a product: its device function, its operands as tensors, and the loop
// over a tile's results.
//
// Contract: a kernel has one MatmulFinish for each of its products; most kernels have one product.
// Sizes and strides that are not static become arguments of the kernel, in `numbers`.
//
// Example: MatmulFinish f(c, 0); f.compute(); f.results(numbers);
#pragma once

#include "recipes/nest/contraction.h"
#include "recipes/text/kernel_text.h"

namespace cutegen::recipes {

// An operand of the operators after the product, as a kernel reads or writes it.
struct FactorAccess {
  const Operand* operand;
  int inst;
  std::string name, tensor, registers;
};

// Arguments of a kernel: a name and its plan expression.
using Numbers = std::vector<std::pair<std::string, std::string>>;

// The layouts of one kernel's operands. A size or stride that is not static becomes an argument.
class Layouts {
 public:
  // `prefix`: of the arguments' names.
  Layouts(const Contraction& c, Code& code, Numbers& numbers, std::string prefix = "")
      : c_(c), code_(code), numbers_(numbers), prefix_(std::move(prefix)) {}
  // Writes a stride: static if it is 0 or 1, else a new argument of the kernel.
  std::string stride_text(const Stride& s, const std::string& wanted);
  // Writes " + offset" for the batch of this CTA.
  std::string batch_offset(const Factor& factor, const std::string& prefix);
  // Declares the operands of `finish` as tensors (element of the vector, m, n, batch).
  std::string tensors(const std::vector<FactorAccess>& inputs,
                      const std::vector<FactorAccess>& outputs);

 private:
  std::string tensor(const FactorAccess& a);
  std::string size(const std::string& name, const std::string& extent);
  // Returns shape and stride of one mode of an operand of `finish`, innermost loop first.
  std::pair<std::string, std::string> mode(const FactorAccess& a, const std::vector<Loop>& loops,
                                           const std::string& letter, const std::string& whole);

  const Contraction& c_;
  Code& code_;
  Numbers& numbers_;
  std::string prefix_;
};

class MatmulFinish {
 public:
  // `part`: which of the joined products it is.
  MatmulFinish(const Contraction& c, size_t part);
  const std::vector<FactorAccess>& inputs() const { return inputs_; }
  const std::vector<FactorAccess>& outputs() const { return outputs_; }
  const Contraction& product() const { return c_; }
  Code& code() { return code_; }
  Layouts layouts(Numbers& numbers) { return {c_, code_, numbers, prefix_}; }
  // The device function for one element: from the product and other values to the results.
  std::string compute();
  // Loads, arithmetic and stores for the kVector results at (m, n, batch). `held`: the operands are
  // already in registers.
  std::string work(bool held = false) const;
  // The tensors, and the loop over the results of a tile. `ahead`: loads of several runs of results
  // come before their stores.
  std::string results(Numbers& numbers, bool ahead);

 private:
  std::string each_ahead() const;
  FactorAccess access(const Operand& operand, int inst);
  bool is_product(int inst) const;

  const Contraction& c_;
  std::string prefix_, function_;
  Code code_;
  std::vector<FactorAccess> inputs_, outputs_;
};

// Writes the call of gemm.each(), which runs `body` for kVector neighbouring results.
std::string each_text(int64_t groups, const std::string& body);

}  // namespace cutegen::recipes
