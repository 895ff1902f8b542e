// SPDX-License-Identifier: Apache-2.0
// UndefinedRegisters: records, for each register, the lanes that depend on an undefined value, and
// the origin of this value.
//
// Contract: following() is false until the caller calls start(), or watch() finds that a warp reads
// an unwritten register. While following() is false, no register has undefined lanes.
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
  bool copied = false;           // the word is a copy of an undefined value
  int32_t buffer = -1;           // index of Memory::State::buffers
};

// An instruction that a warp executes.
struct UndefinedStep {
  std::byte* registers;
  const Inst& in;
  int32_t pc;
  int warp;
  // `mask` has the lanes that execute the instruction. `current` also has the lanes that the
  // instruction's guard disables.
  uint32_t mask, current;
};

class UndefinedRegisters {
 public:
  UndefinedRegisters(const Program& program, int warps);
  void begin();
  // Starts to track every register.
  void start();
  bool following() const { return following_; }
  // Call watch() before each instruction until following() is true, to track writes to registers
  // that a kernel may read before it writes them.
  void watch(const UndefinedStep& s);

  uint32_t mask_of(int warp, int32_t slot) const {
    return following_ ? masks_[size_t(warp)][size_t(slot) / 4] : 0;
  }
  Origin origin_of(int warp, int32_t slot) const { return known_[origin_index(warp, slot)]; }
  uint16_t origin_index(int warp, int32_t slot) const {
    return origins_[size_t(warp)][size_t(slot) / 4];
  }
  uint16_t add_origin(const Origin& o);
  // Marks the lanes in `lanes` as undefined, and the other lanes in `of` as defined.
  void mark(int warp, int32_t slot, uint32_t lanes, uint16_t origin, uint32_t of);

 private:
  const Program& program_;
  bool following_ = false;
  std::vector<std::vector<uint32_t>> masks_;    // masks of lanes, by warp and register offset / 4
  std::vector<std::vector<uint16_t>> origins_;  // parallel to masks_
  std::vector<Origin> known_;
  // unwritten lanes of the registers in Program::zeroed; indices as in masks_
  std::vector<std::vector<uint32_t>> unwritten_;
  std::vector<size_t> left_;  // by warp: number of entries of unwritten_ that are not 0
};

}  // namespace cutegen::ptx
