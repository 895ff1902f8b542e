// SPDX-License-Identifier: Apache-2.0
#include "ptx/ops/async_copy.h"

#include <algorithm>
#include <bit>

namespace cutegen::ptx {

void AsyncCopies::issue(const AsyncCopy& copy) {
  for (uint32_t rest = copy.mask; rest;) {
    const uint32_t group = committed_[size_t(std::countr_zero(rest))];
    uint32_t same = 0;
    for (uint32_t m = rest; m; m &= m - 1) {
      const int lane = std::countr_zero(m);
      if (committed_[size_t(lane)] == group) same |= 1u << lane;
    }
    rest &= ~same;
    copies_.push_back(copy);
    copies_.back().mask = same, copies_.back().group = group;
  }
}

void AsyncCopies::commit(uint32_t mask) {
  for (uint32_t m = mask; m; m &= m - 1) ++committed_[size_t(std::countr_zero(m))];
}

std::vector<AsyncCopy> AsyncCopies::take(uint32_t mask, int64_t pending) {
  std::vector<AsyncCopy> out;
  for (AsyncCopy& c : copies_) {
    uint32_t done = 0;
    for (uint32_t m = c.mask & mask; m; m &= m - 1) {
      const int lane = std::countr_zero(m);
      const bool complete =
          pending == kWaitAll || int64_t{c.group} + pending < committed_[size_t(lane)];
      if (complete) done |= 1u << lane;
    }
    if (done == 0) continue;
    out.push_back(c);
    out.back().mask = done;
    c.mask &= ~done;
  }
  std::erase_if(copies_, [](const AsyncCopy& c) { return c.mask == 0; });
  return out;
}

AsyncCopy AsyncCopies::take_oldest() {
  AsyncCopy c = copies_.front();
  copies_.pop_front();
  return c;
}

void AsyncCopies::clear() {
  copies_.clear();
  committed_ = {};
}

}  // namespace cutegen::ptx
