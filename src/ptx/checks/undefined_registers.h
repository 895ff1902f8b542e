// SPDX-License-Identifier: Apache-2.0
// UndefinedRegisters: for each register, the lanes that depend on an undefined value, and where
// that value came from.
//
// Contract: following() is false until start(), or until watch() sees a warp read a register that
// nobody wrote. While it is false, no register has undefined lanes.
//
// Example: if (uint32_t lanes = registers.mask_of(warp, slot)) blame(registers.origin_of(warp,
// slot));
#pragma once

#include <vector>

#include "ptx/decode/program.h"

namespace cutegen::ptx {

struct Origin {
  int32_t pc = 0;
  int thread = 0;
  Space space = Space::generic;  // generic: a register
  uint64_t at = 0;               // offset
  bool copied = false;           // the place holds a copy of an undefined value
  int32_t buffer = -1;           // index of Memory::State::buffers
};

// An instruction that a warp executes.
struct UndefinedStep {
  std::byte* registers;
  const Inst& in;
  int32_t pc;
  int warp;
  // mask: lanes that execute it; current: also the lanes that its guard disables.
  uint32_t mask, current;
};

class UndefinedRegisters {
 public:
  UndefinedRegisters(const Program& program, int warps);
  void begin();
  // Follows every register from here on.
  void start();
  bool following() const { return following_; }
  // Call it before an instruction, until start(): tracks writes to registers that a kernel may read
  // before it writes them.
  void watch(const UndefinedStep& s);

  uint32_t mask_of(int warp, int32_t slot) const {
    return following_ ? masks_[size_t(warp)][size_t(slot) / 4] : 0;
  }
  Origin origin_of(int warp, int32_t slot) const { return known_[origin_index(warp, slot)]; }
  uint16_t origin_index(int warp, int32_t slot) const {
    return origins_[size_t(warp)][size_t(slot) / 4];
  }
  uint16_t add_origin(const Origin& o);
  // Among the lanes `of`, marks `lanes` as undefined and the others as defined.
  void mark(int warp, int32_t slot, uint32_t lanes, uint16_t origin, uint32_t of);

 private:
  const Program& program_;
  bool following_ = false;
  std::vector<std::vector<uint32_t>> masks_;    // masks of lanes, by warp and register slot / 4
  std::vector<std::vector<uint16_t>> origins_;  // parallel to masks_
  std::vector<Origin> known_;
  std::vector<std::vector<uint32_t>> unwritten_;  // parallel to masks_: lanes of zeroed registers
};

}  // namespace cutegen::ptx
