// SPDX-License-Identifier: Apache-2.0
// ReductionKernel: writes the source file of a reduction. The source declares the operands as CuTe
// tensors and contains the passes of passes.h. Only the reduction recipe includes this header.
//
// Contract: source() returns the whole file. launches() lists the kernels of the file in order,
// each with its own arguments. Strides that are not static are kernel arguments; expressions of the
// launch plan give their values. A resident kernel is a kernel that keeps rows in shared memory
// between passes (`cached` 2).
//
// Example: ReductionKernel k(task, fused, params, label); k.source();
#pragma once

#include <optional>

#include "recipes/emit/passes.h"
#include "recipes/text/nest_tensors.h"
#include "recipes/text/program_part.h"

namespace cutegen::recipes {

// Returns whether a resident kernel keeps the operand in shared memory: the operand differs between
// rows, and its elements are contiguous along the row.
bool stays(const Fused& fused, const Nest& nest, const Operand& operand);
// Returns whether a kernel with `cached` 1 keeps the operand in registers, because the operand
// differs between rows. Each pass loads operands that do not differ between rows (weights) again,
// from L1 or L2.
bool in_registers(const Fused& fused, const Nest& nest, const Operand& operand);
// Returns whether a kernel can hold the operand in registers without converting its elements.
bool packed(const Fused& fused, const Nest& nest, const Operand& operand);
// Returns whether the kernel's loads leave the conversion of the operand to the passes. Conversions
// between the loads would delay the loads that follow.
bool loads_packed(const Fused& fused, const Nest& nest, const Operand& operand, const Json& params);
// Returns whether later passes need values that the first pass computes from the elements alone.
bool computes_before_reducing(const Fused& fused);
// Returns how many bytes of shared memory a resident kernel needs for one element of a row.
int64_t element_bytes(const Fused& fused, const Nest& nest);
// Returns how many bytes of shared memory a CTA of a resident kernel needs at the official shape,
// which is the shape in the task file.
int64_t resident_bytes(const Fused& fused, const Nest& nest, const Json& params);
// Returns how many steps a thread takes along the reduced axis at the sizes in the task file.
int64_t steps_of_thread(const Nest& nest, const Json& params);
int64_t elements_of_thread(const Nest& nest, const Json& params);

// Returns whether the number of threads that share a row depends on the row's length. The number
// depends on the length if the evaluator times rows of several lengths and the kernel keeps each
// row in registers. The parameter `width` is then the number at the official shape.
bool width_follows(const Fused& fused, const Nest& nest, const Json& params);
// Returns the number of threads that share a row of `length` elements. Each thread keeps as many
// elements as at the official shape.
int64_t width_at(const Nest& nest, const Json& params, int64_t length);

// Returns how many rows a cluster of a resident kernel processes one after another.
int64_t turns_of(const Json& params);

// The ring buffer in shared memory with which a cluster loads the next rows in advance. A row
// consists of `groups` groups of vectors, and the ring holds `places` groups. Groups enter and
// leave the ring in order.
struct Ring {
  int64_t groups = 0, places = 0;
};
std::optional<Ring> ring_of(const Fused& fused, const Nest& nest, const Json& params);

class ReductionKernel {
 public:
  // A kernel of the file, with the scratch tensors that it reads or writes.
  struct Launch {
    std::string name;
    std::vector<Parts> parts;
    bool whole_grid = true;  // false: only one CTA of each row runs the kernel
  };

  ReductionKernel(const Task& task, const Fused& fused, const Json& params, const Label& label);
  std::string source() const { return source_; }
  const std::vector<Launch>& launches() const { return launches_; }
  const Nest& nest() const { return nest_; }
  bool row() const { return nest_.reduced_inside; }
  bool split() const { return parts_ > 1; }
  bool resident() const { return get("cached") == 2; }
  bool turns() const { return turns_of(params_) > 1; }
  // Returns whether the CTAs of a cluster share columns.
  bool clustered() const { return !row() && get("cluster") > 1; }
  bool wide() const;       // a row has too many elements for 32-bit indices
  bool many_rows() const;  // the rows are too many for 32-bit indices
  bool in_runs() const { return nest_.in_runs && !wide(); }
  // Returns whether a row consists of runs of elements (cutegen/runs.cuh), and some operand has
  // only one element for each run.
  bool has_runs() const;
  std::vector<Parts> parts() const { return passes_.parts(); }
  const std::vector<StrideArgument>& strides() const { return tensors_.strides(); }

 private:
  std::map<std::string, std::string> common(const Task& task);
  void add_kernel(const std::string& name, const std::string& body, int most_depth, bool last);
  std::string input(const Operand& operand, const std::string& name);
  std::string tensor(const Operand& operand, const std::string& name);
  void find_rows();
  static const char* declared(const Operand& operand);
  std::string view(const Operand& operand);
  std::string view_of_runs(const Operand& operand);
  void take_turns(std::map<std::string, std::string>& t, const std::string& body) const;
  std::string along() const;
  std::string across() const;
  std::string items() const;
  bool loads_early() const;
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
  std::string inputs_, outputs_, loads_;  // text that all kernels of the file contain
  std::string places_;                    // text that declares the coordinates of a row
  std::string runs_;                      // name of the cutegen::Runs object
  // Statements of a resident kernel: copies to shared memory, the declaration of the shared memory,
  // and reads from it.
  std::string fetches_, slots_, reads_;
  // For a CTA that computes several rows: declarations of a row's and the next row's tensors.
  std::string rows_, next_;
  std::string kernels_, source_;
  std::vector<Launch> launches_;
};

}  // namespace cutegen::recipes
