// SPDX-License-Identifier: Apache-2.0
// ExcerptMemory: the buffers of the official shape for a simulator, which runs a sample of blocks.
//
// Contract: if the task has an excerpt (eval/sets/excerpts.h), inputs repeat it, outputs and
// scratch hold a random pattern, and all memory keeps what blocks write. If the task has no
// excerpt, or would need too much memory for it, inputs are random numbers (integers: zeros), and
// each large output maps one small memory file repeatedly; why_not() gives the reason. Both cases
// bound the memory that a program can fill.
//
// Example: CG_TRY(auto memory, ExcerptMemory::make(task, *official, drawn)); memory.put(request);
#pragma once

#include <set>

#include "eval/rungs/prepare.h"
#include "eval/runner/arena.h"
#include "eval/sets/excerpts.h"
#include "eval/sets/repeated.h"

namespace cutegen::eval {

class ExcerptMemory {
 public:
  struct Output {
    const Expected* expected = nullptr;  // the excerpt's
    Repeated place;
    std::span<const std::byte> bytes;    // the part in memory
    std::span<const std::byte> initial;  // a mutated tensor's initial values; of the excerpt
  };

  static Result<ExcerptMemory> make(const Task& task, const PreparedShape& official,
                                    const Excerpts::Drawn& drawn);
  void put(RunRequest& request) const;
  // Gives mutated tensors their initial values again, after a run that did not end.
  void restore();
  bool has_values() const { return set_ != nullptr; }
  const std::string& why_not() const { return why_not_; }
  const std::string& family() const { return set_->family; }
  std::vector<Output> outputs() const;
  const Poison& poison() const { return poison_; }
  // Whether the scratch buffer maps the same memory repeatedly, so that blocks overwrite each
  // other's values.
  bool aliased(const std::string& scratch) const { return aliased_.contains(scratch); }

 private:
  struct Place {
    std::string name;
    Repeated repeated;
    int64_t offset = 0;
  };
  int64_t take(int64_t bytes);
  Result<void> place_values(const Task& task, const ShapeCase& official);
  Result<void> place_addresses(const Task& task, const ShapeCase& official);
  void place_scratch(const PreparedShape& official);
  Result<void> make_memory();
  void fill(const Place& place);
  void write_noise();
  void write_poison(int64_t offset, int64_t bytes);

  SetPtr set_;
  std::string why_not_;
  Poison poison_{};
  std::vector<RunBuffer> buffers_;
  std::vector<Place> inputs_, outputs_, mutated_;
  std::vector<std::pair<int64_t, int64_t>> poisoned_;  // (offset, bytes) of each
  std::vector<std::pair<DType, std::pair<int64_t, int64_t>>> noise_;
  std::set<std::string> aliased_;
  int64_t total_ = 0;
  UniqueFd memory_, ring_;
  Mapping mapping_;
};

}  // namespace cutegen::eval
