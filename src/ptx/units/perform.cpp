// SPDX-License-Identifier: Apache-2.0
#include "ptx/units/perform.h"

#include <bit>
#include <cstring>

#include "ptx/ops/atomic.h"
#include "ptx/units/transfer.h"

namespace cutegen::ptx {
namespace {

// Whether an atomic may have changed memory. cas: `b` is the value that it expects.
bool changes(AtomicOp op, uint64_t old, uint64_t b) {
  if (op == AtomicOp::cas) return old == b;
  if (op == AtomicOp::exch) return old != b;
  return b != 0;
}

bool in_shared(const CtaState& cta, const std::byte* memory) {
  if (memory == cta.shared.data()) return true;
  for (size_t rank = 0; cta.cluster && rank < cta.cluster->size(); ++rank) {
    const CtaState* other = cta.cluster->at(rank);
    if (other && other->shared.data() == memory) return true;
  }
  return false;
}

// Whether the access may have changed memory.
bool atomics(CtaState& cta, const WarpAccess& a, std::byte* zero) {
  const Inst& in = a.in;
  std::byte* registers = a.warp.registers;
  auto value = [&](int32_t slot, int lane) {
    uint64_t v = 0;
    if (slot >= 0) std::memcpy(&v, registers + slot + lane * in.size, in.size);
    return v;
  };
  const bool shared = in_shared(cta, zero);
  const auto op = AtomicOp(in.sub);
  auto type = AtomicType(in.e);
  if (type == AtomicType::f32 && !shared) type = AtomicType::f32_flushed;
  bool changed = false;
  for (uint32_t m = a.mask; m; m &= m - 1) {
    const int lane = std::countr_zero(m);
    const uint64_t b = value(in.b, lane);
    if (cta.job.pulls && in.pulls && !shared && b != 0) {
      const uint64_t others = cta.job.pulls->before(zero + a.at[lane], in.size);
      atomic_apply(AtomicOp::add, type, zero + a.at[lane], b * others, 0);
    }
    const uint64_t old = atomic_apply(op, type, zero + a.at[lane], b, value(in.c, lane));
    changed = changed || changes(op, old, b);
    if (in.d >= 0) std::memcpy(registers + in.d + lane * in.size, &old, in.size);
  }
  return changed;
}

}  // namespace

void perform(CtaState& cta, WarpScheduler& scheduler, const WarpAccess& a, std::byte* zero) {
  const Inst& in = a.in;
  if (in.op == Op::atomic) {
    const bool changed = atomics(cta, a, zero);
    return scheduler.note_poll(a.warp, in, a.sum.low, changed);
  }
  if (in.ordered || (in.op == Op::store && a.warp.spins))
    scheduler.note_poll(a.warp, in, a.sum.low, in.op == Op::store);
  transfer(a, zero);
}

}  // namespace cutegen::ptx
