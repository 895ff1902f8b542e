// SPDX-License-Identifier: Apache-2.0
// MatmulFinish: writes the pointwise work after a product: a device function for one element, the
// operands as CuTe tensors, and the loop over the results of a tile.
//
// Contract: each product of a kernel has its own MatmulFinish. Most kernels compute one product.
// The functions add sizes and strides that are not static to `numbers`, the arguments of the
// kernel.
//
// Example: MatmulFinish f(c, 0); f.compute(); f.results(numbers);
#pragma once

#include "recipes/nest/contraction.h"
#include "recipes/text/kernel_text.h"
#include "recipes/text/shared_values.h"

namespace cutegen::recipes {

// A tensor that the pointwise work after the product reads or writes, with the kernel's names for
// the pointer, the CuTe tensor and the registers.
struct FactorAccess {
  const Operand* operand;
  int inst;
  std::string name, tensor, registers;
};

enum class ResultAxis { m, n, batch };

// Arguments of a kernel, as pairs of a name and an expression of the launch plan.
using Numbers = std::vector<std::pair<std::string, std::string>>;

// Writes the layouts of a kernel's operands. A size or stride that is not static becomes an
// argument of the kernel.
class Layouts {
 public:
  // The names of the arguments begin with `prefix`.
  Layouts(const Contraction& c, Code& code, Numbers& numbers, std::string prefix = "")
      : c_(c), code_(code), numbers_(numbers), prefix_(std::move(prefix)) {}
  // Writes a stride: a static one if it is 0 or 1, and a new argument of the kernel otherwise.
  std::string stride_text(const Stride& s, const std::string& wanted);
  // Writes " + " and the offset of the CTA's batch in the factor's tensor.
  std::string batch_offset(const Factor& factor, const std::string& prefix);
  // If the axis (m, n or batch) has several loops, declares the coordinates of these loops: at_m,
  // at_n or at_batch.
  std::string coordinates(ResultAxis axis);
  // Declares an operand as a CuTe tensor with the modes (element of the vector, m, n, batch).
  std::string tensor(const FactorAccess& a, const std::string& vector = "kVector");
  // Declares the operands as CuTe tensors with the modes (element of the vector, m, n, batch).
  std::string tensors(const std::vector<FactorAccess>& inputs,
                      const std::vector<FactorAccess>& outputs);

 private:
  std::string size(const std::string& name, const std::string& extent);
  // Returns the sizes of several loops, with the innermost loop first.
  std::vector<std::string> sizes(const std::vector<Loop>& loops, const std::string& letter);
  // Returns the shape and the stride of one mode of an operand, with the innermost loop first.
  std::pair<std::string, std::string> mode(const FactorAccess& a, const std::vector<Loop>& loops,
                                           const std::string& letter, const std::string& whole);

  const Contraction& c_;
  Code& code_;
  Numbers& numbers_;
  std::string prefix_;
};

// Where the results lie: at (m, n, batch), or at the coordinates that Layouts::coordinates()
// declares.
enum class Places { indices, coordinates };
// Writes the expression for the vector of `tensor` at the place of the results.
std::string place_text(const Contraction& c, const std::string& tensor, Places places);
// Indents whole lines; the text may be empty.
std::string inner(const std::string& text, int columns);

// The method of a product's class in the kernel, such as WgmmaGemm, that calls a function for each
// vector of results.
inline constexpr const char* kEach = "each<kVector>";

class MatmulFinish {
 public:
  // `part` is the index of the product among the products of a joined kernel (nest/joined.h).
  MatmulFinish(const Contraction& c, size_t part);
  const std::vector<FactorAccess>& inputs() const { return inputs_; }
  const std::vector<FactorAccess>& outputs() const { return outputs_; }
  const Contraction& product() const { return c_; }
  const std::string& function() const { return function_; }  // that compute() writes
  Code& code() { return code_; }
  Layouts layouts(Numbers& numbers) { return {c_, code_, numbers, prefix_}; }
  // Writes the device function that computes the results at one position from the product's result
  // and the other operands. If the results of a vector share values, also writes a function that
  // computes these values.
  std::string compute();
  // Writes the declarations of the shared values and the call of their function, if there are any.
  std::string shared() const;
  // Returns the arguments with which a kernel calls the function for the result `v` of a vector.
  // The list lacks the variables that receive the function's results.
  std::vector<std::string> values() const;
  // Writes loads, arithmetic and stores for kVector neighbouring results. If `held` is set, takes
  // the operands from registers, not from memory.
  std::string work(Places places = Places::indices, bool held = false) const;
  // Writes the declarations of the tensors, and the call of the method `each`, which loops over the
  // results of a tile. If `ahead` is set, the loop loads operands of several result vectors before
  // it stores a vector. If `packs` is set, the product's class has the method each_packed().
  std::string results(Numbers& numbers, bool ahead, bool packs = false,
                      const std::string& each = kEach);

 private:
  std::string each_ahead(const std::string& coordinates) const;
  FactorAccess access(const Operand& operand, int inst);
  bool is_product(int inst) const;
  void find_shared(const std::vector<int>& results);
  // Returns the inputs that the function for one position reads or, if `once` is set, the inputs
  // that the function for shared values reads.
  std::vector<const FactorAccess*> read_inputs(bool once) const;
  std::string shared_name() const { return function_ + "_shared"; }

  const Contraction& c_;
  std::string prefix_, function_;
  Code code_;
  std::vector<FactorAccess> inputs_, outputs_;
  SharedValues shared_;
};

// Writes the call of the method `each`, which runs `body` for each vector of kVector neighbouring
// results. The text `coordinates` stands before the check that skips vectors outside the result, so
// that it runs for all vectors.
std::string each_text(const std::string& each, int64_t groups, const std::string& coordinates,
                      const std::string& body);

}  // namespace cutegen::recipes
