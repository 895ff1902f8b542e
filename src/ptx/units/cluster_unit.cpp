// SPDX-License-Identifier: Apache-2.0
#include "ptx/units/cluster_unit.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <utility>

#include "ptx/ops/cluster.h"
#include "ptx/ops/warp_ops.h"

namespace cutegen::ptx {

void ClusterUnit::report(const Warp& w, int lane, const char* kind, std::string message) {
  cta_.report(w, lane, {.kind = kind, .message = std::move(message)});
}

Meet ClusterUnit::barrier(Warp& w, const Inst& in, uint32_t mask) {
  w.split_off(mask);
  if (in.aligned || in.sub == kClusterWait) {
    const Meet m = scheduler_.meet(w, ~0u, mask, "divergent_barrier");
    if (m != Meet::here) return m;
  }
  const bool fine = in.sub == kClusterArrive ? arrive(w, in, mask) : wait(w, mask);
  return fine ? Meet::here : Meet::failed;
}

bool ClusterUnit::arrive(Warp& w, const Inst& in, uint32_t mask) {
  ClusterState& cluster = *cta_.cluster;
  auto& seat = cluster.seat(cta_.rank, w.index);
  if (const uint32_t twice = seat.arrived & mask) {
    report(w, std::countr_zero(twice), "bad_barrier",
           "barrier.cluster.arrive twice with no barrier.cluster.wait in between");
    return false;
  }
  if (in.releases && cta_.hazards) {
    cta_.hazards->fence(w.index, kFenceGpu);
    if (cta_.hazards->clocks.vector()) cta_.hazards->clocks.release(w.index, kClusterPlace);
  }
  if (cta_.hazards) cta_.hazards->signal(w.index);
  cta_.counting->barrier(cta_.job.program.code[size_t(w.current.pc)]);
  w.spins = 0;
  seat.arrived |= mask, seat.phase = cluster.phase();
  cluster.complete();
  return true;
}

bool ClusterUnit::wait(Warp& w, uint32_t mask) {
  ClusterState& cluster = *cta_.cluster;
  auto& seat = cluster.seat(cta_.rank, w.index);
  if (const uint32_t absent = mask & ~seat.arrived) {
    report(w, std::countr_zero(absent), "bad_barrier",
           "barrier.cluster.wait without an earlier barrier.cluster.arrive");
    return false;
  }
  if (cluster.passed(seat)) {
    seat.arrived = 0;
    if (cta_.hazards && cta_.hazards->clocks.vector())
      cta_.hazards->clocks.acquire(w.index, kClusterPlace);
    return true;
  }
  w.state = Warp::State::waiting;
  w.barrier = kAtClusterBarrier, w.waits_at = w.current.pc;
  return true;
}

bool ClusterUnit::left() {
  const Hazards* h = cta_.hazards.get();
  if (!h || !h->shared || !h->clocks.vector() || cta_.pending) return true;
  const auto other = h->shared->unfinished();
  if (other.warp < 0) return true;
  Warp at = cta_.warps.front();
  at.current.pc = other.pc;
  report(at, 0, "exited_cta",
         fmt::format("the CTA of rank {} ends, but nothing orders the access of its shared "
                     "memory by warp {} of rank {} before its end",
                     cta_.rank, other.warp, other.rank));
  return false;
}

// mapa, getctarank: an address has 32 bits if it is in shared memory, 64 bits if it is generic.
bool ClusterUnit::map(Warp& w, const Inst& in, uint32_t mask) {
  const size_t bytes = in.reg_size;
  for (uint32_t m = mask; m; m &= m - 1) {
    const size_t lane = size_t(std::countr_zero(m));
    uint64_t at = 0;
    std::memcpy(&at, w.registers + in.a + lane * bytes, bytes);
    const uint64_t tag = at >> kRankShift & 0xff;
    if (in.sub == kClusterRank) {
      words_at(w.registers, in.d)[lane] = tag ? uint32_t(tag - 1) : uint32_t(cta_.rank);
      continue;
    }
    const uint32_t rank = words_at(w.registers, in.b)[lane];
    if (rank >= cta_.cluster->size()) {
      report(w, int(lane), "bad_cluster_rank",
             fmt::format("mapa to rank {} of a cluster of {} CTAs", rank, cta_.cluster->size()));
      return false;
    }
    at = (at & ~(uint64_t{0xff} << kRankShift)) | uint64_t(rank + 1) << kRankShift;
    std::memcpy(w.registers + in.d + lane * bytes, &at, bytes);
  }
  return true;
}

}  // namespace cutegen::ptx
