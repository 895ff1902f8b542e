// SPDX-License-Identifier: Apache-2.0
// Arena: the memory for one run of a candidate, with buffers at random places, a pattern (poison)
// in memory that nobody has written, and guards around every buffer.
//
// Contract: the buffers are in one memory file, in random order, aligned to 256 bytes, with random
// gaps between them. Gaps hold random bytes. A *state* is a mutated tensor: it starts with its
// initial values, and the program may write it. Outputs and scratch hold a pattern drawn for this
// run: a NaN of every float width or, for `plausible`, a large finite number, which also shows in
// the results of code that hides NaN. After the run, findings() reports writes outside the
// program's own buffers.
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
  std::span<const std::byte> content;  // the values of an input or a state
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
  // Changes outside outputs, states and scratch, one line each: "'x' was changed at byte 0".
  std::vector<std::string> findings() const;

 private:
  void write_guards();
  UniqueFd memory_;
  Mapping mapping_;
  std::vector<ArenaItem> items_;    // the buffers, in order of their addresses
  std::vector<RunBuffer> buffers_;  // buffers_[i] is items_[i]
  Poison poison_{};
  uint64_t guard_seed_ = 0;
};

}  // namespace cutegen::eval
