// SPDX-License-Identifier: Apache-2.0
// BlockSets: the official sets of blocks of timed runs, in the evaluator's memory.
//
// Contract: map() puts the set and copies of its outputs into memory that the runner maps. next()
// prepares a block: outputs hold their pattern again. From the second block on, the inputs take the
// values of a fresh set, if the GPU has room for a copy of them and the pool has one that the
// program has not met: no block waits for a set. compare() compares the outputs with the truth.
//
// Example: sets.use(set, id); CG_TRY(auto buffers, sets.map(ctx, {.copies = 8})); ... run ...
//   CG_CHECK(sets.next(ctx)); ... time a block ... CG_TRY(RungEnd end, sets.compare(ctx, 8));
#pragma once

#include "eval/rungs/official.h"

namespace cutegen::eval {

class BlockSets {
 public:
  BlockSets(const Services& services, const Task& task, const PreparedShape& shape)
      : services_(services), task_(task), shape_(shape) {}

  void use(OfficialSetPtr set, const std::string& program_id);
  void drop() { set_.reset(); }
  // The set of the next block, or null: use() got none, or drop() was called.
  const OfficialSet* set() const { return set_.get(); }

  // own_inputs of the options: whether the GPU has room for them.
  Result<std::vector<SharedBuffer>> map(const Context& ctx, OfficialRunOptions options);
  void unmap() { run_.reset(); }
  bool mapped() const { return run_.has_value(); }
  Result<void> next(const Context& ctx);
  // Of the first `copies` copies.
  Result<RungEnd> compare(const Context& ctx, int copies) const;

 private:
  OfficialSetPtr ready() const;

  const Services& services_;
  const Task& task_;
  const PreparedShape& shape_;
  std::string program_id_;
  OfficialSetPtr set_, next_;  // next_: of the block that follows
  std::optional<OfficialRun> run_;
  bool first_block_ = true, own_inputs_ = false;
};

}  // namespace cutegen::eval
