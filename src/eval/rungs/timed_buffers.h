// SPDX-License-Identifier: Apache-2.0
// The buffers of timed runs at the official shape, in the form that the runner receives.
//
// Contract: inputs repeat the values of a small secret set, so integers stay in their range.
// Outputs and scratch hold a pattern that no program knows. Two programs that are timed alternately
// share the inputs; the other program's outputs are named "against/NAME". Each timed run has its
// own copy of the outputs and of mutated tensors, as far as memory permits; mutated tensors start
// each run with the small set's values. unwritten() counts elements that still hold the pattern, at
// fresh random places in each call.
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
  // Adds only scratch, because the evaluator owns inputs and outputs.
  Result<void> add_scratch(const PreparedShape& official);
  // Reserves the bytes of an output that the evaluator owns and that also has copies.
  void reserve(int64_t bytes) { outputs_ += bytes; }
  bool holds(const std::string& name) const;
  // Adds outputs and scratch of the other program and, with a set, its mutated tensors.
  Result<void> add_other(const Task& task, const PreparedShape& official,
                         const InputSet* set = nullptr);
  // Makes as many copies of the outputs as `memory` holds, at most `wanted`. Returns false if not
  // even one fits.
  bool fit(int64_t memory, int wanted);
  Result<void> put(RunRequest& request);

  int64_t total() const { return fixed_ + outputs_; }
  int copies() const { return copies_; }
  // Draws random places in the first `runs` copies of every output.
  std::vector<Probe> draw_probes(const Task& task, int runs);
  // Call it after reading these places. Counts the elements of an output that still hold its
  // pattern.
  int64_t unwritten(const std::vector<Probe>& probes, const TensorInfo& out,
                    int64_t& looked_at) const;

  // The name of a buffer of the other program.
  static std::string other_name(const std::string& name) { return "against/" + name; }

 private:
  struct Stock {  // a small set's values: their bytes in the shared memory
    std::string name;
    std::vector<std::byte> bytes;
    int64_t at = 0;
    bool copied = false;  // whether timed runs use several copies in turn
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

// The bytes of one tensor at this shape.
Result<int64_t> bytes_of(const TensorInfo& info, const ShapeCase& shape);

}  // namespace cutegen::eval
