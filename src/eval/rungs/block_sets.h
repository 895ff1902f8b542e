// SPDX-License-Identifier: Apache-2.0
// BlockSets: supplies the inputs, and the memory for outputs, of timed runs at the official shape
// (the sizes in the task file) on a GPU.
//
// Contract: the evaluator times runs in blocks, and all runs of a block use the same input set.
// map() allocates memory, which the runner maps, for the inputs and for one copy of the outputs per
// run of a block. Before each block, next() fills all outputs with a pattern. From the second block
// on, next() also replaces the inputs by a set on which the program has not run, if the pool of
// input sets has one and the GPU has memory for a second copy of the inputs. next() never waits for
// an input set. compare() compares the outputs with the truth (the result in float64).
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
  // Returns the input set for the next block; null if use() received no set, and after drop().
  const GpuSet* set() const { return set_.get(); }

  // Set options.own_inputs if the GPU has memory for a second copy of the inputs.
  Result<std::vector<SharedBuffer>> map(const Context& ctx, JudgedBufferOptions options);
  void unmap() { run_.reset(); }
  bool mapped() const { return run_.has_value(); }
  // Returns false if the block will use the inputs of an earlier block.
  Result<bool> next(const Context& ctx);
  // Compares the outputs of the first `copies` runs of the block with the truth.
  Result<RungEnd> compare(const Context& ctx, int copies) const;

 private:
  GpuSetPtr ready() const;

  const Services& services_;
  const Task& task_;
  const PreparedShape& shape_;
  std::string program_id_;
  GpuSetPtr set_, next_;  // next_: the input set that will replace set_
  std::optional<JudgedBuffers> run_;
  bool first_block_ = true, own_inputs_ = false;
};

}  // namespace cutegen::eval
