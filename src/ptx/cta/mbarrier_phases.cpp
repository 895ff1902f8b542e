// SPDX-License-Identifier: Apache-2.0
#include "ptx/cta/mbarrier_phases.h"

#include <fmt/format.h>

#include "ptx/cta/faults.h"

namespace cutegen::ptx {

bool MbarrierPhases::fail(const Warp& w, int lane, uint64_t at, const std::string& what) {
  cta_.report(w, lane,
              {.kind = "bad_mbarrier",
               .message = fmt::format("mbarrier at offset {} of shared memory: {}", at, what),
               .address = at,
               .buffer = "shared memory"});
  return false;
}

bool MbarrierPhases::own_place(uint64_t& at) {
  const uint64_t tag = at >> kRankShift;
  if (tag == 0) return true;
  if (!cta_.cluster || tag - 1 >= cta_.cluster->size()) return true;  // out of bounds
  at &= kSharedOfCta - 1;
  if (tag - 1 == cta_.rank) return true;
  cta_.status = LaunchStatus::unsupported;
  cta_.reason = "an mbarrier or a copy of another CTA of the cluster is not simulated";
  return false;
}

bool MbarrierPhases::valid_address(Warp& w, uint32_t mask, const AddressSummary& sum,
                                   const uint64_t* at) {
  const uint64_t size = cta_.shared.size();
  const bool fits = sum.high < size && size - sum.high >= kMbarrierBytes;
  if (fits && sum.bits % kMbarrierBytes == 0) return true;
  Inst object;  // as the finding names it: an access of eight bytes
  object.op = Op::atomic, object.size = kMbarrierBytes;
  report_fault(cta_, {w, object, mask, sum, at}, Space::shared);
  return false;
}

bool MbarrierPhases::live(const Warp& w, int lane, uint64_t at) {
  if (cta_.mbarriers.find(at)) return true;
  return fail(w, lane, at, "it is not initialised (mbarrier.init), or no longer (mbarrier.inval)");
}

bool MbarrierPhases::complete(const Warp& w, int lane, uint64_t at, int64_t bytes) {
  if (!live(w, lane, at)) return false;
  Mbarrier& b = *cta_.mbarriers.find(at);
  if (const char* wrong = b.complete(bytes)) return fail(w, lane, at, wrong);
  settle(at, b);
  return true;
}

void MbarrierPhases::settle(uint64_t at, Mbarrier& b) {
  ++cta_.mbarriers.changes;
  if (!b.settle()) return;
  if (cta_.hazards && cta_.hazards->clocks.vector()) cta_.hazards->clocks.complete_mbarrier(at);
  for (Warp& w : cta_.warps) {
    MbarrierWait& wait = cta_.mbarrier_waits[size_t(w.index)];
    if (w.state != Warp::State::waiting || w.barrier != kAtMbarrier || wait.at != at) continue;
    wait.passed = true;
    w.state = Warp::State::running;
  }
}

}  // namespace cutegen::ptx
