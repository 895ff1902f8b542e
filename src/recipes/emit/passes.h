// SPDX-License-Identifier: Apache-2.0
// Passes: the bodies of reduction kernels, pass by pass over the reduced axis.
//
// Contract: a reduction has depth d if it depends on a chain of d - 1 other reductions. Reductions
// of the same depth share a pass. Results that vary along the reduced axis are computed in a last
// pass; the first thread of each row writes the others. With `online`, two reductions that depend
// on each other are accumulated together (Joint). text() is one kernel with all passes. With
// `split`, several CTAs share a row: partial(d) is the kernel of pass d, in which each CTA writes
// its accumulators to scratch; later kernels and finish() merge them in a fixed order. With
// `resident`, the threads of a CTA or a cluster share a row, and element operands that differ
// between rows stay in shared memory. If elements stay on the SM, the first pass may replace them
// by values computed from them, which later passes read (kept_values.h).
//
// Example: Passes(fused, code, {.column = false, .cached = true}).text()
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "recipes/nest/accuracy.h"
#include "recipes/nest/kept_values.h"
#include "recipes/text/kernel_text.h"

namespace cutegen::recipes {

struct PassOptions {
  bool column = false, cached = false, online = false, split = false;
  bool resident = false;         // elements stay in shared memory, of one CTA or of a cluster
  bool turns = false;            // and the next row's elements arrive while results are written
  bool clustered = false;        // of a column kernel: the CTAs of a cluster share columns
  std::set<size_t> packed = {};  // operands that registers keep in their own dtype
  Accuracy accuracy = {};
  // Operands whose elements in shared memory a computed value may replace.
  std::vector<size_t> room = {};
};

// Two reductions over the same x that one pass can accumulate, though the second depends on the
// first: max(x) and sum(exp(x - max)), or sum(x) and sum((x - mean)^2). Instructions of a Fused.
struct Joint {
  int first = -1, second = -1;
  bool moments = false;
};
std::optional<Joint> find_joint(const Fused& fused);

// Accumulators that a pass writes to scratch: the tensor's name, their type and size in floats.
struct Parts {
  std::string name, type;
  int words = 1, depth = 1;
};

class Passes {
 public:
  Passes(const Fused& fused, Code& code, const PassOptions& options);
  std::string text();
  std::string partial(int depth);
  std::string finish();
  int depth() const;  // the number of passes that reduce
  std::vector<Parts> parts() const;
  // Names in the kernel: of a value, of the CuTe tensor of an operand, of an output.
  const std::string& id(int inst) const { return code_.id(inst); }
  const std::string& input_tensor(size_t operand) const { return inputs_[operand]; }
  const std::string& output_tensor(size_t output) const { return outputs_[output]; }
  // The name of the shared memory that keeps an operand.
  const std::string& slots(size_t operand) const { return slots_[operand]; }
  // Sets the text by which a column kernel loads a value of the row through an index, instead of
  // directly.
  void load_by(int leaf, std::string text) { row_loads_[leaf] = std::move(text); }
  // Sets the text by which a pass loads an operand that registers do not keep between passes.
  void load_late(size_t operand, std::string text) { late_loads_[operand] = std::move(text); }
  // The leaves (values read from memory) of this level that the kernel needs.
  std::vector<int> leaves(Level level) const;
  // The size of the largest accumulator, and of all together, in floats.
  int words() const;
  int all_words() const;

 private:
  std::string rows();
  std::string pass(int depth);
  std::string merge(int depth);
  std::string row_values(int depth);
  std::string result(int inst);
  std::string keep(int inst);
  std::string outputs();
  std::string row_output(size_t output, const std::string& registers);
  std::string loop(const std::string& body, const std::string& late, bool first = false,
                   const std::string& after = "") const;
  std::string resident_loop(const std::string& body, bool first) const;
  std::string group_loop(const std::string& before, const std::string& constant,
                         const std::string& body, const std::string& after) const;
  std::string last_loop(const std::string& body, const std::string& late) const;
  std::string elements(const std::vector<int>& targets, bool later);
  std::string late_loads(const std::vector<int>& targets, bool later) const;
  std::set<int> known(bool later) const;
  std::string array(size_t operand) const { return "e." + inputs_[operand].substr(2); }
  std::string element(size_t operand) const;
  std::string start() const;
  std::string step() const;
  std::string combine_columns(int inst) const;
  bool sums_few(int inst) const;
  std::vector<int> later_targets() const;
  std::string keep_values() const;
  std::string keep_slots() const;
  std::string place() const;
  const Inst& at(int inst) const { return fused_.insts[size_t(inst)]; }
  bool is_joint(int inst) const { return joint_ && joint_->first == inst; }
  bool moments() const { return joint_ && joint_->moments; }
  std::string shift();
  int depth_of(int inst) const;
  std::vector<int> reductions(int depth) const;
  std::string type(int inst) const;  // of the accumulator
  int words(int inst) const;

  int slot(int inst) const;

  const Fused& fused_;
  Code& code_;
  PassOptions options_;
  std::optional<Joint> joint_;
  std::vector<int> used_;
  std::vector<std::string> inputs_, outputs_, registers_, slots_;
  KeptValues values_;
  std::string shift_, exact_count_;  // of moments
  // The next maps belong to reductions: their accumulators in registers and in scratch, and the
  // vector that one add() takes.
  std::map<size_t, std::string> late_loads_;
  std::map<int, std::string> row_loads_, accumulators_, kept_, vectors_, few_;
};

}  // namespace cutegen::recipes
