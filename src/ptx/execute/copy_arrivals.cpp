// SPDX-License-Identifier: Apache-2.0
#include "ptx/execute/copy_arrivals.h"

#include <bit>

namespace cutegen::ptx {

bool CopyArrivals::add(Warp& w, const Inst& in, int lane, uint64_t at) {
  auto& arrivals = cta_.copies.arrivals();
  const uint64_t before = cta_.copies.of(w.index).next_number();
  Mbarrier& b = *cta_.mbarriers.find(at);
  if (const char* wrong = in.target & kMbarrierCounted ? nullptr : b.increment(1))
    return phases_.fail(w, lane, cta_, at, wrong), false;
  ++cta_.mbarriers.changes;
  if (!arrivals.empty()) {
    AsyncArrival& last = arrivals.back();
    const bool same = last.mbarrier == at && last.warp == w.index && last.before == before &&
                      last.pc == w.current.pc && !(last.mask >> lane & 1);
    if (same) {
      last.mask |= 1u << lane;
      return true;
    }
  }
  if (arrivals.size() >= kMostCopies) {
    const AsyncArrival oldest = arrivals.front();
    arrivals.pop_front();
    if (!arrive(oldest)) return false;
  }
  arrivals.push_back(
      {.mbarrier = at, .warp = w.index, .mask = 1u << lane, .before = before, .pc = w.current.pc});
  return true;
}

bool CopyArrivals::arrive(const AsyncArrival& a) {
  if (!async_.complete(a)) return false;
  Warp at = cta_.warps[size_t(a.warp)];
  at.current.pc = a.pc;
  const int lane = std::countr_zero(a.mask);
  if (!phases_.live(at, lane, cta_, a.mbarrier)) return false;
  Mbarrier& b = *cta_.mbarriers.find(a.mbarrier);
  if (const char* wrong = b.arrive(uint32_t(std::popcount(a.mask)), false, false))
    return phases_.fail(at, lane, cta_, a.mbarrier, wrong), false;
  phases_.release(at, cta_, a.mbarrier);
  phases_.settle(cta_, a.mbarrier, b);
  return true;
}

bool CopyArrivals::deliver(Warp& w, uint32_t lanes, const uint64_t* at) {
  auto& arrivals = cta_.copies.arrivals();
  for (uint32_t m = lanes; m; m &= m - 1) {
    const uint64_t place = at[std::countr_zero(m)];
    if (cta_.bulk.any() && !bulk_.deliver_to(w, place)) return false;
    const Mbarrier* b = cta_.mbarriers.find(place);
    const uint64_t phase = b ? b->phase : 0;
    for (size_t i = 0; i < arrivals.size() && b && b->phase == phase;) {
      if (arrivals[i].mbarrier != place) {
        ++i;
        continue;
      }
      const AsyncArrival a = arrivals[i];
      arrivals.erase(arrivals.begin() + int64_t(i));
      if (!arrive(a)) return false;
    }
  }
  return true;
}

}  // namespace cutegen::ptx
