// SPDX-License-Identifier: Apache-2.0
#include "ptx/execute/mbarrier_unit.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "ptx/ops/warp_ops.h"

namespace cutegen::ptx {
namespace {

uint64_t wide_at(const Warp& w, int32_t slot, int lane) {
  uint64_t v = 0;
  std::memcpy(&v, w.registers + slot + lane * 8, 8);
  return v;
}
uint32_t word_at(const Warp& w, int32_t slot, int lane) {
  return words_at(w.registers, slot)[lane];
}

void pending_count(const Warp& w, const Inst& in, uint32_t mask) {
  for (uint32_t m = mask; m; m &= m - 1) {
    const int lane = std::countr_zero(m);
    words_at(w.registers, in.d)[lane] = Mbarrier::pending_of(wide_at(w, in.b, lane));
  }
}

void acquire(const CtaState& cta, const Warp& w, const Inst& in, uint32_t lanes,
             const uint64_t* at) {
  Hazards* h = cta.hazards.get();
  if (!h || !h->clocks.vector() || (in.target & kMbarrierRelaxed)) return;
  uint64_t last = ~uint64_t{0};
  for (uint32_t m = lanes; m; m &= m - 1) {
    const uint64_t place = at[std::countr_zero(m)];
    if (place != last) h->clocks.wait_mbarrier(w.index, place);
    last = place;
  }
  if (!h->global || !lanes) return;
  h->global->join();
  if (cta.cluster) h->global->acquire();  // another CTA may have arrived
}

// Converts generic addresses to addresses of shared memory.
bool from_generic(CtaState& cta, const Warp& w, uint32_t mask, uint64_t* at) {
  for (int lane = 0; lane < 32; ++lane) {
    const uint64_t address = at[lane];
    at[lane] -= kSharedWindow;
    if (!(mask >> lane & 1) || at[lane] < kWindowBytes) continue;
    const Buffer* b = cta.job.memory.find(address);
    cta.report(
        w, lane,
        {.kind = "out_of_bounds",
         .message = fmt::format("an mbarrier at the generic address {:#x}, {}: mbarriers must "
                                "lie in shared memory",
                                address, b ? "in buffer " + b->name : "which is not mapped"),
         .address = address,
         .buffer = b ? b->name : ""});
    return false;
  }
  return true;
}

// Other CTAs of the cluster may only arrive, or change the expected bytes.
std::string wrong_from_elsewhere(const Inst& in) {
  const auto op = MbarrierOp(in.sub);
  const bool arrives = op == MbarrierOp::arrive || op == MbarrierOp::arrive_drop;
  if (arrives && in.d >= 0) return "an arrival of another CTA returns no state";
  if (arrives || op == MbarrierOp::expect_tx || op == MbarrierOp::complete_tx) return "";
  return "only arrivals, expect_tx and complete_tx may come from another CTA";
}

// If the count of mbarrier.init does not match the arrivals, the phases drift against them.
std::string in_two_phases(const Mbarrier& b) {
  return fmt::format(
      "the lanes of one instruction arrive in phase {} and in phase {}: mbarrier.init has a count "
      "of "
      "{}, but more threads arrive in a phase",
      b.phase - 1, b.phase, b.expected);
}

std::string wrong_init(CtaState& cta, uint64_t at, uint32_t count) {
  if (count < 1 || count > kMostArrivals)
    return fmt::format("a count of {} (1 to 2^20 - 1)", count);
  if (const Mbarrier* old = cta.mbarriers.in(at, at + kMbarrierBytes))
    return "initialised again without mbarrier.inval, first at " + cta.place(old->pc);
  return {};
}

void invalidate(CtaState& cta, uint64_t at) {
  cta.mbarriers.erase(at);
  ++cta.mbarriers.changes;
  cta.guard.remove(SharedGuard::Mark::mbarrier, at, at + kMbarrierBytes);
}

bool init(CtaState& cta, MbarrierPhases& phases, Warp& w, const Inst& in, int lane, uint64_t at) {
  const uint32_t count = word_at(w, in.b, lane);
  const std::string wrong = wrong_init(cta, at, count);
  if (!wrong.empty()) return phases.fail(w, lane, cta, at, wrong), false;
  Mbarrier& b = cta.mbarriers.add(at, count, w.current.pc, w.index);
  ++cta.mbarriers.changes;
  cta.guard.add(SharedGuard::Mark::mbarrier, at, at + kMbarrierBytes);
  if (cta.hazards && cta.hazards->clocks.vector()) {
    cta.hazards->clocks.init_mbarrier(at);
    b.label = cta.hazards->clocks.label(w.index);
  }
  return true;
}

}  // namespace

bool MbarrierUnit::places(Warp& w, const Inst& in, uint32_t mask, Places& to) {
  uint64_t* at = to.at;
  AddressSummary sum =
      addresses_(w.registers + in.a, in.wide_address, in.imm, kMbarrierBytes, mask, at);
  if (in.space == Space::generic && !from_generic(cta_, w, mask, at)) return false;
  std::fill(std::begin(to.owner), std::end(to.owner), &cta_);
  for (uint32_t m = mask; m; m &= m - 1) {
    const int lane = std::countr_zero(m);
    to.owner[lane] = phases_.owner_of(w, lane, at[lane]);
    if (!to.owner[lane]) return false;
    if (to.owner[lane] == &cta_) continue;
    const std::string wrong = wrong_from_elsewhere(in);
    if (!wrong.empty()) return phases_.fail(w, lane, *to.owner[lane], at[lane], wrong), false;
  }
  sum = summarize(at, mask);
  return phases_.valid_address(w, mask, sum, at);
}

MbarrierUnit::Next MbarrierUnit::execute(Warp& w, const Inst& in, uint32_t mask) {
  const auto op = MbarrierOp(in.sub);
  if (op == MbarrierOp::pending_count) {
    pending_count(w, in, mask);
    ++w.current.pc;
    return Next::on;
  }
  Places p;
  if (!places(w, in, mask, p)) return Next::failed;
  if (op == MbarrierOp::test_wait || op == MbarrierOp::try_wait) return wait(w, in, mask, p.at);
  const bool arrives = op == MbarrierOp::arrive || op == MbarrierOp::arrive_drop;
  const Mbarrier* last = nullptr;
  uint64_t phase = 0;  // of `last`, before the arrivals of this instruction
  for (uint32_t m = mask; m; m &= m - 1) {
    const int lane = std::countr_zero(m);
    const Mbarrier* b = arrives ? p.owner[lane]->mbarriers.find(p.at[lane]) : nullptr;
    if (b && b != last) last = b, phase = b->phase;
    if (b && b->phase != phase) {
      phases_.fail(w, lane, *p.owner[lane], p.at[lane], in_two_phases(*b));
      return Next::failed;
    }
    if (!change(w, in, lane, *p.owner[lane], p.at[lane])) return Next::failed;
  }
  w.spins = 0;
  ++w.current.pc;
  return Next::on;
}

bool MbarrierUnit::change(Warp& w, const Inst& in, int lane, CtaState& owner, uint64_t at) {
  const auto op = MbarrierOp(in.sub);
  if (op == MbarrierOp::init) return init(cta_, phases_, w, in, lane, at);
  if (!phases_.live(w, lane, owner, at)) return false;
  if (op == MbarrierOp::inval) {
    invalidate(cta_, at);
    return true;
  }
  if (op == MbarrierOp::arrive || op == MbarrierOp::arrive_drop)
    return arrive(w, in, lane, owner, at);
  if (op == MbarrierOp::after_copies) return arrivals_.add(w, in, lane, at);
  Mbarrier& b = *owner.mbarriers.find(at);
  const int64_t bytes = word_at(w, in.b, lane);
  const char* wrong = op == MbarrierOp::expect_tx ? b.expect(bytes) : b.complete(bytes);
  if (wrong) return phases_.fail(w, lane, owner, at, wrong), false;
  phases_.settle(owner, at, b);
  return true;
}

bool MbarrierUnit::arrive(Warp& w, const Inst& in, int lane, CtaState& owner, uint64_t at) {
  Mbarrier& b = *owner.mbarriers.find(at);
  const uint32_t number = in.b >= 0 ? word_at(w, in.b, lane) : 1;
  const bool expects = in.target & kMbarrierExpects;
  if (const char* wrong = expects ? b.expect(number) : nullptr)
    return phases_.fail(w, lane, owner, at, wrong), false;
  const uint64_t state = b.state();
  const uint32_t pending = b.pending, count = expects ? 1 : number;
  const bool drop = MbarrierOp(in.sub) == MbarrierOp::arrive_drop;
  if (const char* wrong = b.arrive(count, drop, in.target & kMbarrierNoComplete)) {
    phases_.fail(w, lane, owner, at,
                 fmt::format("{}: an arrival of {}, {} of {} are missing in phase {}", wrong, count,
                             pending, b.expected, b.phase));
    return false;
  }
  if (!(in.target & kMbarrierRelaxed)) phases_.release(w, owner, at);
  if (in.d >= 0) std::memcpy(w.registers + in.d + lane * 8, &state, 8);
  phases_.settle(owner, at, b);
  return true;
}

// mbarrier.test_wait, try_wait: "waits for the completion of the phase".
std::optional<uint32_t> MbarrierUnit::passed(Warp& w, const Inst& in, uint32_t mask,
                                             const uint64_t* at) {
  uint32_t out = 0;
  for (uint32_t m = mask; m; m &= m - 1) {
    const int lane = std::countr_zero(m);
    if (!phases_.live(w, lane, cta_, at[lane])) return std::nullopt;
    const Mbarrier& b = *cta_.mbarriers.find(at[lane]);
    if (in.target & kMbarrierParity) {
      const uint32_t parity = word_at(w, in.b, lane);
      if (parity > 1) {
        phases_.fail(w, lane, cta_, at[lane],
                     fmt::format("a wait for the parity {} (0 or 1)", parity));
        return std::nullopt;
      }
      out |= uint32_t((b.phase & 1) != parity) << lane;
      continue;
    }
    const uint64_t phase = Mbarrier::phase_of(wide_at(w, in.b, lane));
    if (phase > b.phase || phase + 1 < b.phase) {
      phases_.fail(
          w, lane, cta_, at[lane],
          fmt::format(
              "a wait with a state of phase {}, but the mbarrier is in phase {}: a wait can "
              "name only the current or the previous phase",
              phase, b.phase));
      return std::nullopt;
    }
    out |= uint32_t(phase != b.phase) << lane;
  }
  return out;
}

MbarrierUnit::Next MbarrierUnit::wait(Warp& w, const Inst& in, uint32_t mask, const uint64_t* at) {
  MbarrierWait& waits = cta_.mbarrier_waits[size_t(w.index)];
  auto done = passed(w, in, mask, at);
  if (done && *done != mask && (cta_.bulk.any() || !cta_.copies.arrivals().empty())) {
    if (!arrivals_.deliver(w, mask & ~*done, at)) return Next::failed;
    done = passed(w, in, mask, at);
  }
  if (!done) return Next::failed;
  if (waits.passed) {  // the phase has completed, even if a later one has begun
    for (uint32_t m = mask; m; m &= m - 1) {
      const int lane = std::countr_zero(m);
      if (at[lane] == waits.at) *done |= 1u << lane;
    }
  }
  const bool tries = MbarrierOp(in.sub) == MbarrierOp::try_wait;
  const bool early = scheduler_.ends_waits_early() && !waits.tried;
  const bool ends = *done == mask || !tries || waits.timed_out || early;
  waits.passed = waits.timed_out = false;
  waits.tried = *done != mask;
  if (!ends) return suspend(w, in, mask, *done, at);
  acquire(cta_, w, in, *done, at);
  set_predicate(w.registers, in.d, *done, mask);
  if (Chain* chain = cta_.chain_of(w); chain && *done) chain->wait_at(at[std::countr_zero(*done)]);
  if (!tries && *done != mask) scheduler_.note_wait(w, at[std::countr_zero(mask & ~*done)]);
  ++w.current.pc;
  return early ? Next::yield : Next::on;
}

// Suspends the lanes of `mask`. If other lanes of the warp can run, the wait returns false instead.
MbarrierUnit::Next MbarrierUnit::suspend(Warp& w, const Inst& in, uint32_t mask, uint32_t done,
                                         const uint64_t* at) {
  w.split_off(mask);
  bool others = false;
  for (int i = 0; i < w.count; ++i) others = others || !w.others[i].blocked;
  if (others) {
    acquire(cta_, w, in, done, at);
    set_predicate(w.registers, in.d, done, mask);
    ++w.current.pc;
    w.pass_turn();
    return Next::yield;
  }
  w.state = Warp::State::waiting;
  w.barrier = kAtMbarrier, w.waits_at = w.current.pc;
  cta_.mbarrier_waits[size_t(w.index)].at = at[std::countr_zero(mask & ~done)];
  return Next::wait;
}

}  // namespace cutegen::ptx
