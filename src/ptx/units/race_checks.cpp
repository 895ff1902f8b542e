// SPDX-License-Identifier: Apache-2.0
#include "ptx/units/race_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace cutegen::ptx {
namespace {

const char* verb(Touch touch) {
  return touch == Touch::read ? "read" : touch == Touch::write ? "write" : "atomic operation";
}

// The lanes of a store that do not change memory.
uint32_t unchanged(const WarpAccess& a, uint32_t mask, const std::byte* zero) {
  const Inst& in = a.in;
  uint32_t out = 0;
  if (in.op != Op::store) return 0;
  for (uint32_t m = mask; m; m &= m - 1) {
    const int lane = std::countr_zero(m);
    bool same = true;
    for (int k = 0; k < in.vec; ++k) {
      same = same &&
             std::memcmp(zero + a.at[lane] + ptrdiff_t(k) * in.size,
                         a.warp.registers + in.v[k] + ptrdiff_t(lane) * in.reg_size, in.size) == 0;
    }
    out |= uint32_t(same) << lane;
  }
  return out;
}

// Lets an ordered access synchronise through its address.
void order(CtaState& cta, const WarpAccess& a, CtaState& owner, Touch touch) {
  Clocks& clocks = owner.hazards->clocks;
  const int warp = clocks.peer(cta.rank, a.warp.index);
  for (uint32_t m = a.mask; m; m &= m - 1) {
    const uint64_t place = a.at[std::countr_zero(m)];
    if (touch != Touch::write) clocks.acquire(warp, place);
    if (touch != Touch::read) clocks.release(warp, place);
  }
  if (cta.hazards->global) cta.hazards->global->join();
}

// Records that the access may tell another CTA that earlier writes are complete.
void signal(Hazards& h, const WarpAccess& a, Touch touch) {
  if (touch == Touch::read) return;
  if (a.in.releases) h.fence(a.warp.index, kFenceGpu);
  if (touch == Touch::atomic || a.in.ordered || std::has_single_bit(a.mask)) h.signal(a.warp.index);
}

GlobalAccess global_access(const WarpAccess& a, Touch touch) {
  return {.touch = touch,
          .warp = a.warp.index,
          .pc = a.warp.current.pc,
          .mask = a.mask,
          .summary = a.sum,
          .at = a.at,
          .bytes = uint32_t(a.bytes())};
}

}  // namespace

bool RaceChecks::shared(const WarpAccess& a, uint32_t lanes, CtaState& owner) {
  Hazards& h = *owner.hazards;
  const Touch touch = touch_of(a.in);
  if (cta_.cluster) signal(*cta_.hazards, a, touch);
  const bool orders = a.in.ordered || (touch == Touch::atomic && a.in.d >= 0);
  if (orders && h.clocks.vector()) {
    order(cta_, a, owner, touch);
    if (a.in.ordered) return true;
  }
  const int warp = &owner == &cta_ ? a.warp.index : h.clocks.peer(cta_.rank, a.warp.index);
  const Inst& issued = cta_.job.program.code[size_t(a.warp.current.pc)];
  const uint32_t bytes = uint32_t(a.bytes());
  const uint32_t bad =
      issued.op == Op::wgmma && h.clocks.vector()
          ? h.shared->multiply(
                {.warp = warp, .pc = a.warp.current.pc, .label = cta_.wgmma->next_group(warp)},
                lanes, a.at)
          : h.shared->touch(touch, warp, a.warp.current.pc, lanes, a.sum, a.at, bytes);
  if (bad) return report_shared(a, bad, owner);
  if (issued.op == Op::async_copy && h.clocks.vector())
    h.shared->by_async_copy(warp, lanes, a.at, uint32_t(a.bytes()));
  return true;
}

bool RaceChecks::report_shared(const WarpAccess& a, uint32_t bad, const CtaState& owner) {
  bad &= ~unchanged(a, bad, owner.shared.data());
  const Touch touch = touch_of(a.in);
  const Clocks& clocks = owner.hazards->clocks;
  const int warp = clocks.peer(cta_.rank, a.warp.index);
  const bool own = &owner == &cta_;
  for (; bad; bad &= bad - 1) {
    const int lane = std::countr_zero(bad);
    const auto other = owner.hazards->shared->party(touch, own ? a.warp.index : warp, a.at[lane],
                                                    uint32_t(a.bytes()));
    if (other.warp < 0 && !other.is_copy) continue;
    if (other.is_copy) return report_copy(a, lane, other.pc), false;
    const int rank = other.rank < 0 && !own ? int(owner.rank) : other.rank;
    const int thread = other.warp * 32 + std::max(0, other.lane);
    std::string who = other.lane >= 0 ? fmt::format("thread {}", thread)
                                      : fmt::format("a thread of warp {}", other.warp);
    if (rank >= 0) who += fmt::format(" of rank {}", rank);
    const std::string whose = own ? "" : fmt::format(" of rank {}", owner.rank);
    cta_.report(
        a.warp, lane,
        {.kind = "shared_race",
         .message = fmt::format("{} of {} bytes at offset {} of shared memory{} by thread {} and "
                                "the {} by {}{} are not ordered by a barrier",
                                verb(touch), a.bytes(), a.at[lane], whose, a.thread(lane),
                                other.wrote ? "write" : "read", who,
                                other.pc >= 0 ? " at " + cta_.place(other.pc) : ""),
         .address = a.at[lane],
         .buffer = "shared memory",
         .other = cta_.party(other.pc, thread, cta_.place_of(rank))});
    return false;
  }
  return true;
}

bool RaceChecks::global(const WarpAccess& a, const Buffer& b, BufferShadow& shadow) {
  Hazards& h = *cta_.hazards;
  const Job& job = cta_.job;
  const Touch touch = touch_of(a.in);
  const bool before_wait = job.unsettled && !(h.waited >> a.warp.index & 1);
  if (before_wait && b.base != job.workspace && shadow.writers.size() && !settled(a, b, shadow))
    return false;
  signal(h, a, touch);
  if (touch != Touch::read && (a.in.ordered || touch == Touch::atomic)) h.global->release();
  if (a.in.ordered && touch != Touch::atomic) return true;
  if (!shadow.writers.size()) return true;
  const uint32_t bad = h.global->touch(global_access(a, touch), shadow, b.base);
  return bad == 0 || report_global(a, bad, b);
}

// Reports bytes that a copy has written, if the warp has not waited for the copy.
void RaceChecks::report_copy(const WarpAccess& a, int lane, int32_t pc) {
  cta_.report(
      a.warp, lane,
      {.kind = "async_copy_pending",
       .message = fmt::format("{} of {} bytes at offset {} of shared memory, which the copy "
                              "at {} writes: wait for its mbarrier first",
                              verb(touch_of(a.in)), a.bytes(), a.at[lane], cta_.place(pc)),
       .address = a.at[lane],
       .buffer = "shared memory",
       .other = cta_.party(pc, 0, cta_.at)});
}

// Before griddepcontrol.wait, the previous launch may still run, so the kernel must not access its
// outputs nor write its inputs.
bool RaceChecks::settled(const WarpAccess& a, const Buffer& b, BufferShadow& shadow) {
  const Touch touch = touch_of(a.in);
  for (uint32_t m = a.mask; m; m &= m - 1) {
    const int lane = std::countr_zero(m);
    const uint64_t from = a.at[lane] - b.base;
    const auto other =
        cta_.hazards->launch.conflict(shadow, touch, cta_.job.unsettled, from, uint64_t(a.bytes()));
    if (!other) continue;
    cta_.report(a.warp, lane,
                {.kind = "pdl_race",
                 .message = fmt::format("{} of {} bytes at offset {} of {} by thread {} before "
                                        "griddepcontrol.wait: the previous step, which {} them, "
                                        "may still run",
                                        verb(touch), a.bytes(), from, b.name, a.thread(lane),
                                        *other == Touch::write ? "writes" : "reads"),
                 .address = a.at[lane],
                 .buffer = b.name});
    return false;
  }
  return true;
}

bool RaceChecks::report_global(const WarpAccess& a, uint32_t bad, const Buffer& b) {
  bad &= ~unchanged(a, bad, b.data - b.base);
  if (!bad) return true;
  const Epoch& e = cta_.hazards->global->other();
  const int lane = std::countr_zero(bad);
  const auto& g = cta_.job.config.grid;
  const std::array<int64_t, 3> cta{e.cta % g[0], e.cta / g[0] % g[1], e.cta / (g[0] * g[1])};
  const uint64_t at = a.at[lane];
  const bool known = e.stride > 0 && at >= e.low && at - e.low < uint64_t(32) * e.stride;
  const int thread = e.warp * 32 + (known ? int((at - e.low) / e.stride) : 0);
  const std::string who =
      known ? fmt::format("thread {}", thread) : fmt::format("a thread of warp {}", e.warp);
  const std::string where =
      e.cta == cta_.linear ? "" : fmt::format(" of CTA ({},{},{})", cta[0], cta[1], cta[2]);
  cta_.report(a.warp, lane,
              {.kind = "global_race",
               .message = fmt::format("{} of {} bytes at offset {} of {} by thread {} and the {} "
                                      "by {}{} at {} are not ordered",
                                      verb(touch_of(a.in)), a.bytes(), at - b.base, b.name,
                                      a.thread(lane), verb(e.touch), who, where, cta_.place(e.pc)),
               .address = at,
               .buffer = b.name,
               .other = cta_.party(e.pc, thread, cta)});
  return false;
}

bool RaceChecks::lanes(const WarpAccess& a, const std::byte* zero, const Buffer* b) {
  uint32_t lost = a.mask & ~unchanged(a, a.mask, zero);
  for (; lost; lost &= lost - 1) {
    const int lane = std::countr_zero(lost);
    for (uint32_t m = a.mask & ~(1u << lane); m; m &= m - 1) {
      const int other = std::countr_zero(m);
      if (a.at[other] >= a.at[lane] + a.bytes() || a.at[lane] >= a.at[other] + a.bytes()) continue;
      const std::string memory = b ? b->name : "shared memory";
      cta_.report(a.warp, lane,
                  {.kind = b ? "global_race" : "shared_race",
                   .message = fmt::format("threads {} and {} store different values to offset {} "
                                          "of {} in one instruction",
                                          a.thread(lane), a.thread(other),
                                          a.at[lane] - (b ? b->base : 0), memory),
                   .address = a.at[lane],
                   .buffer = memory,
                   .other = cta_.party(a.warp.current.pc, a.thread(other), cta_.at)});
      return false;
    }
  }
  return true;
}

bool RaceChecks::copies(const WarpAccess& a) {
  const CopiesInFlight& copies = cta_.copies;
  if (a.sum.contiguous || a.sum.uniform) {
    if (!copies.touches(a.sum.low, a.sum.high + a.bytes())) return true;
  }
  for (uint32_t m = a.mask; m; m &= m - 1) {
    const int lane = std::countr_zero(m);
    const uint64_t from = a.at[lane], to = from + a.bytes();
    if (!copies.touches(from, to)) continue;
    const AsyncCopy* copy = copies.find(from, to);
    const std::string who =
        copy ? fmt::format("ptx:{}", cta_.job.program.lines[size_t(copy->pc)].line)
             : "of another warp";
    cta_.report(
        a.warp, lane,
        {.kind = "async_copy_pending",
         .message = fmt::format("{} of {} bytes at offset {} of shared memory, which "
                                "cp.async ({}) has not written yet: wait for its group first",
                                verb(touch_of(a.in)), a.bytes(), from, who),
         .address = from,
         .buffer = "shared memory"});
    return false;
  }
  return true;
}

}  // namespace cutegen::ptx
