// SPDX-License-Identifier: Apache-2.0
// MemoryUnit::cluster(): accesses to the shared memory of other CTAs of the cluster.
#include <fmt/format.h>

#include <bit>

#include "ptx/cta/guard_checks.h"
#include "ptx/units/memory_unit.h"
#include "ptx/units/perform.h"

namespace cutegen::ptx {
namespace {

// A remote store makes words of `owner` defined. The values of a remote load count as defined.
void note_undefined(CtaState& cta, CtaState& owner, const WarpAccess& a) {
  if (!cta.hazards || !cta.hazards->undefined) return;
  Undefined& mine = *cta.hazards->undefined;
  const Warp& w = a.warp;
  const Undefined::Step step{.registers = w.registers,
                             .in = a.in,
                             .pc = w.current.pc,
                             .warp = w.index,
                             .mask = a.mask,
                             .current = w.current.mask};
  if (a.in.op == Op::load) {
    if (mine.following()) mine.clear(step);
    return;
  }
  UndefinedMemory& theirs = owner.hazards->undefined->memory();
  UndefinedMemory::store(step, mine.registers(), theirs.shared(), a.sum, a.at,
                         theirs.shared_left());
}

}  // namespace

// Call it if some lanes have addresses with a rank: accesses the memory of one CTA after the other.
bool MemoryUnit::cluster(const WarpAccess& a) {
  for (uint32_t rest = a.mask; rest;) {
    const uint64_t tag = a.at[std::countr_zero(rest)] >> kRankShift;
    uint32_t part = 0;
    uint64_t at[32] = {};
    for (uint32_t m = rest; m; m &= m - 1) {
      const int lane = std::countr_zero(m);
      if (a.at[lane] >> kRankShift != tag) continue;
      part |= 1u << lane;
      at[lane] = a.at[lane] & (kSharedOfCta - 1);
    }
    rest &= ~part;
    const WarpAccess one{
        .warp = a.warp, .in = a.in, .mask = part, .sum = summarize(at, part), .at = at};
    const bool own = tag == 0 || (cta_.cluster && tag - 1 == cta_.rank);
    if (!(own ? access_at(one, Space::shared) : remote(one, tag - 1))) return false;
  }
  return true;
}

bool MemoryUnit::remote(const WarpAccess& a, uint64_t rank) {
  const int lane = std::countr_zero(a.mask);
  const size_t size = cta_.cluster ? cta_.cluster->size() : 1;
  CtaState* owner = cta_.cluster ? cta_.cluster->at(rank) : nullptr;
  const char* verb = a.in.op == Op::load ? "read" : a.in.op == Op::store ? "write" : "atomic";
  const uint64_t end = a.sum.high + a.bytes();
  if (rank >= size || (owner && end > owner->shared.size())) {
    cta_.report(a.warp, lane,
                {.kind = "out_of_bounds",
                 .message = fmt::format(
                     "{} of {} bytes at offset {} of the shared memory of rank {}: the cluster has "
                     "{} CTAs with {} bytes each",
                     verb, a.bytes(), a.sum.high, rank, size, cta_.shared.size()),
                 .address = a.at[lane],
                 .buffer = "shared memory"});
    return false;
  }
  if (!owner) {
    cta_.report(a.warp, lane,
                {.kind = "exited_cta",
                 .message = fmt::format(
                     "{} of {} bytes at offset {} of the shared memory of rank {}, which has "
                     "ended: that CTA must wait (barrier.cluster) until no other uses its memory",
                     verb, a.bytes(), a.sum.low, rank),
                 .address = a.at[lane],
                 .buffer = "shared memory"});
    return false;
  }
  cta_.counting->remote(a.warp.current.pc, a.mask, a.bytes());
  if (owner->wgmma && !owner->wgmma->reads.empty() && !checks_.wgmma().operands(a, *owner))
    return false;
  if (owner->guard.any() && !check_guard(cta_, *owner, a)) return false;
  if (cta_.hazards && !checks_.remote(a, *owner)) return false;
  note_undefined(cta_, *owner, a);
  if (a.in.op != Op::load) ++owner->shared_version;
  perform(cta_, scheduler_, a, owner->shared.data());
  return true;
}

}  // namespace cutegen::ptx
