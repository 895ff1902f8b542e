// SPDX-License-Identifier: Apache-2.0
#include "ptx/execute/interpreter.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "ptx/ops/warp_ops.h"
#include "ptx/units/host_calls.h"

namespace cutegen::ptx {
namespace {

void read_clock(const Warp& w, const Inst& in, uint32_t mask) {
  for (int lane = 0; lane < 32; ++lane) {
    if (mask >> lane & 1)
      std::memcpy(w.registers + in.d + lane * in.reg_size, &w.executed, in.reg_size);
  }
}

void read_active_mask(const Warp& w, const Inst& in, uint32_t mask) {
  uint32_t* d = words_at(w.registers, in.d);
  for (int lane = 0; lane < 32; ++lane) d[lane] = (mask >> lane & 1) ? mask : d[lane];
}

void end_unsupported(CtaState& cta, const Warp& w, const Inst& in) {
  const Program& program = cta.job.program;
  cta.status = LaunchStatus::unsupported;
  cta.reason = fmt::format("{} (ptx:{}) is not simulated", program.messages[size_t(in.target)],
                           program.lines[size_t(w.current.pc)].line);
}

bool shows_mbarriers(uint8_t fence) {
  return fence == kFenceMbarrierInit || fence == kFenceProxy || fence == kFenceProxyShared;
}

// False: an index outside the table.
bool branch_index(CtaState& cta, Warp& w, const Inst& in, uint32_t mask) {
  const auto& table = cta.job.program.tables[size_t(in.target)];
  const uint32_t* index = words_at(w.registers, in.a);
  w.split_off(mask);
  uint32_t rest = mask;
  int ways = 0;
  while (rest) {
    const int lane = std::countr_zero(rest);
    const uint32_t i = index[lane];
    if (i >= table.size()) {
      cta.report(w, lane,
                 {.kind = "bad_branch",
                  .message = fmt::format("brx.idx with index {} of {} targets", i, table.size())});
      return false;
    }
    uint32_t same = 0;
    for (uint32_t r = rest; r; r &= r - 1) {
      const int other = std::countr_zero(r);
      if (index[other] == i) same |= 1u << other;
    }
    rest &= ~same;
    ++ways;
    if (rest == 0) {
      w.current = {.pc = table[i], .mask = same, .blocked = false};
    } else {
      w.add({.pc = table[i], .mask = same, .blocked = false});
      w.current.mask = rest;
    }
  }
  if (ways > 1) cta.counting->divergent(in);
  if (w.count > 0) w.reschedule();
  return true;
}

void branch(const CtaState& cta, Warp& w, const Inst& in, uint32_t mask) {
  if (mask == w.current.mask) {
    w.current.pc = in.target;
  } else if (mask == 0) {
    ++w.current.pc;
  } else {
    cta.counting->divergent(in);
    w.add({.pc = in.target, .mask = mask, .blocked = false});
    w.current.mask &= ~mask;
    ++w.current.pc;
  }
  if (w.count > 0) w.reschedule();
}

}  // namespace

Interpreter::Step Interpreter::run(Warp& w) {
  const Inst* code = cta_.job.program.code.data();
  Executed* executed = cta_.counting->executed();
  const Hazards* hazards = cta_.hazards.get();
  const Undefined* undefined = hazards && hazards->undefined ? &*hazards->undefined : nullptr;
  const bool watches = checks_.watches();
  Chain* chain = cta_.chain_of(w);
  const uint64_t quantum = scheduler_.quantum();
  for (uint64_t n = 0; n < quantum; ++n) {
    if (w.count > 0) w.merge();
    const Inst& in = code[w.current.pc];
    uint32_t mask = w.current.mask;
    if (in.guard >= 0) {
      const uint32_t p = predicate_at(w.registers, in.guard);
      mask &= in.guard_negated ? ~p : p;
    }
    if (executed) {
      Executed& x = executed[w.current.pc];
      ++x.runs;
      x.lanes += mask == ~0u ? 32 : uint64_t(std::popcount(mask));
    }
    if (chain) chain->step(in, w.current.pc, mask);
    ++w.executed;
    if (watches && (in.watched || (undefined && undefined->following())) &&
        !checks_.follow(w, in, mask))
      return Step::failed;
    if (in.op == Op::alu) {
      if (mask == ~0u && in.full)
        in.full(w.registers, in, mask);
      else if (mask)
        in.masked(w.registers, in, mask);
      ++w.current.pc;
    } else if (in.op == Op::branch) {
      branch(cta_, w, in, mask);
    } else if (mask == 0) {
      ++w.current.pc;
    } else if (in.op == Op::barrier) {
      if (!barrier(w, in, mask)) return Step::failed;
      if (w.state == Warp::State::waiting) return Step::waiting;
    } else if (in.op == Op::exit) {
      w.leave(mask);
      if (w.alive == 0) return Step::done;
    } else if (in.op == Op::mbarrier) {
      const auto next = mbarriers_.execute(w, in, mask);
      if (next == MbarrierUnit::Next::failed) return Step::failed;
      if (next == MbarrierUnit::Next::wait) return Step::waiting;
      if (next == MbarrierUnit::Next::yield || scheduler_.yields(w, in)) return Step::yield;
    } else if (!execute(w, in, mask)) {
      return Step::failed;
    } else if (w.state == Warp::State::waiting) {
      return Step::waiting;
    } else if (scheduler_.yields(w, in)) {
      return Step::yield;
    }
  }
  return Step::yield;
}

bool Interpreter::execute(Warp& w, const Inst& in, uint32_t mask) {
  switch (in.op) {
    case Op::load:
    case Op::store:
    case Op::atomic:
      if (!memory_.access(w, in, mask)) return false;
      break;
    case Op::branch_index:
      return branch_index(cta_, w, in, mask);
    case Op::shuffle:
    case Op::vote:
    case Op::warp_reduce:
    case Op::match:
    case Op::warp_sync:
    case Op::elect: {
      const Meet m = collectives_.execute(w, in, mask);
      if (m != Meet::here) return m == Meet::parked;
      break;
    }
    case Op::matrix:
    case Op::load_matrix:
    case Op::store_matrix: {
      const Meet m = matrix_.execute(w, in, mask);
      if (m != Meet::here) return m == Meet::parked;
      break;
    }
    case Op::wgmma: {
      const Meet m = wgmma_.execute(w, in, mask);
      if (m != Meet::here) return m == Meet::parked;
      break;
    }
    case Op::cluster_barrier: {
      const Meet m = cluster_.barrier(w, in, mask);
      if (m != Meet::here) return m == Meet::parked;
      break;
    }
    case Op::cluster_map:
      if (!cluster_.map(w, in, mask)) return false;
      break;
    case Op::async_copy:
      if (!async_.issue(w, in, mask)) return false;
      break;
    case Op::async_commit:
      async_.commit(w, mask);
      break;
    case Op::async_wait:
      if (!async_.wait(w, in, mask)) return false;
      break;
    case Op::bulk_copy:
      if (!bulk_.issue(w, in, mask)) return false;
      break;
    case Op::bulk_commit:
      bulk_.commit(w, mask);
      break;
    case Op::bulk_wait:
      if (!bulk_.wait(w, in, mask)) return false;
      break;
    case Op::active_mask:
      read_active_mask(w, in, mask);
      break;
    case Op::clock:
      read_clock(w, in, mask);
      break;
    case Op::fence:
      fence(w, in, mask);
      break;
    case Op::trap:
      cta_.report(w, std::countr_zero(mask),
                  {.kind = "trap",
                   .message = in.sub ? "the kernel executed brkpt" : "the kernel executed trap"});
      return false;
    case Op::print:
    case Op::assert_fail:
      report_host_call(cta_, w, in, std::countr_zero(mask));
      return false;
    case Op::unsupported:
      end_unsupported(cta_, w, in);
      return false;
    default:
      break;
  }
  ++w.current.pc;
  return true;
}

bool Interpreter::drain() {
  if (!cta_.cluster) return !cta_.bulk.any() || bulk_.drain();
  return bulk_.drain() && cluster_.left();
}

void Interpreter::fence(Warp& w, const Inst& in, uint32_t mask) {
  if (in.sub == kSleep) scheduler_.sleep(w, in, mask);
  if (cta_.hazards) cta_.hazards->fence(w.index, in.sub);
  if (shows_mbarriers(in.sub)) cta_.mbarriers.fence(w.index);
  if (in.sub == kDependencyWait) cta_.job.waited.store(true, std::memory_order_relaxed);
}

bool Interpreter::barrier(Warp& w, const Inst& in, uint32_t mask) {
  w.split_off(mask);
  const Meet m = scheduler_.meet(w, ~0u, mask, "divergent_barrier");
  if (m != Meet::here) return m == Meet::parked;
  return barriers_.arrive(w, in, mask);
}

}  // namespace cutegen::ptx
