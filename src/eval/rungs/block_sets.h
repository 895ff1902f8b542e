// SPDX-License-Identifier: Apache-2.0
// BlockSets: the official sets for blocks of timed runs, in the evaluator's memory.
//
// Contract: map() puts the set and copies of its outputs into memory that the runner maps. next()
// prepares a block: it fills outputs with their pattern. From the second block on, the inputs take
// the values of a fresh set, if the GPU has room for a copy of them and the pool has a set that the
// program has not met; a block never waits for a set. compare() compares the outputs with the
// truth.
//
// Example: sets.use(set, id); CG_TRY(auto buffers, sets.map(ctx, {.copies = 8})); ... run ...
//   CG_CHECK(sets.next(ctx)); ... time a block ... CG_TRY(RungEnd end, sets.compare(ctx, 8));
#pragma once

#include "eval/rungs/official.h"
#include "eval/sets/judged_buffers.h"

namespace cutegen::eval {

class BlockSets {
 public:
  BlockSets(const Services& services, const Task& task, const PreparedShape& shape)
      : services_(services), task_(task), shape_(shape) {}

  void use(OfficialSetPtr set, const std::string& program_id);
  void drop() { set_.reset(); }
  // The set of the next block. Null if use() got none, or after drop().
  const OfficialSet* set() const { return set_.get(); }

  // options.own_inputs: whether the GPU has room for a copy of the inputs.
  Result<std::vector<SharedBuffer>> map(const Context& ctx, JudgedBufferOptions options);
  void unmap() { run_.reset(); }
  bool mapped() const { return run_.has_value(); }
  Result<void> next(const Context& ctx);
  // Compares the first `copies` copies.
  Result<RungEnd> compare(const Context& ctx, int copies) const;

 private:
  OfficialSetPtr ready() const;

  const Services& services_;
  const Task& task_;
  const PreparedShape& shape_;
  std::string program_id_;
  OfficialSetPtr set_, next_;  // next_: for the following block
  std::optional<JudgedBuffers> run_;
  bool first_block_ = true, own_inputs_ = false;
};

}  // namespace cutegen::eval
