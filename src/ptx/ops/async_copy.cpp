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
    copies_.back().number = next_;
  }
  ++next_;
}

void AsyncCopies::commit(uint32_t mask) {
  for (uint32_t m = mask; m; m &= m - 1) ++committed_[size_t(std::countr_zero(m))];
}

template <class F>
std::vector<AsyncCopy> AsyncCopies::take_where(uint32_t mask, F f) {
  std::vector<AsyncCopy> out;
  for (AsyncCopy& c : copies_) {
    uint32_t done = 0;
    for (uint32_t m = c.mask & mask; m; m &= m - 1)
      if (f(c, size_t(std::countr_zero(m)))) done |= m & -m;
    if (done == 0) continue;
    out.push_back(c);
    out.back().mask = done;
    c.mask &= ~done;
  }
  std::erase_if(copies_, [](const AsyncCopy& c) { return c.mask == 0; });
  return out;
}

std::vector<AsyncCopy> AsyncCopies::take(uint32_t mask, int64_t pending) {
  return take_where(mask, [&](const AsyncCopy& c, size_t lane) {
    return pending == kWaitAll || int64_t{c.group} + pending < committed_[lane];
  });
}

std::vector<AsyncCopy> AsyncCopies::take_before(uint32_t mask, uint64_t number) {
  return take_where(mask, [&](const AsyncCopy& c, size_t) { return c.number < number; });
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

void CopiesInFlight::issue(int warp, const AsyncCopy& copy) {
  if (writes_.empty()) writes_.resize(shared_bytes_ / 4 + 1);
  for (uint32_t m = copy.mask; m; m &= m - 1) {
    for (size_t k = 0; k < copy.vec; ++k) ++writes_[copy.at[size_t(std::countr_zero(m))] / 4 + k];
  }
  lanes_ += uint64_t(std::popcount(copy.mask));
  of(warp).issue(copy);
}

void CopiesInFlight::arrives(const AsyncCopy& copy) {
  for (uint32_t m = copy.mask; m; m &= m - 1) {
    for (size_t k = 0; k < copy.vec; ++k) --writes_[copy.at[size_t(std::countr_zero(m))] / 4 + k];
  }
  lanes_ -= uint64_t(std::popcount(copy.mask));
}

void CopiesInFlight::clear() {
  if (lanes_) std::fill(writes_.begin(), writes_.end(), 0u);
  lanes_ = 0;
  arrivals_.clear();
  for (AsyncCopies& copies : of_) copies.clear();
}

bool CopiesInFlight::touches(uint64_t from, uint64_t to) const {
  uint32_t any = 0;
  for (uint64_t word = from / 4; word <= (to - 1) / 4; ++word) any |= writes_[word];
  return any != 0;
}

const AsyncCopy* CopiesInFlight::find(uint64_t from, uint64_t to) const {
  for (const AsyncCopies& copies : of_) {
    for (const AsyncCopy& c : copies.all()) {
      for (uint32_t m = c.mask; m; m &= m - 1) {
        const uint64_t begin = c.at[size_t(std::countr_zero(m))];
        if (begin < to && from < begin + 4u * c.vec) return &c;
      }
    }
  }
  return nullptr;
}

}  // namespace cutegen::ptx
