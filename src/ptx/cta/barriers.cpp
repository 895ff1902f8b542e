// SPDX-License-Identifier: Apache-2.0
#include "ptx/cta/barriers.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "ptx/ops/warp_ops.h"

namespace cutegen::ptx {

void Barriers::begin() {
  for (Barrier& b : barriers_) b = {};
}

bool Barriers::valid(const Warp& w, uint32_t id, uint32_t expected, int lane) {
  if (id > 15 || expected % 32 != 0) {
    cta_.report(
        w, lane,
        {.kind = "bad_barrier",
         .message = fmt::format(
             "barrier {} with {} threads: an id must be 0 to 15, and threads must fill whole warps",
             id, expected)});
    return false;
  }
  const Barrier& b = barriers_[id];
  if (b.arrived == 0 || b.expected == expected) return true;
  cta_.report(w, lane,
              {.kind = "bad_barrier",
               .message = fmt::format("barrier {} with {} threads, but other warps gave {}", id,
                                      expected, b.expected)});
  return false;
}

bool Barriers::arrive(Warp& w, const Inst& in, uint32_t mask) {
  const int lane = std::countr_zero(mask);
  const uint32_t id = words_at(w.registers, in.a)[lane];
  const uint32_t expected = in.b >= 0 ? words_at(w.registers, in.b)[lane] : 0;
  if (!valid(w, id, expected, lane)) return false;
  Barrier& b = barriers_[id];
  cta_.counting->barrier(in);
  b.expected = expected;
  b.arrived += 32;
  if (cta_.hazards) cta_.hazards->arrive(w.index, int(id));
  w.spins = 0;
  const int32_t pc = w.current.pc++;
  if (in.sub >= kBarrierCount) {
    const uint32_t p = (predicate_at(w.registers, in.c) ^ (in.imm ? ~0u : 0u)) & mask;
    b.count += uint32_t(std::popcount(p));
    b.votes += uint32_t(std::popcount(mask));
  }
  if (in.sub != kBarrierArrive) {
    ++b.waiting;
    w.state = Warp::State::waiting;
    w.barrier = int(id), w.waits_at = pc;
  }
  return release_if_complete(int(id));
}

bool Barriers::recheck() {
  for (int id = 0; id < 16; ++id) {
    if (!release_if_complete(id)) return false;
  }
  return true;
}

bool Barriers::release_if_complete(int id) {
  Barrier& b = barriers_[id];
  if (b.arrived == 0) return true;
  const bool complete = b.expected == 0 ? b.waiting >= cta_.alive_warps : b.arrived >= b.expected;
  if (!complete) return true;
  if (!all_reach(b, id)) return false;
  uint32_t waiting = 0;
  for (Warp& w : cta_.warps) {
    if (w.state != Warp::State::waiting || w.barrier != id) continue;
    waiting |= 1u << w.index;
    release(w, b);
  }
  if (cta_.hazards) cta_.hazards->pass(waiting, id);
  if (waiting) meet_sleepers(waiting);
  b = {};
  return true;
}

// False: the barrier is for the whole CTA, but some threads ended before they reached it.
bool Barriers::all_reach(const Barrier& b, int id) {
  if (!cta_.job.checks.barriers || b.expected != 0) return true;
  int64_t alive = 0, first = -1;
  for (const Warp& w : cta_.warps) {
    alive += std::popcount(w.alive);
    const uint32_t ended = cta_.threads_of(w) & ~w.alive;
    if (first < 0 && ended) first = w.index * 32 + std::countr_zero(ended);
  }
  if (alive == cta_.block_threads) return true;
  for (Warp& w : cta_.warps) {
    if (w.state != Warp::State::waiting || w.barrier != id) continue;
    w.current.pc = w.waits_at;
    cta_.report(
        w, std::countr_zero(w.alive),
        {.kind = "exited_before_barrier",
         .message = fmt::format("barrier {} is for all {} threads, but {} of them have "
                                "ended, first thread {}",
                                id, cta_.block_threads, cta_.block_threads - alive, first)});
    return false;
  }
  return true;
}

// The warps at a barrier wait for the one that sleeps longest.
void Barriers::meet_sleepers(uint32_t waiting) {
  double most = 0;
  for (const Warp& w : cta_.warps)
    if (waiting >> w.index & 1) most = std::max(most, w.slept_ns);
  for (Warp& w : cta_.warps)
    if (most > 0 && waiting >> w.index & 1) w.slept_ns = most;
}

void Barriers::release(Warp& w, const Barrier& b) {
  w.state = Warp::State::running;
  const Inst& in = cta_.job.program.code[size_t(w.waits_at)];
  if (in.sub < kBarrierCount) return;
  if (in.sub == kBarrierCount) {
    uint32_t* d = words_at(w.registers, in.d);
    for (int lane = 0; lane < 32; ++lane) d[lane] = (w.alive >> lane & 1) ? b.count : d[lane];
  } else {
    const bool yes = in.sub == kBarrierAnd ? b.count == b.votes : b.count > 0;
    set_predicate(w.registers, in.d, yes ? ~0u : 0u, w.alive);
  }
}

std::string Barriers::describe(const Warp& waiting) const {
  const Barrier& b = barriers_[waiting.barrier];
  return fmt::format(
      "at barrier {}, {}, which {} of {} threads have reached", waiting.barrier,
      cta_.place(waiting.waits_at), b.arrived,
      b.expected ? std::to_string(b.expected) : fmt::format("all {}", cta_.block_threads));
}

}  // namespace cutegen::ptx
