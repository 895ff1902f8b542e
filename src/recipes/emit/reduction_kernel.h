// SPDX-License-Identifier: Apache-2.0
// The text of reduction kernels: operands as CuTe tensors around the passes. Private to the recipe.
//
// Contract: source() is the whole file; launches() lists its kernels in order, each with its own
// arguments. Strides that are not static are arguments, with plan expressions.
//
// Example: ReductionKernel k(task, fused, params, label); k.source();
#pragma once

#include <optional>

#include "recipes/emit/passes.h"
#include "recipes/text/nest_tensors.h"
#include "recipes/text/program_part.h"

namespace cutegen::recipes {

// Whether an element operand stays in shared memory in a resident kernel: it differs between rows
// and lies along the row without gaps.
bool stays(const Fused& fused, const Nest& nest, const Operand& operand);
// Whether a thread keeps its elements of the operand in registers if the kernel keeps any: they
// differ between rows. Each pass loads the others (weights), which come from L1 or L2.
bool in_registers(const Fused& fused, const Nest& nest, const Operand& operand);
// Whether a thread of a column kernel keeps them in the operand's own dtype, of 16 bits.
bool packed(const Fused& fused, const Nest& nest, const Operand& operand);
// Bytes of shared memory that one element of the row takes in a resident kernel.
int64_t element_bytes(const Fused& fused, const Nest& nest);
// Bytes of shared memory of a CTA of a resident kernel, at the official shape.
int64_t resident_bytes(const Fused& fused, const Nest& nest, const Json& params);
// Steps that a thread takes along the reduced axis, and elements of a row in them, at the official
// shape.
int64_t steps_of_thread(const Nest& nest, const Json& params);
int64_t elements_of_thread(const Nest& nest, const Json& params);

// Rows that a cluster of a resident kernel takes one after another.
int64_t turns_of(const Json& params);

// How such a cluster reads ahead: a row is `groups` groups of vectors, and shared memory has room
// for `places` groups, in the order in which they are read.
struct Ring {
  int64_t groups = 0, places = 0;
};
std::optional<Ring> ring_of(const Fused& fused, const Nest& nest, const Json& params);

class ReductionKernel {
 public:
  // A kernel of the file, with the scratch that it reads or writes.
  struct Launch {
    std::string name;
    std::vector<Parts> parts;
    bool whole_grid = true;  // of a split row: all its CTAs, else one
  };

  ReductionKernel(const Task& task, const Fused& fused, const Json& params, const Label& label);
  std::string source() const { return source_; }
  const std::vector<Launch>& launches() const { return launches_; }
  const Nest& nest() const { return nest_; }
  bool row() const { return nest_.reduced_inside; }
  bool split() const { return parts_ > 1; }
  bool resident() const { return get("cached") == 2; }
  bool turns() const { return turns_of(params_) > 1; }
  // Whether the CTAs of a cluster share columns.
  bool clustered() const { return !row() && get("cluster") > 1; }
  bool wide() const;       // a row has too many elements for 32-bit indices
  bool many_rows() const;  // there are too many rows for 32-bit indices
  bool in_runs() const { return nest_.in_runs && !wide(); }
  bool has_runs() const;  // an operand has one element for each run
  std::vector<Parts> parts() const { return passes_.parts(); }
  const std::vector<StrideArgument>& strides() const { return tensors_.strides(); }

 private:
  std::map<std::string, std::string> common(const Task& task);
  void add_kernel(const std::string& name, const std::string& body, int most_depth, bool last);
  std::string input(const Operand& operand, const std::string& name);
  std::string tensor(const Operand& operand, const std::string& name);
  std::string view(const Operand& operand);
  std::string view_of_runs(const Operand& operand);
  void take_turns(std::map<std::string, std::string>& t, const std::string& body) const;
  std::string along() const;
  std::string across() const;
  std::string items() const;
  bool one_a_run(const Operand& operand) const;
  int64_t get(const char* name) const { return params_.at(name).get<int64_t>(); }

  const Fused& fused_;
  const Json& params_;
  Label label_;
  Nest nest_;
  int64_t parts_;
  Code code_;
  NestTensors tensors_;
  Passes passes_;
  std::string inputs_, outputs_, loads_;  // text that the kernels share
  std::string runs_;                      // the name of the split into runs
  std::string fetches_, slots_, reads_;   // of a resident kernel: copies, slots, reads of a slot
  std::string rows_, next_;  // of one that takes turns: tensors of any row, of the next
  std::string kernels_, source_;
  std::vector<Launch> launches_;
};

}  // namespace cutegen::recipes
