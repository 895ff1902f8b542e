// SPDX-License-Identifier: Apache-2.0
#include "ptx/cta/wgmma_state.h"

#include <algorithm>

#include "ptx/ops/wgmma.h"

namespace cutegen::ptx {

const WarpgroupSteps::Step* WarpgroupSteps::execute(int warp, const Step& step) {
  const uint64_t n = at_[size_t(warp)]++;
  if (n == first_ + steps_.size()) {
    steps_.push_back(step);
  } else if (steps_[size_t(n - first_)] != step) {
    other_ = steps_[size_t(n - first_)];
    return &other_;
  }
  while (!steps_.empty() && *std::min_element(at_.begin(), at_.end()) > first_)
    steps_.pop_front(), ++first_;
  return nullptr;
}

const WarpgroupSteps::Step* WarpgroupSteps::missed(int warp) const {
  const uint64_t n = at_[size_t(warp)] - first_;
  return n < steps_.size() ? &steps_[size_t(n)] : nullptr;
}

bool WarpgroupSteps::together() const {
  return std::all_of(at_.begin(), at_.end(), [this](uint64_t at) { return at == at_[0]; });
}

void WgmmaState::begin(int64_t registers) {
  orders.resize(warps_);
  for (Order& o : orders) {
    o.fences = o.committed = o.completed = 0, o.waits = false, o.registers = registers;
    o.uses.assign(bytes_ / 64 + 1, {});
  }
  reads.clear();
  free_registers = 0;
  steps.assign((warps_ + WarpgroupSteps::kWarps - 1) / WarpgroupSteps::kWarps, {});
}

void WgmmaState::complete(int warp, int64_t left) {
  Order& o = orders[size_t(warp)];
  const int64_t done = int64_t{o.committed} - left;
  if (done <= int64_t{o.completed}) return;
  o.completed = uint32_t(done);
  std::erase_if(reads, [&](const Read& r) { return r.warp == warp && r.group <= o.completed; });
}

const WgmmaState::Read* WgmmaState::reader(uint64_t from, uint64_t to) const {
  uint32_t at[2 * kWgmmaMostColumns];
  for (const Read& r : reads) {
    for (size_t i = 0; i < r.tiles.size(); ++i) {
      if (from >= r.end[i] || to <= r.low[i]) continue;
      r.tiles[i].chunks(at);
      const bool hit = std::any_of(at, at + 2 * r.tiles[i].rows,
                                   [&](uint32_t c) { return from < c + 16u && c < to; });
      if (hit) return &r;
    }
  }
  return nullptr;
}

}  // namespace cutegen::ptx
