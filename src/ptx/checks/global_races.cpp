// SPDX-License-Identifier: Apache-2.0
#include "ptx/checks/global_races.h"

#include <algorithm>
#include <bit>

namespace cutegen::ptx {

Epochs::~Epochs() {
  for (auto& block : blocks_) delete[] block.load();
}

uint32_t Epochs::take() {
  const uint32_t n = used_.fetch_add(1);
  if (n >= kMostBlocks) {
    used_ = kMostBlocks;
    return 0;
  }
  blocks_[n] = new Epoch[kBlock];
  return first_ + n * kBlock;
}

Epoch& Epochs::at(uint32_t id) const {
  return blocks_[(id - first_) / kBlock].load()[(id - first_) % kBlock];
}

void SyncTimes::publish(int64_t cta, std::span<const uint32_t> labels) {
  Shard& shard = shards_[size_t(cta) % shards_.size()];
  std::lock_guard lock(shard.mutex);
  Published& p = shard.ctas[cta];
  const size_t n = labels.size(), old = p.labels.size();
  p.labels.resize(old + n);
  bool grew = old == 0;
  for (size_t u = 0; u < n; ++u) {
    const uint32_t before = old == 0 ? 0 : p.labels[old - n + u];
    p.labels[old + u] = std::max(before, labels[u]);
    grew = grew || labels[u] > before;
  }
  if (grew)
    p.times.push_back(++time_);
  else
    p.labels.resize(old);
}

bool SyncTimes::published(int64_t cta, size_t warp, uint32_t label, uint64_t until) const {
  const Shard& shard = shards_[size_t(cta) % shards_.size()];
  std::lock_guard lock(shard.mutex);
  const auto it = shard.ctas.find(cta);
  if (it == shard.ctas.end()) return false;
  const Published& p = it->second;
  const size_t warps = p.labels.size() / p.times.size();
  const size_t n = size_t(std::upper_bound(p.times.begin(), p.times.end(), until) -
                          p.times.begin());  // times up to `until`
  return n > 0 && label <= p.labels[(n - 1) * warps + warp];
}

GlobalRaces::GlobalRaces(const HazardFacts& facts, const Clocks& clocks, Epochs& epochs,
                         SyncTimes& times, int warps)
    : clocks_(clocks),
      epochs_(epochs),
      times_(times),
      shift_(facts.global_shift),
      cache_(size_t(warps)),
      labels_(size_t(warps)),
      released_(size_t(warps)),
      acquired_labels_(size_t(warps)),
      fenced_labels_(size_t(warps)),
      signalled_(size_t(warps)) {}

void GlobalRaces::begin(int64_t cta) {
  cta_ = cta;
  ++stamp_, ++changes_;
  segment_ = 0, acquired_ = 0, plain_ = false;
  for (auto* labels : {&released_, &acquired_labels_, &fenced_labels_})
    std::fill(labels->begin(), labels->end(), 0);
}

// Without plain accesses since the last release, there is nothing to release, so the segment
// continues.
void GlobalRaces::release() {
  if (!plain_) return;
  ++segment_, ++stamp_;
  plain_ = false;
}

void GlobalRaces::fence() {
  release();
  ++changes_;
  fenced_labels_ = acquired_labels_;
}

void GlobalRaces::acquire() {
  acquired_ = times_.now();
  acquired_labels_ = released_;
}

void GlobalRaces::signal(int warp) {
  uint64_t& last = signalled_[size_t(warp)];
  if (last == changes_) return;
  last = changes_;
  uint32_t any = 0;
  for (int u = 0; u < clocks_.warps(); ++u) {
    const size_t i = size_t(u);
    labels_[i] = std::max(clocks_.fenced(warp, u), fenced_labels_[i]);
    released_[i] = std::max(released_[i], clocks_.last_ordered(warp, u));
    any |= labels_[i];
  }
  if (any != 0) times_.publish(cta_, labels_);
}

uint32_t GlobalRaces::epoch_of(const GlobalAccess& a) {
  Cached& c = cache_[size_t(a.warp)][size_t(a.pc) & 15];
  if (c.stamp == stamp_ && c.pc == a.pc) {
    epochs_.at(c.id).stride = 0;
    return c.id;
  }
  if (left_ == 0) {
    next_ = epochs_.take();
    if (next_ == 0) return 0;
    left_ = Epochs::kBlock;
  }
  c = {.stamp = stamp_, .pc = a.pc, .id = next_++};
  --left_;
  epochs_.at(c.id) = {.cta = cta_,
                      .low = a.summary.low,
                      .stride = a.summary.contiguous ? a.bytes : 0,
                      .pc = a.pc,
                      .label = clocks_.label(a.warp),
                      .segment = segment_,
                      .warp = int16_t(a.warp),
                      .touch = a.touch};
  std::atomic_thread_fence(std::memory_order_release);  // publish the epoch before its id
  return c.id;
}

bool GlobalRaces::conflict(const GlobalAccess& a, uint32_t id) {
  if (id < epochs_.first()) return false;  // the access belongs to an earlier launch
  const Epoch& e = epochs_.at(id);
  const bool atomic = e.touch == Touch::atomic, mine = a.touch == Touch::atomic;
  const bool plain_read = e.touch == Touch::read || a.touch == Touch::read;
  if ((atomic && mine) || ((atomic || mine) && plain_read)) return false;
  if (e.touch == Touch::read && a.touch == Touch::read) return false;
  bool ordered;
  if (atomic) {
    ordered = acquired_ > 0 || (e.cta == cta_ && clocks_.ordered(a.warp, e.warp, e.label));
  } else if (e.cta == cta_) {
    ordered = e.segment != segment_ || clocks_.ordered(a.warp, e.warp, e.label);
  } else {
    ordered = times_.published(e.cta, size_t(e.warp), e.label, acquired_);
  }
  if (!ordered) other_ = e;
  return !ordered;
}

bool GlobalRaces::granule(const GlobalAccess& a, BufferShadow& shadow, size_t g, uint32_t mine) {
  uint32_t& writer = shadow.writers[g];
  bool bad = writer != mine && conflict(a, writer);
  if (a.touch == Touch::read) {
    shadow.readers[g] = mine;
    return bad;
  }
  bad = bad || conflict(a, shadow.readers[g]);
  writer = mine;
  return bad;
}

uint32_t GlobalRaces::touch(const GlobalAccess& a, BufferShadow& shadow, uint64_t base) {
  const uint32_t mine = epoch_of(a);
  if (mine == 0) return 0;
  plain_ = plain_ || a.touch != Touch::atomic;
  if (a.summary.contiguous) {
    const size_t first = (a.summary.low - base) >> shift_;
    const size_t n = ((a.summary.high - a.summary.low + a.bytes - 1) >> shift_) + 1;
    uint32_t *writers = shadow.writers.data() + first, *readers = shadow.readers.data() + first;
    uint32_t latest = 0;
    for (size_t i = 0; i < n; ++i) latest = std::max(latest, writers[i]);
    if (a.touch != Touch::read) {
      for (size_t i = 0; i < n; ++i) latest = std::max(latest, readers[i]);
    }
    if (latest < epochs_.first()) {
      std::fill_n(a.touch == Touch::read ? readers : writers, n, mine);
      return 0;
    }
  }
  uint32_t bad = 0;
  for (uint32_t m = a.mask; m; m &= m - 1) {
    const int lane = std::countr_zero(m);
    const uint64_t at = a.at[lane] - base;
    for (size_t g = at >> shift_; g <= (at + a.bytes - 1) >> shift_; ++g)
      bad |= uint32_t(granule(a, shadow, g, mine)) << lane;
  }
  return bad;
}

bool GlobalRaces::unfenced(int warp, const Program& program, const BufferShadow& shadow,
                           uint64_t from, uint64_t to) {
  uint32_t last = 0;
  for (size_t g = from >> shift_; g <= (to - 1) >> shift_; ++g) {
    const uint32_t id = shadow.writers[g];
    if (id == last || id < epochs_.first()) continue;
    last = id;
    const Epoch& e = epochs_.at(id);
    if (e.cta != cta_ || program.code[size_t(e.pc)].op == Op::bulk_copy) continue;
    if (clocks_.visible(FenceKind::proxy_global, warp, e.warp, e.label)) continue;
    other_ = e;
    return true;
  }
  return false;
}

}  // namespace cutegen::ptx
