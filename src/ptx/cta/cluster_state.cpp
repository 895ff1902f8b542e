// SPDX-License-Identifier: Apache-2.0
#include "ptx/cta/cluster_state.h"

#include <algorithm>
#include <bit>

#include "ptx/cta/cta_state.h"

namespace cutegen::ptx {
namespace {

// Records that all threads of the CTA have synchronised with one another.
void join(Hazards& h) {
  if (!h.clocks.vector()) {
    h.clocks.join();
    if (h.shared) h.shared->join();
  }
  if (h.global) h.global->acquire(), h.global->join();
}

}  // namespace

void ClusterState::add(CtaState& cta) {
  ctas_.push_back(&cta);
  seats_.emplace_back(cta.warps.size());
  hopeless_.push_back(false);
  ++left_;
}

void ClusterState::end(size_t rank) {
  ctas_[rank] = nullptr;
  --left_;
  complete();
}

int64_t ClusterState::count(bool arrived_only) const {
  int64_t threads = 0;
  for (size_t rank = 0; rank < ctas_.size(); ++rank) {
    if (!ctas_[rank]) continue;
    for (const Warp& w : ctas_[rank]->warps) {
      const Seat& s = seats_[rank][size_t(w.index)];
      const uint32_t here = s.phase == phase_ ? s.arrived : 0;
      threads += std::popcount(w.alive & (arrived_only ? here : ~0u));
    }
  }
  return threads;
}

bool ClusterState::all_are_here() const {
  bool any = false;
  for (size_t rank = 0; rank < ctas_.size(); ++rank) {
    if (!ctas_[rank]) continue;
    for (const Warp& w : ctas_[rank]->warps) {
      const Seat& s = seats_[rank][size_t(w.index)];
      const uint32_t here = s.phase == phase_ ? s.arrived : 0;
      if ((w.alive & ~here) != 0) return false;
      any |= (w.alive & here) != 0;
    }
  }
  return any;
}

void ClusterState::complete() {
  if (!all_are_here()) return;
  ++phase_;
  for (size_t rank = 0; rank < ctas_.size(); ++rank) {
    if (!ctas_[rank]) continue;
    if (ctas_[rank]->hazards) join(*ctas_[rank]->hazards);
    for (Warp& w : ctas_[rank]->warps) {
      if (w.state != Warp::State::waiting || w.barrier != kAtClusterBarrier) continue;
      w.state = Warp::State::running;
      seats_[rank][size_t(w.index)].arrived = 0;
      if (auto& h = ctas_[rank]->hazards; h && h->clocks.vector())
        h->clocks.acquire(w.index, kClusterPlace);
    }
  }
}

bool ClusterState::others_may_go_on(size_t rank) const {
  for (size_t r = 0; r < ctas_.size(); ++r) {
    if (r == rank || !ctas_[r] || hopeless_[r]) continue;
    for (const Warp& w : ctas_[r]->warps)
      if (w.state == Warp::State::waiting && w.barrier == kAtMbarrier) return true;
  }
  return false;
}

bool ClusterState::can_go_on() const {
  return std::any_of(ctas_.begin(), ctas_.end(), [](const CtaState* cta) {
    return cta && std::any_of(cta->warps.begin(), cta->warps.end(),
                              [](const Warp& w) { return w.state == Warp::State::running; });
  });
}

}  // namespace cutegen::ptx
