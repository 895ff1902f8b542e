// SPDX-License-Identifier: Apache-2.0
#include "ptx/ops/mbarrier.h"

namespace cutegen::ptx {

const char* Mbarrier::expect(int64_t n) {
  if (n < 0 || n > kMostTransactionBytes || bytes + n > kMostTransactionBytes)
    return "the expected bytes exceed 2^20 - 1";
  bytes += n;
  return nullptr;
}

const char* Mbarrier::complete(int64_t n) {
  if (n < 0 || n > kMostTransactionBytes || bytes - n < -kMostTransactionBytes)
    return "more than 2^20 - 1 bytes have arrived that nobody expects";
  bytes -= n;
  return nullptr;
}

const char* Mbarrier::arrive(uint32_t count, bool drop, bool must_stay) {
  if (count < 1 || count > kMostArrivals) return "an arrival counts 1 to 2^20 - 1";
  if (count > pending) return "more arrivals than the phase expects";
  if (must_stay && count == pending && bytes == 0)
    return "an arrival with .noComplete would complete the phase";
  if (drop) expected -= count;
  pending -= count;
  return nullptr;
}

const char* Mbarrier::increment(uint32_t count) {
  if (count > kMostArrivals - pending) return "a phase expects at most 2^20 - 1 arrivals";
  pending += count;
  return nullptr;
}

bool Mbarrier::settle() {
  if (pending != 0 || bytes != 0) return false;
  pending = expected;
  ++phase;
  return true;
}

const Mbarrier* Mbarriers::in(uint64_t from, uint64_t to) const {
  auto it = live_.lower_bound(from >= kMbarrierBytes - 1 ? from - (kMbarrierBytes - 1) : 0);
  return it != live_.end() && it->first < to ? &it->second : nullptr;
}

void Mbarriers::fence(int warp) {
  for (auto& [at, b] : live_)
    if (b.maker == warp) b.fenced = true;
}

}  // namespace cutegen::ptx
