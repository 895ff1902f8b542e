// SPDX-License-Identifier: Apache-2.0
// Passes: writes the body of a reduction kernel, pass by pass over the reduced axis.
//
// Contract: a reduction has depth d if it depends on a chain of d - 1 other reductions. Reductions
// of the same depth share a pass. If `online` is set, one pass computes two reductions although one
// of them depends on the other (Joint). A last pass computes the results that vary along the
// reduced axis; the first thread of each row writes the results that do not vary.
//
// text() returns one kernel with all passes. If `split` is set, several CTAs share a row, and each
// pass is a kernel of its own: partial(d) returns the kernel of pass d, in which each CTA writes
// its accumulators to scratch memory. Later kernels merge these accumulators in a fixed order.
// finish() returns the last kernel.
//
// If `resident` is set, one CTA or cluster processes a row and keeps operands that differ between
// rows in shared memory. The first pass may replace elements in registers or shared memory by
// values that it computed from them, so that later passes read these values (kept_values.h).
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
  bool resident = false;  // elements stay in shared memory of a CTA or a cluster
  // If `resident`: the kernel loads the next row while it writes results.
  bool turns = false;
  bool clustered = false;        // in a column kernel, the CTAs of a cluster share columns
  int64_t unroll = 1;            // steps whose loads are in flight together
  std::set<size_t> packed = {};  // operands that registers hold without conversion
  Accuracy accuracy = {};
  // Operands whose elements, in registers or shared memory, the first pass may overwrite.
  std::vector<size_t> room = {};
};

// Two reductions of x that one pass can compute although `second` depends on `first`. `first` and
// `second` are indices of instructions. The reductions are max(x) and sum(exp(x - max)) or, if
// `moments` is set, sum(x) and sum((x - mean)^2). If `finite_shift` is set and the maximum is
// infinite, the second reduction is sum(exp(x)).
struct Joint {
  int first = -1, second = -1;
  bool moments = false, finite_shift = false;
};
std::optional<Joint> find_joint(const Fused& fused);

// The accumulators of one reduction, which a pass writes to scratch memory: the tensor's name, the
// C++ type, the size in floats (`words`), and the reduction's depth.
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
  // Returns whether pass `pass` (the last pass is depth() + 1) goes from the end of a row to its
  // start.
  bool goes_backwards(int pass) const;
  int depth() const;  // number of passes without the last pass, which only writes results
  std::vector<Parts> parts() const;
  // id() returns the kernel's name for a value. input_tensor() and output_tensor() return the
  // kernel's names for the CuTe tensors of an operand and of an output.
  const std::string& id(int inst) const { return code_.id(inst); }
  const std::string& input_tensor(size_t operand) const { return inputs_[operand]; }
  const std::string& output_tensor(size_t output) const { return outputs_[output]; }
  // Returns the name of the shared-memory array that holds an operand.
  const std::string& slots(size_t operand) const { return slots_[operand]; }
  // Sets the text with which a column kernel loads `leaf`, a value that does not vary along the
  // reduced axis, through an index tensor.
  void load_by(int leaf, std::string text) { row_loads_[leaf] = std::move(text); }
  // Sets the text with which each pass loads an operand that the kernel does not keep in registers.
  void load_late(size_t operand, std::string text) { late_loads_[operand] = std::move(text); }
  // Returns the name of the array that keeps computed values in place of a packed operand, or "" if
  // there is no such array.
  std::string packed_values(size_t operand) const {
    const auto found = packed_values_.find(operand);
    return found == packed_values_.end() ? "" : found->second;
  }
  // Returns the leaves (instructions that read memory) of level `level` that the kernel needs.
  std::vector<int> leaves(Level level) const;
  // words() returns the size in floats of the largest accumulator, and all_words() the size of all
  // accumulators.
  int words() const;
  int all_words() const;

 private:
  std::string rows();
  std::string fill_cache() const;
  std::string pass(int depth);
  std::string merge(int depth);
  std::string row_values(int depth);
  bool is_last(int inst) const;
  std::string result(int inst);
  std::string keep(int inst);
  std::string outputs();
  std::string row_output(size_t output, const std::string& registers);
  std::string loop(const std::string& body, const std::string& late, int pass,
                   const std::string& after = "") const;
  std::string memory_loop(const std::string& body, bool backwards) const;
  std::string resident_loop(const std::string& body, bool first) const;
  std::string group_loop(const std::string& before, const std::string& constant,
                         const std::string& body, const std::string& after) const;
  std::string last_loop(const std::string& body, const std::string& late) const;
  std::string elements(const std::vector<int>& targets, bool later);
  std::string late_loads(const std::vector<int>& targets, bool later) const;
  std::set<int> known(bool later) const;
  std::string array(size_t operand) const { return "e." + inputs_[operand].substr(2); }
  std::string element(const Inst& leaf) const;
  std::string value_array(size_t operand) const;
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
  std::string type(int inst) const;  // C++ type of the accumulator
  int words(int inst) const;

  int slot(int inst) const;

  const Fused& fused_;
  Code& code_;
  PassOptions options_;
  std::optional<Joint> joint_;
  std::vector<int> used_;
  std::vector<std::string> inputs_, outputs_, registers_, slots_;
  KeptValues values_;
  // Names of the kernel's variables, used if joint_->moments is set.
  std::string shift_, exact_count_;
  // The maps accumulators_, kept_, vectors_ and few_ give the kernel's variables for a reduction:
  // - accumulators_: the accumulator in registers
  // - kept_: the accumulators in scratch memory
  // - vectors_: the vector that one add() takes
  // - few_: the sum of a few elements
  std::map<size_t, std::string> late_loads_, packed_values_;
  std::map<int, std::string> row_loads_, accumulators_, kept_, vectors_, few_;
};

}  // namespace cutegen::recipes
