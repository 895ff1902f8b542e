// SPDX-License-Identifier: Apache-2.0
#include "ptx/cta/warp_scheduler.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

namespace cutegen::ptx {
namespace {

constexpr uint64_t kQuantum = 1 << 16;   // warp instructions per turn
constexpr int kMostTimeOuts = 4096;      // time-outs in a row without any change
constexpr uint64_t kMixedQuantum = 512;  // the longest turn of random length

std::string describe_wait(const CtaState& cta, const Warp& w) {
  const uint64_t at = cta.mbarrier_waits[size_t(w.index)].at;
  const Mbarrier* b = cta.mbarriers.find(at);
  const std::string where =
      fmt::format("at the mbarrier at offset {} of shared memory, {}", at, cta.place(w.waits_at));
  if (!b) return where;
  return fmt::format("{}, whose phase {} lacks {} of {} arrivals and {} bytes", where, b->phase,
                     b->pending, b->expected, b->bytes);
}

}  // namespace

WarpScheduler::WarpScheduler(CtaState& cta, const Barriers& barriers)
    : cta_(cta),
      barriers_(barriers),
      mixed_(cta.job.order == Order::mixed),
      spins_(cta.job.spins()),
      turns_(cta.warps.size()) {
  for (size_t i = 0; i < turns_.size(); ++i)
    turns_[i] = uint8_t(cta.job.order == Order::reversed ? turns_.size() - 1 - i : i);
}

void WarpScheduler::begin() {
  random_ = cta_.job.order_seed * 0x9e3779b97f4a7c15 + uint64_t(cta_.linear);
  changes_ = 0, time_outs_ = 0;
}

// SplitMix64.
uint64_t WarpScheduler::random() {
  uint64_t z = (random_ += 0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

const std::vector<uint8_t>& WarpScheduler::next_turns() {
  for (size_t i = mixed_ ? turns_.size() : 0; i > 1; --i)
    std::swap(turns_[i - 1], turns_[random() % i]);
  return turns_;
}

uint64_t WarpScheduler::quantum() {
  return mixed_ ? 1 + random() % kMixedQuantum : kQuantum;
}

Meet WarpScheduler::meet(Warp& w, uint32_t needed, uint32_t mask, const char* kind) {
  const uint32_t missing = needed & w.alive & ~mask;
  if (missing == 0) return Meet::here;
  const Split here = w.current;
  w.current.blocked = true;
  if (w.reschedule()) return Meet::parked;
  w.current = here;
  std::string where;
  for (int i = 0; i < w.count && where.size() < 200; ++i) {
    if (w.others[i].mask & missing) where += " at " + cta_.place(w.others[i].pc);
  }
  cta_.report(w, std::countr_zero(mask),
              {.kind = kind,
               .message = fmt::format("lanes {:#010x} of the warp are here, lanes {:#010x} wait{}",
                                      mask, missing, where)});
  return Meet::failed;
}

// Sleep in a polling loop does not count, because other threads decide how long the warp polls.
void WarpScheduler::sleep(Warp& w, const Inst& in, uint32_t mask) {
  if (w.spins >= 2) return;
  constexpr uint32_t kMost = 1'000'000;  // ns, of one nanosleep
  const auto* ns = reinterpret_cast<const uint32_t*>(w.registers + in.a);
  uint32_t longest = 0;
  for (uint32_t m = mask; m; m &= m - 1)
    longest = std::max(longest, std::min(kMost, ns[std::countr_zero(m)]));
  w.slept_ns += longest;
}

void WarpScheduler::note_poll(Warp& w, const Inst& in, uint64_t address, bool changed) {
  if (changed || (in.op == Op::load && !in.ordered)) {
    w.spins = changed ? 0 : w.spins;
  } else if (address != w.spin_address) {
    w.spin_address = address, w.spins = 1;
    count_poll(w, false);
  } else {
    ++w.spins;
    count_poll(w, true);
  }
}

void WarpScheduler::note_wait(Warp& w, uint64_t address) {
  Inst poll;
  poll.op = Op::load, poll.ordered = true;
  note_poll(w, poll, kSharedWindow + address, false);
}

// A short loop around a poll waits for other threads, so its instructions are not the warp's work.
void WarpScheduler::count_poll(Warp& w, bool again) {
  constexpr uint64_t kShort = 64;  // instructions between two polls
  const uint64_t loop = w.executed - w.polled_at;
  again = again && loop <= kShort;
  if (again) w.polled += loop;
  w.polled_at = w.executed;
  if (Chain* chain = cta_.chain_of(w)) chain->poll(w.current.pc, again);
}

std::string WarpScheduler::describe(const Warp& w) const {
  if (w.state == Warp::State::done) return "ended";
  if (w.state == Warp::State::running) return "at " + cta_.place(w.current.pc);
  const std::string at = "at " + cta_.place(w.waits_at);
  if (w.barrier == kAtWgmmaWait) return at + ", until the other warps of its warpgroup arrive";
  if (w.barrier == kAtClusterBarrier) {
    return fmt::format("{}, which {} of {} threads of the cluster have reached", at,
                       cta_.cluster->arrived(), cta_.cluster->alive());
  }
  if (w.barrier == kAtRegisters) {
    return fmt::format("{}, but the CTA has {} free registers", at, cta_.wgmma->free_registers);
  }
  if (w.barrier == kAtMbarrier) return describe_wait(cta_, w);
  return barriers_.describe(w);
}

bool WarpScheduler::time_out_waits() {
  const uint64_t changes = cta_.mbarriers.changes * 64 + uint64_t(cta_.alive_warps);
  time_outs_ = changes == changes_ ? time_outs_ + 1 : 0;
  changes_ = changes;
  if (time_outs_ >= kMostTimeOuts) return false;
  bool any = false;
  for (Warp& w : cta_.warps) {
    if (w.state != Warp::State::waiting || w.barrier != kAtMbarrier) continue;
    any = true;
    w.state = Warp::State::running;
    cta_.mbarrier_waits[size_t(w.index)].timed_out = true;
  }
  return any;
}

void WarpScheduler::deadlock() {
  const auto& warps = cta_.warps;
  std::string who;
  for (size_t i = 0; i < warps.size();) {  // neighbours in the same state share one entry
    const std::string state = describe(warps[i]);
    size_t end = i + 1;
    while (end < warps.size() && describe(warps[end]) == state) ++end;
    if (who.size() < 400) {
      const bool one = end == i + 1;
      who += fmt::format("; warp{} {}", one ? "" : "s",
                         one ? std::to_string(i) : fmt::format("{}-{}", i, end - 1));
      who += " " + state;
    }
    i = end;
  }
  for (Warp& w : cta_.warps) {
    if (w.state != Warp::State::waiting) continue;
    w.current.pc = w.waits_at;
    cta_.report(w, std::countr_zero(w.alive),
                {.kind = "deadlock", .message = "no warp can go on" + who});
    return;
  }
}

void WarpScheduler::fail_spinning(int64_t resident) {
  for (const Warp& w : cta_.warps) {
    if (w.state != Warp::State::running) continue;
    cta_.report(
        w, std::countr_zero(w.alive),
        {.kind = "deadlock",
         .message = fmt::format("all {} resident CTAs poll memory and none writes "
                                "it; warp {} polls {:#x} at {}",
                                resident, w.index, w.spin_address, cta_.place(w.current.pc))});
    return;
  }
}

}  // namespace cutegen::ptx
