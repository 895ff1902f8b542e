// SPDX-License-Identifier: Apache-2.0
#include "ptx/units/memory_unit.h"

#include <bit>
#include <cstring>

#include "ptx/cta/faults.h"
#include "ptx/cta/guard_checks.h"
#include "ptx/units/perform.h"

namespace cutegen::ptx {
namespace {

bool in_window(uint64_t address, uint64_t window) {
  return address - window < kWindowBytes;
}

uint64_t window_of(Space space) {
  return space == Space::shared  ? kSharedWindow
         : space == Space::local ? kLocalWindow
         : space == Space::param ? kParamWindow
                                 : 0;
}

Space space_of(uint64_t address) {
  if (in_window(address, kSharedWindow)) return Space::shared;
  if (in_window(address, kLocalWindow)) return Space::local;
  if (in_window(address, kParamWindow)) return Space::param;
  return Space::global;
}

// Loads a parameter whose address is known and the same for all lanes. False: the access needs the
// general path.
bool parameter(const CtaState& cta, Warp& w, const Inst& in) {
  if (!in.constant_address || in.space != Space::param) return false;
  const auto& params = cta.job.params;
  uint64_t at = 0, value = 0;
  std::memcpy(&at, w.registers + in.a, 8);
  at += uint64_t(in.imm);
  const bool simple = in.op == Op::load && in.vec == 1 && in.v[0] >= 0 && in.size == in.reg_size &&
                      at % in.size == 0;
  if (!simple || at > params.size() || params.size() - at < in.size) return false;
  std::memcpy(&value, params.data() + at, in.size);
  fill_register(w.registers, in.v[0], in.size, value);
  return true;
}

// Makes generic addresses relative to the window of their space.
void move_by(uint64_t window, WarpAccess& a, uint64_t* at) {
  if (window == 0) return;
  for (int lane = 0; lane < 32; ++lane) at[lane] -= window;
  a.sum.low -= window, a.sum.high -= window;
}

void note_stored(const WarpAccess& a, const Buffer& b) {
  if (a.sum.contiguous) return b.stored.add(a.sum.low - b.base, a.sum.high + a.bytes() - a.sum.low);
  for (uint32_t m = a.mask; m; m &= m - 1)
    b.stored.add(a.at[std::countr_zero(m)] - b.base, a.bytes());
}

}  // namespace

bool MemoryUnit::access(Warp& w, const Inst& in, uint32_t mask) {
  if (mask == ~0u && parameter(cta_, w, in)) return true;
  alignas(64) uint64_t at[32];
  const uint64_t bytes = uint64_t(in.size) * in.vec;
  const AddressSummary sum =
      addresses_(w.registers + in.a, in.wide_address, in.imm, bytes, mask, at);
  WarpAccess a{.warp = w, .in = in, .mask = mask, .sum = sum, .at = at};
  if (a.sum.bits & (bytes - 1) && !(a.sum.contiguous && (a.sum.low & (bytes - 1)) == 0))
    return report_fault(cta_, a, in.space), false;
  if (in.space != Space::generic) return access_at(a, in.space);
  const Space space = space_of(a.sum.low);
  if (space != space_of(a.sum.high)) return several_spaces(w, in, mask, at);
  move_by(window_of(space), a, at);
  return access_at(a, space);
}

// Call it if the generic addresses of one instruction are in several spaces: accesses one space
// after the other.
bool MemoryUnit::several_spaces(Warp& w, const Inst& in, uint32_t mask, const uint64_t* at) {
  for (Space space : {Space::global, Space::shared, Space::local, Space::param}) {
    uint32_t part = 0;
    uint64_t moved[32];
    for (uint32_t m = mask; m; m &= m - 1) {
      const int lane = std::countr_zero(m);
      if (space_of(at[lane]) != space) continue;
      part |= 1u << lane;
      moved[lane] = at[lane] - window_of(space);
    }
    if (part && !access_at(access_of(w, in, part, moved), space)) return false;
  }
  return true;
}

bool MemoryUnit::access_at(const WarpAccess& a, Space space) {
  const uint64_t end = a.sum.high + a.bytes();
  if (end < a.sum.high) return report_fault(cta_, a, space), false;
  if (space == Space::shared) {
    if (end > cta_.shared.size() && a.sum.high >= kSharedOfCta) return cluster(a);
    if (end > cta_.shared.size()) return report_fault(cta_, a, space), false;
    if (cta_.copies.any() && !checks_.copies(a)) return false;
    if (cta_.wgmma && !cta_.wgmma->reads.empty() && !checks_.wgmma().operands(a, cta_))
      return false;
    if (cta_.guard.any() && !check_guard(cta_, cta_, a)) return false;
    return access_shared(a);
  }
  if (space == Space::local) return local(a);
  if (space == Space::param) {
    if (end > cta_.job.params.size() || a.in.op != Op::load)
      return report_fault(cta_, a, space), false;
    perform(cta_, scheduler_, a, cta_.job.params.data());
    return true;
  }
  return global(a);
}

bool MemoryUnit::access_shared(const WarpAccess& a) {
  std::byte* memory = cta_.shared.data();
  cta_.counting->shared(a.warp.current.pc, a.in, a.mask, a.sum, a.at);
  if (cta_.hazards && !checks_.shared(a)) return false;
  if (a.in.op != Op::load) ++cta_.shared_version;
  perform(cta_, scheduler_, a, memory);
  return !cta_.races || checks_.stored(a, memory, nullptr);
}

bool MemoryUnit::local(const WarpAccess& a) {
  const uint64_t size = uint64_t(cta_.job.program.local_bytes);
  if (a.sum.high + a.bytes() > size || a.in.op == Op::atomic)
    return report_fault(cta_, a, Space::local), false;
  cta_.counting->local(a.warp.current.pc, a.in, a.mask, a.sum, a.at);
  uint64_t moved[32];
  for (int lane = 0; lane < 32; ++lane) moved[lane] = a.at[lane] + size * uint64_t(lane);
  WarpAccess scattered = a;
  scattered.at = moved;
  scattered.sum.contiguous = scattered.sum.uniform = false;
  if (cta_.hazards) checks_.local(scattered);
  perform(cta_, scheduler_, scattered, cta_.local.data() + size * 32 * size_t(a.warp.index));
  return true;
}

bool MemoryUnit::global(const WarpAccess& a) {
  const uint64_t end = a.sum.high + a.bytes();
  const Buffer*& cached = last_[a.warp.current.pc & 15];
  if (!cached || !cached->holds(a.sum.low)) cached = cta_.job.memory.find(a.sum.low);
  const Buffer* b = cached;
  if (!b || end - b->base > b->size) return several_buffers(a);
  if (a.in.op != Op::load && b->access == Access::read_only)
    return report_fault(cta_, a, Space::global), false;
  return in_buffer(a, *b);
}

bool MemoryUnit::several_buffers(const WarpAccess& a) {
  const Buffer* of[32] = {};
  for (uint32_t m = a.mask; m; m &= m - 1) {
    const int lane = std::countr_zero(m);
    const Buffer* b = cta_.job.memory.find(a.at[lane]);
    const bool bad = !b || a.at[lane] + a.bytes() - b->base > b->size ||
                     (a.in.op != Op::load && b->access == Access::read_only);
    if (bad) return report_fault(cta_, a, Space::global), false;
    of[lane] = b;
  }
  for (uint32_t rest = a.mask; rest;) {
    const Buffer* b = of[std::countr_zero(rest)];
    uint32_t part = 0;
    for (uint32_t m = rest; m; m &= m - 1)
      if (of[std::countr_zero(m)] == b) part |= 1u << std::countr_zero(m);
    rest &= ~part;
    if (!in_buffer(access_of(a.warp, a.in, part, a.at), *b)) return false;
  }
  return true;
}

bool MemoryUnit::in_buffer(const WarpAccess& a, const Buffer& b) {
  if (a.in.space != Space::constant) {
    const size_t index = size_t(&b - cta_.job.memory.buffers.data());
    cta_.counting->global(a.warp.current.pc, a.in, a.mask, a.sum, a.at, index);
  }
  if (cta_.hazards && !checks_.global(a, b)) return false;
  std::byte* zero = b.data - b.base;
  perform(cta_, scheduler_, a, zero);
  if (b.stored.watched() && a.in.op == Op::store) note_stored(a, b);
  if (!cta_.races) return true;
  if (a.in.op != Op::store && (a.in.ordered || a.in.d >= 0)) cta_.hazards->global->acquire();
  return checks_.stored(a, zero, &b);
}

}  // namespace cutegen::ptx
