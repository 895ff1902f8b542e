// SPDX-License-Identifier: Apache-2.0
// BlockSets: the inputs, and the memory for outputs, of timed runs at the official shape.
//
// Contract: runs come in blocks; all runs of a block use one input set. map() allocates the set's
// inputs and a copy of its outputs for each run of a block; the runner maps this memory. next()
// prepares the next block: it fills all outputs with a pattern. From the second block on, it also
// replaces the inputs by those of a fresh set, if the GPU has room for a second copy of the inputs
// and the pool has a set on which the program has not run. It never waits for a set. compare()
// compares the outputs with the truth.
//
// Example: sets.use(set, id); CG_TRY(auto buffers, sets.map(ctx, {.copies = 8})); ... run ...
//   CG_CHECK(sets.next(ctx)); ... time a block ... CG_TRY(RungEnd end, sets.compare(ctx, 8));
#pragma once

#include "eval/rungs/gpu_correctness.h"
#include "eval/sets/judged_buffers.h"

namespace cutegen::eval {

class BlockSets {
 public:
  BlockSets(const Services& services, const Task& task, const PreparedShape& shape)
      : services_(services), task_(task), shape_(shape) {}

  void use(GpuSetPtr set, const std::string& program_id);
  void drop() { set_.reset(); }
  // The set of the next block. Null if use() received no set, or after drop().
  const GpuSet* set() const { return set_.get(); }

  // options.own_inputs: whether the GPU has room for a copy of the inputs.
  Result<std::vector<SharedBuffer>> map(const Context& ctx, JudgedBufferOptions options);
  void unmap() { run_.reset(); }
  bool mapped() const { return run_.has_value(); }
  Result<void> next(const Context& ctx);
  // Compares the first `copies` copies of the outputs.
  Result<RungEnd> compare(const Context& ctx, int copies) const;

 private:
  GpuSetPtr ready() const;

  const Services& services_;
  const Task& task_;
  const PreparedShape& shape_;
  std::string program_id_;
  GpuSetPtr set_, next_;  // next_: the set of the following block
  std::optional<JudgedBuffers> run_;
  bool first_block_ = true, own_inputs_ = false;
};

}  // namespace cutegen::eval
