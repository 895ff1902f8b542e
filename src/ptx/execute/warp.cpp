// SPDX-License-Identifier: Apache-2.0
// Running one warp: dispatch, divergence, collectives, barriers.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "ptx/execute/cta.h"
#include "ptx/ops/warp_ops.h"

namespace cutegen::ptx {
namespace {

constexpr uint64_t kQuantum = 1 << 16;   // warp instructions before another warp has its turn
constexpr uint64_t kMixedQuantum = 512;  // the most of it, where turns are drawn at random
constexpr uint32_t kPatience = 1024;     // turns before lanes that wait elsewhere are let in

}  // namespace

Cta::Step Cta::run_warp(Warp& w) {
  const Inst* code = job_.program.code.data();
  Executed* executed = counting_->executed();
  const Undefined* undefined = hazards_ && hazards_->undefined ? &*hazards_->undefined : nullptr;
  Chain* chain = linear_ == job_.traced && w.index == 0 ? job_.chain.get() : nullptr;
  const uint64_t quantum = mixed_ ? 1 + random() % kMixedQuantum : kQuantum;
  for (uint64_t n = 0; n < quantum; ++n) {
    if (w.count > 0) merge(w);
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
    if (undefined && (in.watched || undefined->following()) && !follow(w, in, mask))
      return Step::failed;
    if (in.op == Op::alu) {
      if (mask == ~0u && in.full)
        in.full(w.registers, in, mask);
      else if (mask)
        in.masked(w.registers, in, mask);
      ++w.current.pc;
    } else if (in.op == Op::branch) {
      branch(w, in, mask);
    } else if (mask == 0) {
      ++w.current.pc;
    } else if (in.op == Op::barrier) {
      const Step step = barrier(w, in, mask);
      if (step == Step::failed || step == Step::barrier) return step;
    } else if (in.op == Op::exit) {
      if (!leave(w, mask)) return w.alive == 0 ? Step::done : Step::failed;
    } else if (!execute(w, in, mask)) {
      return Step::failed;
    } else if (gives_way(w, in)) {
      return Step::yield;
    }
  }
  return Step::yield;
}

bool Cta::execute(Warp& w, const Inst& in, uint32_t mask) {
  switch (in.op) {
    case Op::load:
    case Op::store:
    case Op::atomic:
      if (!access(w, in, mask)) return false;
      break;
    case Op::branch_index:
      return branch_index(w, in, mask);
    case Op::shuffle:
    case Op::vote:
    case Op::warp_reduce:
    case Op::match:
    case Op::warp_sync:
    case Op::elect: {
      const Meet m = collective(w, in, mask);
      if (m != Meet::here) return m == Meet::parked;
      break;
    }
    case Op::matrix:
    case Op::load_matrix:
    case Op::store_matrix: {
      const Meet m = matrix(w, in, mask);
      if (m != Meet::here) return m == Meet::parked;
      break;
    }
    case Op::async_copy:
      if (!async_copy(w, in, mask)) return false;
      break;
    case Op::async_commit:
      copies_[size_t(w.index)].commit(mask);
      break;
    case Op::async_wait:
      if (!async_wait(w, in, mask)) return false;
      break;
    case Op::active_mask: {
      uint32_t* d = words_at(w.registers, in.d);
      for (int lane = 0; lane < 32; ++lane) d[lane] = (mask >> lane & 1) ? mask : d[lane];
      break;
    }
    case Op::clock: {
      for (int lane = 0; lane < 32; ++lane) {
        if (mask >> lane & 1)
          std::memcpy(w.registers + in.d + lane * in.reg_size, &w.executed, in.reg_size);
      }
      break;
    }
    case Op::fence:
      if (in.sub == kSleep) sleep(w, in, mask);
      if (hazards_) hazards_->fence(w.index, in.sub);
      if (in.sub == kDependencyWait) job_.waited.store(true, std::memory_order_relaxed);
      break;
    case Op::trap:
      return report(w, "trap", in.sub ? "the kernel executed brkpt" : "the kernel executed trap",
                    std::countr_zero(mask));
    case Op::print:
    case Op::assert_fail:
      return host_call(w, in, std::countr_zero(mask));
    case Op::unsupported:
      status_ = LaunchStatus::unsupported;
      reason_ =
          fmt::format("{} (ptx:{}) is not simulated", job_.program.messages[size_t(in.target)],
                      job_.program.lines[size_t(w.current.pc)].line);
      return false;
    default:
      break;
  }
  ++w.current.pc;
  return true;
}

// Takes in the splits that wait where the current one has come to.
void Cta::merge(Warp& w) {
  for (int i = 0; i < w.count;) {
    if (w.others[i].pc == w.current.pc) {
      w.current.mask |= w.others[i].mask;
      w.others[i] = w.others[--w.count];
    } else {
      ++i;
    }
  }
}

bool Cta::reschedule(Warp& w) {
  if (w.current.mask) w.others[w.count++] = w.current;
  int best = -1;
  for (int i = 0; i < w.count; ++i) {
    if (w.others[i].blocked) continue;
    if (best < 0 || w.others[i].pc < w.others[best].pc) best = i;
  }
  if (best < 0) return false;
  if (++w.turns % kPatience == 0) {  // lanes that spin give way to those they wait for
    const int start = int(w.turns / kPatience) % w.count;
    for (int k = 0; k < w.count; ++k) {
      const int i = (start + k) % w.count;
      if (w.others[i].blocked) continue;
      best = i;
      break;
    }
  }
  w.current = w.others[best];
  w.others[best] = w.others[--w.count];
  return true;
}

bool Cta::branch(Warp& w, const Inst& in, uint32_t mask) {
  if (mask == w.current.mask) {
    w.current.pc = in.target;
  } else if (mask == 0) {
    ++w.current.pc;
  } else {
    counting_->divergent(in);
    w.others[w.count++] = {in.target, mask, false};
    w.current.mask &= ~mask;
    ++w.current.pc;
  }
  if (w.count > 0) reschedule(w);
  return true;
}

bool Cta::branch_index(Warp& w, const Inst& in, uint32_t mask) {
  const auto& table = job_.program.tables[size_t(in.target)];
  const uint32_t* index = words_at(w.registers, in.a);
  split_off(w, mask);
  uint32_t rest = mask;
  int ways = 0;
  while (rest) {
    const int lane = std::countr_zero(rest);
    const uint32_t i = index[lane];
    if (i >= table.size()) {
      return report(w, "bad_branch",
                    fmt::format("brx.idx with index {} of {} targets", i, table.size()), lane);
    }
    uint32_t same = 0;
    for (uint32_t r = rest; r; r &= r - 1) {
      const int other = std::countr_zero(r);
      if (index[other] == i) same |= 1u << other;
    }
    rest &= ~same;
    ++ways;
    if (rest == 0) {
      w.current = {table[i], same, false};
    } else {
      w.others[w.count++] = {table[i], same, false};
      w.current.mask = rest;
    }
  }
  if (ways > 1) counting_->divergent(in);
  if (w.count > 0) reschedule(w);
  return true;
}

// Lanes of the current split that a guard leaves out go on behind the instruction.
void Cta::split_off(Warp& w, uint32_t mask) {
  const uint32_t rest = w.current.mask & ~mask;
  if (!rest) return;
  w.others[w.count++] = {w.current.pc + 1, rest, false};
  w.current.mask = mask;
}

// Lanes end. False: nothing of the warp is left to run.
bool Cta::leave(Warp& w, uint32_t mask) {
  w.alive &= ~mask;
  w.current.mask &= ~mask;
  ++w.current.pc;
  for (int i = 0; i < w.count; ++i) w.others[i].blocked = false;  // fewer lanes to wait for
  if (w.alive == 0) return false;
  return reschedule(w);
}

Cta::Meet Cta::meet(Warp& w, uint32_t needed, uint32_t mask, const char* kind) {
  if ((needed & w.alive & ~mask) == 0) return Meet::here;
  const Split here = w.current;
  w.current.blocked = true;
  if (reschedule(w)) return Meet::parked;
  w.current = here;
  const uint32_t missing = needed & w.alive & ~mask;
  std::string where;
  for (int i = 0; i < w.count && where.size() < 200; ++i) {
    if (w.others[i].mask & missing) where += " at " + place(w.others[i].pc);
  }
  report(w, kind,
         fmt::format("lanes {:#010x} of the warp are here, lanes {:#010x} wait{}", mask, missing,
                     where),
         std::countr_zero(mask));
  return Meet::failed;
}

Cta::Meet Cta::collective(Warp& w, const Inst& in, uint32_t& mask) {
  split_off(w, mask);
  const uint32_t* masks = words_at(w.registers, in.v[0]);
  const uint32_t members = masks[std::countr_zero(mask)];
  uint32_t differ = 0, group = ~0u;  // nearly always one mask for all: found out without a branch
  for (int lane = 0; lane < 32; ++lane) differ |= masks[lane] ^ members;
  for (int lane = 0; differ && lane < 32; ++lane)
    group &= ~(uint32_t(masks[lane] != members) << lane);
  if (const uint32_t rest = mask & ~group) {  // lanes of another group come after this one
    w.others[w.count++] = {w.current.pc, rest, false};
    w.current.mask = mask = mask & group;
  }
  if (const uint32_t out = mask & ~members) {
    report(w, "divergent_collective",
           fmt::format("lanes {:#010x} are here, but the member mask {:#010x} leaves {:#010x} out",
                       mask, members, out),
           std::countr_zero(out));
    return Meet::failed;
  }
  const Meet m = meet(w, members, mask, "divergent_collective");
  if (m != Meet::here) return m;
  switch (in.op) {
    case Op::shuffle:
      in.masked(w.registers, in, mask);
      break;
    case Op::vote:
      vote(w.registers, in, mask);
      break;
    case Op::warp_reduce:
      warp_reduce(w.registers, in, mask);
      break;
    case Op::match:
      match(w.registers, in, mask);
      break;
    case Op::elect:
      elect(w.registers, in, mask);
      break;
    default:
      break;
  }
  return Meet::here;
}

Cta::Step Cta::barrier(Warp& w, const Inst& in, uint32_t mask) {
  split_off(w, mask);
  const Meet m = meet(w, ~0u, mask, "divergent_barrier");
  if (m != Meet::here) return m == Meet::parked ? Step::yield : Step::failed;
  const int lane = std::countr_zero(mask);
  const uint32_t id = words_at(w.registers, in.a)[lane];
  const uint32_t expected = in.b >= 0 ? words_at(w.registers, in.b)[lane] : 0;
  if (id > 15 || expected % 32 != 0) {
    report(w, "bad_barrier",
           fmt::format("barrier {} with {} threads (ids 0 to 15, whole warps)", id, expected),
           lane);
    return Step::failed;
  }
  Barrier& b = barriers_[id];
  if (b.arrived > 0 && b.expected != expected) {
    report(w, "bad_barrier",
           fmt::format("barrier {} with {} threads, others said {}", id, expected, b.expected),
           lane);
    return Step::failed;
  }
  counting_->barrier(in);
  b.expected = expected;
  b.arrived += 32;
  if (hazards_) hazards_->arrive(w.index, int(id));
  ++b.waiting;
  w.barrier_pc = w.current.pc;
  w.spins = 0;
  ++w.current.pc;
  if (in.sub >= kBarrierCount) {
    const uint32_t p = (predicate_at(w.registers, in.c) ^ (in.imm ? ~0u : 0u)) & mask;
    b.count += uint32_t(std::popcount(p));
    b.votes += uint32_t(std::popcount(mask));
  }
  if (in.sub == kBarrierArrive) {
    --b.waiting;
    return release_if_complete(int(id)) ? Step::yield : Step::failed;
  }
  w.state = Warp::State::at_barrier;
  w.barrier = int(id);
  if (!release_if_complete(int(id))) return Step::failed;
  return w.state == Warp::State::running ? Step::yield : Step::barrier;
}

// A barrier of the whole CTA that only a part can still reach.
bool Cta::left_early(const Barrier& b, int id) {
  if (!job_.checks.barriers || b.expected != 0) return false;
  int64_t alive = 0, first = -1;
  for (const Warp& w : warps_) {
    alive += std::popcount(w.alive);
    const uint32_t all = std::min<int64_t>(32, block_threads_ - w.index * 32) == 32
                             ? ~0u
                             : (1u << (block_threads_ - w.index * 32)) - 1;
    if (first < 0 && w.alive != all) first = w.index * 32 + std::countr_zero(all & ~w.alive);
  }
  if (alive == block_threads_) return false;
  for (Warp& w : warps_) {
    if (w.state != Warp::State::at_barrier || w.barrier != id) continue;
    w.current.pc = w.barrier_pc;
    report(w, "exited_before_barrier",
           fmt::format("barrier {} is for all {} threads, but {} of them have ended, first thread "
                       "{}",
                       id, block_threads_, block_threads_ - alive, first),
           std::countr_zero(w.alive));
    return true;
  }
  return false;
}

bool Cta::release_if_complete(int id) {
  Barrier& b = barriers_[id];
  if (b.arrived == 0) return true;
  const bool complete = b.expected == 0 ? b.waiting >= alive_warps_ : b.arrived >= b.expected;
  if (!complete) return true;
  if (left_early(b, id)) return false;
  uint32_t waiting = 0;
  for (Warp& w : warps_) {
    if (w.state != Warp::State::at_barrier || w.barrier != id) continue;
    waiting |= 1u << w.index;
    release(w, b);
  }
  if (hazards_) hazards_->pass(waiting, id);
  if (waiting) meet_sleepers(waiting);
  b = {};
  return true;
}

// Who waits at a barrier has waited for the one that slept longest.
void Cta::meet_sleepers(uint32_t waiting) {
  double most = 0;
  for (const Warp& w : warps_)
    if (waiting >> w.index & 1) most = std::max(most, w.slept_ns);
  for (Warp& w : warps_)
    if (most > 0 && waiting >> w.index & 1) w.slept_ns = most;
}

void Cta::release(Warp& w, const Barrier& b) {
  w.state = Warp::State::running;
  const Inst& in = job_.program.code[size_t(w.barrier_pc)];
  if (in.sub < kBarrierCount) return;
  if (in.sub == kBarrierCount) {
    uint32_t* d = words_at(w.registers, in.d);
    for (int lane = 0; lane < 32; ++lane) d[lane] = (w.alive >> lane & 1) ? b.count : d[lane];
  } else {
    const bool yes = in.sub == kBarrierAnd ? b.count == b.votes : b.count > 0;
    set_predicate(w.registers, in.d, yes ? ~0u : 0u, w.alive);
  }
}

}  // namespace cutegen::ptx
