// SPDX-License-Identifier: Apache-2.0
// TimedBuffers: the buffers of timed runs at the official shape (the sizes in the task file) that
// the evaluator sends to the runner. If inputs and outputs are in the evaluator's own GPU memory,
// TimedBuffers has only scratch buffers.
//
// Contract: inputs repeat the values of a small secret input set, so integers stay in their valid
// range. Outputs and scratch contain a secret pattern at first. If two programs run alternately,
// the programs share the inputs, and the second program's outputs are named "against/NAME". Each
// timed run writes its own copy of the outputs and of mutated tensors (inputs that the program
// changes), if memory permits. Before each run, a mutated tensor has the values of the small input
// set. unwritten() counts elements that still have the pattern, at the random places of
// draw_probes().
//
// Example: TimedBuffers b(task, official, *set); CG_CHECK(b.add_other(plan)); b.put(request, ...);
#pragma once

#include <random>

#include "eval/rungs/prepare.h"

namespace cutegen::eval {

class TimedBuffers {
 public:
  TimedBuffers();
  Result<void> add(const Task& task, const PreparedShape& official, const InputSet& set);
  // Adds only scratch buffers, for runs with inputs and outputs in the evaluator's GPU memory.
  Result<void> add_scratch(const PreparedShape& official);
  // Counts the bytes of an output in the evaluator's GPU memory, which fit() multiplies by the
  // number of copies.
  void reserve(int64_t bytes) { outputs_ += bytes; }
  bool holds(const std::string& name) const;
  // Adds outputs, scratch and (with `set`) mutated tensors of the other program.
  Result<void> add_other(const Task& task, const PreparedShape& official,
                         const InputSet* set = nullptr);
  // Plans as many copies of the outputs as fit into `memory`, at most `wanted`. Returns false if no
  // copy fits.
  bool fit(int64_t memory, int wanted);
  Result<void> put(RunRequest& request);

  int64_t total() const { return fixed_ + outputs_; }
  int copies() const { return copies_; }
  // Returns random places in the first `runs` copies of every output.
  std::vector<Probe> draw_probes(const Task& task, int runs);
  // Counts the elements of an output that still have the pattern. Call unwritten() after the runner
  // has read the probes.
  int64_t unwritten(const std::vector<Probe>& probes, const TensorInfo& out,
                    int64_t& looked_at) const;

  // Returns the name of the other program's buffer.
  static std::string other_name(const std::string& name) { return "against/" + name; }

 private:
  struct Stock {  // values of a tensor of the small input set, and their offset in memory_
    std::string name;
    std::vector<std::byte> bytes;
    int64_t at = 0;
    bool copied = false;  // whether each timed run uses its own copy
  };
  Result<void> add_buffer(const std::string& name, int64_t bytes, bool read_only, bool output,
                          std::vector<std::byte> pattern);
  Result<void> add_written(const Task& task, const PreparedShape& official,
                           const std::function<std::string(std::string)>& name);
  int64_t place(int64_t bytes);

  std::vector<RunBuffer> buffers_;
  std::vector<Stock> stock_;
  std::mt19937_64 random_;
  int64_t used_ = 0, fixed_ = 0, outputs_ = 0;  // outputs_: bytes of one copy of all outputs
  int64_t probes_at_ = 0;
  int copies_ = 1;
  UniqueFd memory_;
  Mapping mapping_;
};

// Returns the size of a tensor at this shape, in bytes.
Result<int64_t> bytes_of(const TensorInfo& info, const ShapeCase& shape);

}  // namespace cutegen::eval
