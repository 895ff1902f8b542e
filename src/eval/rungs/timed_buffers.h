// SPDX-License-Identifier: Apache-2.0
// The buffers of timed runs at the official shape, as the runner is told of them.
//
// Contract: inputs hold the values of a small secret set again and again (so that integers stay in
// their range), outputs and scratch a pattern no program knows. Two programs that are timed in turn
// share the inputs; what the other writes is named "against/NAME". Outputs have several copies, one
// a timed run, as far as memory goes; so have mutated tensors, which start each run with the values
// of the small set. unwritten() counts elements that still hold the pattern, at places drawn at
// random for every look.
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
  // Scratch alone, where inputs and outputs are elsewhere.
  Result<void> add_scratch(const PreparedShape& official);
  // Bytes of an output elsewhere, of which there are copies too.
  void reserve(int64_t bytes) { outputs_ += bytes; }
  bool holds(const std::string& name) const;
  // Outputs and scratch of another program, which is timed in turn; with a set its mutated tensors
  // too.
  Result<void> add_other(const Task& task, const PreparedShape& official,
                         const InputSet* set = nullptr);
  // Copies of the outputs: at most `wanted`, as many as `memory` holds. False: not even one.
  bool fit(int64_t memory, int wanted);
  Result<void> put(RunRequest& request);

  int64_t total() const { return fixed_ + outputs_; }
  int copies() const { return copies_; }
  // Places in the first `runs` copies of every output, drawn anew.
  std::vector<Probe> draw_probes(const Task& task, int runs);
  // After they were read: elements of an output that still hold its pattern, of those looked at.
  int64_t unwritten(const std::vector<Probe>& probes, const TensorInfo& out,
                    int64_t& looked_at) const;

  // The other program's name of a buffer of its own.
  static std::string other_name(const std::string& name) { return "against/" + name; }

 private:
  struct Stock {  // bytes that lie in the shared memory
    std::string name;
    std::vector<std::byte> bytes;
    int64_t at = 0;
  };
  Result<void> add_buffer(const std::string& name, int64_t bytes, bool read_only, bool output,
                          std::vector<std::byte> pattern);
  Result<void> add_written(const Task& task, const PreparedShape& official,
                           const std::function<std::string(std::string)>& name);
  int64_t place(int64_t bytes);

  std::vector<RunBuffer> buffers_;
  std::vector<Stock> stock_;
  std::mt19937_64 random_;
  int64_t used_ = 0, fixed_ = 0, outputs_ = 0;  // outputs_: of one copy of each
  int64_t probes_at_ = 0;
  int copies_ = 1;
  UniqueFd memory_;
  Mapping mapping_;
};

}  // namespace cutegen::eval
