// SPDX-License-Identifier: Apache-2.0
#include "ptx/cta/mbarrier_phases.h"

#include <fmt/format.h>

#include "ptx/cta/faults.h"

namespace cutegen::ptx {

void MbarrierPhases::fail(const Warp& w, int lane, const CtaState& owner, uint64_t at,
                          const std::string& what) {
  const std::string whose = &owner == &cta_ ? "" : fmt::format(" of rank {}", owner.rank);
  cta_.report(
      w, lane,
      {.kind = "bad_mbarrier",
       .message = fmt::format("mbarrier at offset {} of shared memory{}: {}", at, whose, what),
       .address = at,
       .buffer = "shared memory"});
}

CtaState* MbarrierPhases::owner_of(const Warp& w, int lane, uint64_t& at) {
  const uint64_t tag = at >> kRankShift;
  if (tag == 0 || !cta_.cluster || tag - 1 >= cta_.cluster->size()) return &cta_;
  at &= kSharedOfCta - 1;  // an address beyond the cluster stays out of bounds
  CtaState* owner = cta_.cluster->at(tag - 1);
  if (owner) return owner;
  cta_.report(w, lane,
              {.kind = "exited_cta",
               .message = fmt::format("an access to the shared memory of rank {}, which has ended: "
                                      "that CTA must wait until no other uses its memory",
                                      tag - 1),
               .address = at,
               .buffer = "shared memory"});
  return nullptr;
}

bool MbarrierPhases::valid_address(Warp& w, uint32_t mask, const AddressSummary& sum,
                                   const uint64_t* at) {
  const uint64_t size = cta_.shared.size();
  const bool fits = sum.high < size && size - sum.high >= kMbarrierBytes;
  if (fits && sum.bits % kMbarrierBytes == 0) return true;
  Inst object;  // for the finding: an access of eight bytes
  object.op = Op::atomic, object.size = kMbarrierBytes;
  report_fault(cta_, {.warp = w, .in = object, .mask = mask, .sum = sum, .at = at}, Space::shared);
  return false;
}

bool MbarrierPhases::known(const Warp& w, const CtaState& owner, const Mbarrier& b) const {
  if (!owner.hazards || !owner.hazards->clocks.vector()) return true;
  const Clocks& clocks = owner.hazards->clocks;
  return clocks.ordered(clocks.peer(cta_.rank, w.index), b.maker, b.label);
}

bool MbarrierPhases::live(const Warp& w, int lane, const CtaState& owner, uint64_t at) {
  const Mbarrier* b = owner.mbarriers.find(at);
  if (b && known(w, owner, *b)) return true;
  fail(w, lane, owner, at,
       b ? fmt::format("nothing orders this access after its initialisation by another warp at {}: "
                       "put __syncthreads() or a barrier of the cluster after mbarrier.init",
                       cta_.place(b->pc))
         : "it is not initialised (mbarrier.init), or no longer (mbarrier.inval)");
  return false;
}

bool MbarrierPhases::ready(Warp& w, int lane, const CtaState& owner, uint64_t at) {
  uint64_t places[32] = {};
  places[lane] = at;
  const uint32_t mask = 1u << lane;
  if (!valid_address(w, mask, summarize(places, mask), places) || !live(w, lane, owner, at))
    return false;
  const Mbarrier& b = *owner.mbarriers.find(at);
  if (b.fenced || !owner.hazards || !owner.hazards->clocks.vector()) return true;
  cta_.report(w, lane,
              {.kind = "missing_proxy_fence",
               .message = fmt::format("a copy signals the mbarrier at offset {} of shared memory, "
                                      "which {} initialised: put fence.mbarrier_init or "
                                      "fence.proxy.async after mbarrier.init",
                                      at, cta_.place(b.pc)),
               .address = at,
               .buffer = "shared memory"});
  return false;
}

bool MbarrierPhases::complete(const Warp& w, int lane, CtaState& owner, uint64_t at,
                              int64_t bytes) {
  if (!live(w, lane, owner, at)) return false;
  Mbarrier& b = *owner.mbarriers.find(at);
  if (const char* wrong = b.complete(bytes)) return fail(w, lane, owner, at, wrong), false;
  settle(owner, at, b);
  return true;
}

void MbarrierPhases::release(const Warp& w, CtaState& owner, uint64_t at) {
  if (!cta_.hazards || !cta_.hazards->clocks.vector()) return;
  Clocks& clocks = owner.hazards->clocks;
  clocks.arrive_mbarrier(clocks.peer(cta_.rank, w.index), at);
  auto& global = cta_.hazards->global;
  if (global) global->join();
  if (&owner == &cta_) return;
  cta_.hazards->fence(w.index, kFenceGpu);
  cta_.hazards->signal(w.index);
}

void MbarrierPhases::settle(CtaState& owner, uint64_t at, Mbarrier& b) {
  ++owner.mbarriers.changes;
  if (!b.settle()) return;
  if (owner.hazards && owner.hazards->clocks.vector()) owner.hazards->clocks.complete_mbarrier(at);
  for (Warp& w : owner.warps) {
    MbarrierWait& wait = owner.mbarrier_waits[size_t(w.index)];
    if (w.state != Warp::State::waiting || w.barrier != kAtMbarrier || wait.at != at) continue;
    wait.passed = true;
    w.state = Warp::State::running;
  }
}

}  // namespace cutegen::ptx
