// SPDX-License-Identifier: Apache-2.0
#include "ptx/checks/clocks.h"

#include <algorithm>

namespace cutegen::ptx {
namespace {

constexpr int kAgentsOfCta = 64, kMostAgentsOfMbarriers = 256;

// A barrier of a large cluster joins every warp's clock with all others, so the compiler must be
// able to vectorise this loop.
void keep_larger(uint32_t* to, const uint32_t* from, size_t count) {
  for (size_t u = 0; u < count; ++u) to[u] = std::max(to[u], from[u]);
}

}  // namespace

void ClockTable::begin(int ctas, int warps) {
  warps_ = ctas * warps;
  of_cta_ = warps, groups_ = (warps + kWarpsOfGroup - 1) / kWarpsOfGroup;
  agents_ = warps_ + ctas * groups_;
  most_ = agents_ + std::min(ctas * kAgentsOfCta, kMostAgentsOfMbarriers);
  last_ = 1;
  fences_ = {};
  own_.assign(size_t(most_), 1);
  known_.resize(size_t(warps_));
  for (Known& k : known_) {
    k.seen.assign(size_t(most_), 0);
    for (auto& fenced : k.fenced) fenced.assign(size_t(most_), 0);
  }
  barriers_.clear();
  places_.clear();
  mbarriers_.clear();
}

void ClockTable::join(std::vector<uint32_t>& to, const std::vector<uint32_t>& from) const {
  if (from.empty()) return;
  if (to.empty()) to.resize(size_t(most_));
  keep_larger(to.data(), from.data(), size_t(agents_));
}

void ClockTable::join(Known& to, const Known& from) const {
  join(to.seen, from.seen);
  for (size_t i = 0; i < to.fenced.size(); ++i)
    if (fences_[i]) join(to.fenced[i], from.fenced[i]);
}

void ClockTable::give(int warp, Known& to) {
  const size_t w = size_t(warp);
  join(to, known_[w]);
  to.seen[w] = own_[w];
  own_[w] = ++last_;
}

void ClockTable::take(int warp, const Known& from) {
  join(known_[size_t(warp)], from);
}

int ClockTable::warp_of_products(int agent) const {
  const int group = agent - warps_;
  if (group < 0 || group >= warps_ / of_cta_ * groups_) return -1;
  return group / groups_ * of_cta_ + group % groups_ * kWarpsOfGroup;
}

void ClockTable::wait_products(int warp, uint32_t label) {
  uint32_t& seen = known_[size_t(warp)].seen[size_t(products_of(warp))];
  seen = std::max(seen, label);
}

void ClockTable::fence(FenceKind kind, int warp) {
  const size_t w = size_t(warp);
  Known& known = known_[w];
  fences_[size_t(kind)] = true;
  join(known.fenced[size_t(kind)], known.seen);
  known.fenced[size_t(kind)][w] = own_[w];
  own_[w] = ++last_;
}

// If there are more mbarriers than agents, several share the last agent.
void ClockTable::init_mbarrier(uint64_t key) {
  auto [it, fresh] = mbarriers_.try_emplace(key);
  if (fresh) it->second.agent = agents_ < most_ ? agents_++ : most_ - 1;
}

void ClockTable::complete_mbarrier(uint64_t key) {
  PhaseClock& b = mbarriers_[key];
  const size_t agent = size_t(b.agent);
  join(b.done, b.now);
  if (b.done.seen.empty()) b.done.seen.resize(size_t(most_));
  b.done.seen[agent] = own_[agent];
  own_[agent] = ++last_;
  forget(b.now);
}

void ClockTable::forget(Known& k) const {
  std::fill(k.seen.begin(), k.seen.end(), 0);
  for (auto& fenced : k.fenced) std::fill(fenced.begin(), fenced.end(), 0);
}

void BarrierClocks::begin(int warps) {
  warps_.assign(size_t(warps), OfWarp{});
  base_ = last_ = 1, all_base_fenced_ = 0;
}

void BarrierClocks::join() {
  base_ = ++last_;
  for (OfWarp& w : warps_) {
    all_base_fenced_ = std::max(all_base_fenced_, w.base_fenced);
    w.all_know_fenced = w.own_fenced, w.label = base_;
  }
}

void BarrierClocks::fence(int warp) {
  OfWarp& w = warps_[size_t(warp)];
  w.own_fenced = w.label, w.base_fenced = base_;
  w.label = ++last_;
}

uint32_t BarrierClocks::fenced(int warp, int other) const {
  const OfWarp &w = warps_[size_t(warp)], &o = warps_[size_t(other)];
  const uint32_t of_all = std::max(all_base_fenced_, w.base_fenced);  // all accesses before it
  return std::max(warp == other ? o.own_fenced : o.all_know_fenced, of_all == 0 ? 0 : of_all - 1);
}

void Clocks::begin(int ctas, int rank, std::shared_ptr<ClockTable>* shared) {
  if (!vector_) barrier_.begin(warps_);
  rank_ = rank, first_ = rank * warps_;
  if (!vector_) {
    rank_ = first_ = 0;
    return;
  }
  if (shared && *shared) {
    table_ = *shared;
    return;
  }
  table_ = shared ? std::make_shared<ClockTable>() : own_table_;
  if (!table_) table_ = own_table_ = std::make_shared<ClockTable>();
  table_->begin(ctas, warps_);
  if (shared) *shared = table_;
}

int Clocks::warp_of_products(int agent) const {
  const int warp = vector_ ? table_->warp_of_products(first_ + agent) : -1;
  return warp < 0 ? -1 : warp - first_;
}

bool Clocks::any_ordered(int other, uint32_t label) const {
  for (int w = 0; w < warps_; ++w)
    if (ordered(w, other, label)) return true;
  return false;
}

}  // namespace cutegen::ptx
