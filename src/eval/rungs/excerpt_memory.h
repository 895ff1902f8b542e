// SPDX-License-Identifier: Apache-2.0
// ExcerptMemory: the buffers of a run at the official shape (the sizes in the task file) on the
// simulator, which runs only a sample of the thread blocks.
//
// Contract: an excerpt is a small part of the official shape with known truth, the result in
// float64 (eval/sets/excerpts.h). With an excerpt, the inputs repeat its values, outputs and
// scratch contain a random pattern at first, and memory keeps the values that blocks write. Without
// an excerpt, or with too little memory, why_not() gives the reason. Inputs are then random numbers
// (integers: zeros), scratch contains ordinary numbers at first, and each large output maps one
// small memory file repeatedly. In both cases, the memory that a program can fill is limited.
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
    const Expected* expected = nullptr;  // expected values of the excerpt's output
    Repeated place;
    std::span<const std::byte> bytes;    // the part of the output that is in memory
    std::span<const std::byte> initial;  // initial values of a tensor that the program changes
  };

  static Result<ExcerptMemory> make(const Task& task, const PreparedShape& official,
                                    const Excerpts::Drawn& drawn);
  void put(RunRequest& request) const;
  // After a run that did not end, gives mutated tensors their initial values again.
  void restore();
  // Fills scratch with ordinary numbers instead of the pattern. Returns false if no scratch has the
  // pattern.
  bool make_scratch_ordinary();
  bool has_values() const { return set_ != nullptr; }
  const std::string& why_not() const { return why_not_; }
  const std::string& family() const { return set_->family; }
  std::vector<Output> outputs() const;
  const Poison& poison() const { return poison_; }
  // True if the scratch buffer maps the same memory repeatedly, so that blocks overwrite each
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

  SetPtr set_;
  std::string why_not_;
  Poison poison_{};
  std::vector<RunBuffer> buffers_;
  std::vector<Place> inputs_, outputs_, mutated_;
  // (offset, bytes) of each buffer that contains the pattern at first
  std::vector<std::pair<int64_t, int64_t>> poisoned_, poisoned_scratch_;
  std::vector<std::pair<DType, std::pair<int64_t, int64_t>>> noise_;
  std::set<std::string> aliased_;
  int64_t total_ = 0;
  UniqueFd memory_, ring_;
  Mapping mapping_;
};

}  // namespace cutegen::eval
