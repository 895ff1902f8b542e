// SPDX-License-Identifier: Apache-2.0
// Arena: the memory for one run of a candidate: buffers at random places, with guard bytes around
// them. Outputs and scratch contain a known pattern (poison) at first.
//
// Contract: the buffers are in one memory file, in random order, aligned to 256 bytes. The gaps
// between buffers have random sizes and contain random bytes. A *state* is a mutated tensor: the
// tensor has its initial values at first, and the program changes these values. Each run has its
// own random pattern. The pattern `nan` reads as NaN in every floating-point format. `plausible`
// reads as a large finite number, which also changes the results of code that replaces NaN. After
// the run, findings() reports writes outside the buffers that the program may write.
//
// Example: CG_TRY(Arena a, Arena::make(items, Arena::Fill::nan)); ... run ...; a.findings();
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "eval/runner/runner.h"
#include "tensor/compare.h"

namespace cutegen::eval {

struct ArenaItem {
  enum class Kind { input, output, scratch, zeroed, state } kind = Kind::input;
  std::string name;
  size_t bytes = 0;
  std::span<const std::byte> content;  // values of an input, or initial values of a mutated tensor
};

enum class PoisonKind { nan, plausible };
Poison draw_poison(PoisonKind kind);

class Arena {
 public:
  using Fill = PoisonKind;
  static Result<Arena> make(std::vector<ArenaItem> items, Fill fill);

  const std::vector<RunBuffer>& buffers() const { return buffers_; }
  int memory() const { return memory_.get(); }
  std::span<const std::byte> bytes_of(const std::string& name) const;
  const Poison& poison() const { return poison_; }
  // Returns one line per detected write outside outputs, mutated tensors and scratch: "'x' was
  // changed at byte 0".
  std::vector<std::string> findings() const;

 private:
  void write_guards();
  UniqueFd memory_;
  Mapping mapping_;
  std::vector<ArenaItem> items_;    // the buffers, sorted by address
  std::vector<RunBuffer> buffers_;  // buffers_[i] is the buffer of items_[i]
  Poison poison_{};
  uint64_t guard_seed_ = 0;
};

}  // namespace cutegen::eval
