// SPDX-License-Identifier: Apache-2.0
#include "ptx/checks/clocks.h"

#include <algorithm>

namespace cutegen::ptx {

void Clocks::begin() {
  label_ = last_ = 1;
  if (!vector_) return;
  agents_ = warps_;
  own_.fill(1);
  known_ = {};
  barriers_ = {};
  places_.clear();
  mbarriers_.clear();
}

void Clocks::join(Labels& to, const Labels& from) const {
  for (size_t u = 0; u < size_t(agents_); ++u) to[u] = std::max(to[u], from[u]);
}

void Clocks::give(int warp, Known& to) {
  const size_t w = size_t(warp);
  join(to.seen, known_[w].seen);
  to.seen[w] = own_[w];
  join(to.fenced, known_[w].fenced);
  own_[w] = ++last_;
}

void Clocks::take(int warp, const Known& from) {
  Known& known = known_[size_t(warp)];
  join(known.seen, from.seen);
  join(known.fenced, from.fenced);
}

void Clocks::fence_proxy(int warp) {
  const size_t w = size_t(warp);
  join(known_[w].fenced, known_[w].seen);
  known_[w].fenced[w] = own_[w];
  own_[w] = ++last_;
}

// If there are more mbarriers than agents, the last agent serves several.
void Clocks::init_mbarrier(uint64_t place) {
  auto [it, fresh] = mbarriers_.try_emplace(place);
  if (fresh) it->second.agent = agents_ < kMostAgents ? agents_++ : kMostAgents - 1;
}

void Clocks::complete_mbarrier(uint64_t place) {
  PhaseClock& b = mbarriers_[place];
  const size_t agent = size_t(b.agent);
  join(b.done.seen, b.now.seen);
  join(b.done.fenced, b.now.fenced);
  b.done.seen[agent] = own_[agent];
  own_[agent] = ++last_;
  b.now = {};
}

}  // namespace cutegen::ptx
