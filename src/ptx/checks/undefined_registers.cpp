// SPDX-License-Identifier: Apache-2.0
#include "ptx/checks/undefined_registers.h"

#include <bit>
#include <cstring>

namespace cutegen::ptx {

UndefinedRegisters::UndefinedRegisters(const Program& program, int warps)
    : program_(program),
      masks_(size_t(warps)),
      origins_(size_t(warps)),
      unwritten_(size_t(warps)),
      left_(size_t(warps)) {}

void UndefinedRegisters::begin() {
  following_ = false;
  known_.clear();
  if (!program_.watch_zeroed) return;
  for (size_t w = 0; w < unwritten_.size(); ++w) {
    auto& warp = unwritten_[w];
    warp.resize(size_t(program_.register_bytes) / 4);  // the other registers stay 0
    for (const SlotRange& s : program_.zeroed) warp[size_t(s.offset) / 4] = 0;
    left_[w] = 0;
    for (const SlotRange& s : program_.zeroed) {
      uint32_t& lanes = warp[size_t(s.offset) / 4];
      left_[w] += size_t(lanes == 0);
      lanes = ~0u;
    }
  }
}

void UndefinedRegisters::start() {
  if (following_) return;
  following_ = true;
  const size_t slots = size_t(program_.register_bytes) / 4;
  for (size_t w = 0; w < masks_.size(); ++w) {
    masks_[w].assign(slots, 0);
    origins_[w].assign(slots, 0);
    if (!unwritten_[w].empty()) masks_[w] = unwritten_[w];
  }
  if (known_.empty()) known_.push_back({});  // origin 0: a register that nobody wrote
}

uint16_t UndefinedRegisters::add_origin(const Origin& o) {
  for (size_t i = 1; i < known_.size(); ++i) {
    if (known_[i].pc == o.pc && known_[i].space == o.space && known_[i].buffer == o.buffer)
      return uint16_t(i);
  }
  if (known_.size() < 1000) known_.push_back(o);
  return uint16_t(known_.size() - 1);
}

void UndefinedRegisters::mark(int warp, int32_t slot, uint32_t lanes, uint16_t origin,
                              uint32_t of) {
  uint32_t& m = masks_[size_t(warp)][size_t(slot) / 4];
  m = (m & ~of) | (lanes & of);
  if (lanes & of) origins_[size_t(warp)][size_t(slot) / 4] = origin;
}

void UndefinedRegisters::watch(const UndefinedStep& s) {
  auto& unwritten = unwritten_[size_t(s.warp)];
  size_t& left = left_[size_t(s.warp)];
  if (left == 0) return;
  const auto& range = program_.effect_of[size_t(s.pc)];
  // A product without accumulation does not read its accumulators, which come first.
  uint32_t begin = range.begin;
  if (s.in.op == Op::wgmma && s.in.sub == kWgmmaMultiply) {
    const WgmmaOp& op = program_.wgmmas[size_t(s.in.target)];
    uint32_t scale = 0;
    std::memcpy(&scale, s.registers + s.in.list[op.scale_slot()], sizeof scale);
    if (scale == 0) begin += uint32_t(op.d);
  }
  for (uint32_t i = begin; i < range.writes; ++i) {
    const int32_t slot = program_.effects[i];
    const uint32_t lanes = unwritten[size_t(slot) / 4] & (slot == s.in.guard ? s.current : s.mask);
    if (!lanes) continue;
    known_.assign(1, {.pc = s.pc, .thread = s.warp * 32 + std::countr_zero(lanes)});
    start();
    return;
  }
  for (uint32_t i = range.writes; i < range.end; ++i) {
    uint32_t& lanes = unwritten[size_t(program_.effects[i]) / 4];
    const uint32_t before = lanes;
    lanes &= ~s.mask;
    left -= size_t(before != 0 && lanes == 0);
  }
}

}  // namespace cutegen::ptx
