// SPDX-License-Identifier: Apache-2.0
// Passes: the body of a reduction kernel, pass by pass over the reduced axis.
//
// Contract: reductions of one depth share a pass; results follow in a last pass if they vary along
// the reduced axis, else the first thread of each row writes them. With `online`, the maximum and
// the sum of exponentials that depends on it are accumulated together.
//
// Example: Passes(fused, code, {.column = false, .cached = true}).text()
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "recipes/emit.h"

namespace cutegen::recipes {

struct PassOptions {
  bool column = false, cached = false, online = false;
};

// A maximum and the sum of exp(x - maximum) over the same x: instructions of a Fused.
struct MaxAndSum {
  int max = -1, sum = -1;
};
[[nodiscard]] std::optional<MaxAndSum> find_max_and_sum(const Fused& fused);

class Passes {
 public:
  Passes(const Fused& fused, Code& code, PassOptions options);
  [[nodiscard]] std::string text();
  // Names: register array of an element operand, CuTe tensor of an operand, of an output.
  [[nodiscard]] const std::string& input_tensor(size_t operand) const { return inputs_[operand]; }
  [[nodiscard]] const std::string& output_tensor(size_t output) const { return outputs_[output]; }
  // Operands (indices into Fused::inputs) that the kernel reads, by level.
  [[nodiscard]] std::vector<int> operands(Level level) const;
  // Floats of the largest accumulator.
  [[nodiscard]] int words() const;

 private:
  [[nodiscard]] std::string pass(int depth);
  [[nodiscard]] std::string row_values(int depth);
  [[nodiscard]] std::string combine(int inst, const std::string& type,
                                    const std::string& accumulator);
  [[nodiscard]] std::string outputs();
  [[nodiscard]] std::string loop(const std::string& body) const;
  [[nodiscard]] std::string elements(const std::vector<int>& targets);
  [[nodiscard]] const Inst& at(int inst) const { return fused_.insts[static_cast<size_t>(inst)]; }
  [[nodiscard]] bool paired(int inst) const {
    return pair_ && (pair_->max == inst || pair_->sum == inst);
  }
  [[nodiscard]] int depth_of(int inst) const;

  const Fused& fused_;
  Code& code_;
  PassOptions options_;
  std::optional<MaxAndSum> pair_;
  std::vector<int> used_;
  std::vector<std::string> inputs_, outputs_;
  std::vector<int> done_;  // row values already written
};

}  // namespace cutegen::recipes
