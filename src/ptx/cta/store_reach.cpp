// SPDX-License-Identifier: Apache-2.0
#include "ptx/cta/store_reach.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <set>

#include "ptx/cta/cta_slice.h"

namespace cutegen::ptx {
namespace {

constexpr int64_t kGroups = 4096;           // evaluated groups of 32 CTAs with one thread
constexpr int64_t kLeastGroups = 1024;      // 64 pairs of CTA and thread for each part of a buffer
constexpr int64_t kMostSteps = 20'000'000;  // evaluated instructions, about 10 ns each
constexpr int64_t kMostKinds = 64;          // of CTAs that are looked at separately
constexpr int64_t kMostGuardSteps = 100'000'000;  // to evaluate the guards of all threads

class Finder {
 public:
  Finder(const Job& job, const CtaSlice& slice, const std::set<size_t>& buffers)
      : job_(job), slice_(slice), values_(job) {
    for (size_t buffer : buffers) found_[buffer] = {};
    values_.run(slice.once);
  }

  // Looks at all threads of all CTAs, or at a random sample of pairs of CTA and thread. Returns
  // false if this takes too many steps. `cta`: the CTAs by index, from 0 to `count`.
  template <class F>
  bool look_at(int64_t count, F cta, std::mt19937_64& random) {
    const auto& b = job_.config.block;
    const int64_t threads = b[0] * b[1] * b[2], groups = (count + kLanes - 1) / kLanes;
    const bool all = groups <= kGroups / threads;
    const int64_t wanted = all ? groups * threads : kGroups, most = values_.steps() + kMostSteps;
    for (int64_t n = 0; n < wanted; ++n) {
      if (values_.steps() > most) return !all && n >= kLeastGroups;
      SliceValues::Ctas ctas;
      for (int64_t lane = 0; lane < kLanes; ++lane)
        ctas[size_t(lane)] = cta(all ? std::min(n / threads * kLanes + lane, count - 1)
                                     : int64_t(random() % uint64_t(count)));
      look(ctas, all ? n % threads : int64_t(random() % uint64_t(threads)));
    }
    return true;
  }
  // Looks at all threads of all CTAs, and counts a store only if its guards hold. Stops as soon as
  // all parts are found. Returns false if this takes too many steps.
  bool look_at_guarded(int64_t count) {
    const auto& b = job_.config.block;
    const int64_t threads = b[0] * b[1] * b[2], groups = (count + kLanes - 1) / kLanes;
    const int64_t most = values_.steps() + kMostGuardSteps;
    for (auto& [buffer, parts] : found_) parts.reset();
    guarded_ = true;
    for (int64_t group = 0; group < groups && !found_all(); ++group) {
      SliceValues::Ctas ctas;  // far apart, so that a few groups reach most parts
      for (int64_t lane = 0; lane < kLanes; ++lane)
        ctas[size_t(lane)] = std::min(group + lane * groups, count - 1);
      for (int64_t thread = 0; thread < threads; ++thread) look(ctas, thread);
      if (values_.steps() > most) return false;
    }
    return true;
  }
  bool has_guards() const {
    return std::any_of(slice_.stores.begin(), slice_.stores.end(),
                       [](const StorePlace& s) { return !s.guards.empty(); });
  }
  bool found_all() const {
    return std::all_of(found_.begin(), found_.end(), [](const auto& f) { return f.second.all(); });
  }
  std::map<size_t, StoreReach::Parts>& found() { return found_; }

 private:
  static constexpr int64_t kLanes = SliceValues::kLanes;

  void look(const SliceValues::Ctas& ctas, int64_t thread) {
    values_.set_ctas(ctas);
    values_.set_thread(thread);
    values_.run(slice_.by_cta), values_.run(slice_.by_thread);
    for (const StorePlace& store : slice_.stores) {
      const Inst& in = job_.program.code[store.pc];
      uint64_t at[SliceValues::kLanes];
      std::memcpy(at, values_.registers() + in.a, sizeof at);
      const uint32_t ctas_that_store = guarded_ ? where_guards_hold(store) : ~0u;
      for (size_t lane = 0; lane < SliceValues::kLanes; ++lane)
        if (ctas_that_store >> lane & 1)
          reach(at[lane] + uint64_t(in.imm), uint64_t(in.size) * in.vec);
    }
  }
  // A bit for each of the 32 CTAs.
  uint32_t where_guards_hold(const StorePlace& store) const {
    uint32_t out = ~0u;
    for (const Guard& g : store.guards) {
      uint32_t yes = 0;
      std::memcpy(&yes, values_.registers() + g.slot, sizeof yes);
      out &= g.holds ? yes : ~yes;
    }
    return out;
  }
  void reach(uint64_t address, uint64_t bytes) {
    if (!last_ || !last_->holds(address)) last_ = job_.memory.find(address);
    if (!last_) return;
    auto parts = found_.find(size_t(last_ - job_.memory.buffers.data()));
    if (parts == found_.end()) return;
    const double scale = double(StoreReach::kBins) / double(last_->size);
    const uint64_t from = address - last_->base, to = std::min(from + bytes, last_->size);
    const auto end = std::min(size_t(std::ceil(double(to) * scale)), StoreReach::kBins);
    for (auto part = size_t(double(from) * scale); part < end; ++part) parts->second.set(part);
  }

  const Job& job_;
  const CtaSlice& slice_;
  SliceValues values_;
  const Buffer* last_ = nullptr;
  bool guarded_ = false;
  std::map<size_t, StoreReach::Parts> found_;
};

// Whether the slice has the addresses of all stores that may write global memory, and none of them
// depends on a loop.
bool knows_all(const Program& p, const CtaSlice& slice, const std::set<size_t>& elsewhere) {
  std::set<size_t> known;
  for (const StorePlace& s : slice.stores) {
    if (s.depends & kByLoop) return false;
    known.insert(s.pc);
  }
  for (size_t pc = 0; pc < p.code.size(); ++pc) {
    const Inst& in = p.code[pc];
    if (in.op != Op::store || (in.space != Space::global && in.space != Space::generic)) continue;
    if (!known.contains(pc) && !elsewhere.contains(pc)) return false;
  }
  return true;
}

}  // namespace

StoreReach StoreReach::find(const Job& job, const CtaKinds& kinds, const Ran& ran, uint64_t seed) {
  StoreReach out;
  if (ran.other_writes) return out;
  CtaSlice slice(job.program, CtaSlice::Of::stores);
  std::erase_if(slice.stores, [&](const StorePlace& s) { return ran.elsewhere.contains(s.pc); });
  if (!knows_all(job.program, slice, ran.elsewhere)) return out;
  Finder finder(job, slice, ran.buffers);
  const auto& g = job.config.grid;
  const int64_t ctas = g[0] * g[1] * g[2];
  std::mt19937_64 random(seed);
  if (!finder.look_at(ctas, [](int64_t cta) { return cta; }, random)) return out;
  if (!finder.found_all()) {
    // A few CTAs may write a part that all other CTAs leave out.
    if (kinds.count() > kMostKinds) return out;
    for (const std::vector<int64_t>& of_kind : kinds.members())
      if (!finder.look_at(
              int64_t(of_kind.size()), [&](int64_t i) { return of_kind[size_t(i)]; }, random))
        return out;
  }
  if (finder.found_all() && finder.has_guards() && !finder.look_at_guarded(ctas)) return out;
  out.known_ = true;
  out.buffers_ = std::move(finder.found());
  return out;
}

}  // namespace cutegen::ptx
