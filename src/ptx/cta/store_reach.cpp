// SPDX-License-Identifier: Apache-2.0
#include "ptx/cta/store_reach.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <random>
#include <set>

#include "ptx/cta/cta_slice.h"
#include "ptx/model/store_paths.h"

namespace cutegen::ptx {
namespace {

constexpr int64_t kGroups = 4096;           // evaluated groups of 32 CTAs with one thread
constexpr int64_t kLeastGroups = 1024;      // 64 pairs of CTA and thread for each part of a buffer
constexpr int64_t kMostSteps = 20'000'000;  // evaluated instructions, about 10 ns each
constexpr int64_t kMostKinds = 64;          // of CTAs that are looked at separately
constexpr int64_t kMostGuardSteps = 12'000'000;  // to evaluate the conditions of all threads
constexpr int64_t kMostCounted = 1 << 20;        // CTAs whose stored bytes are counted

std::vector<size_t> pcs_of(const std::vector<StorePlace>& stores) {
  std::vector<size_t> out;
  for (const StorePlace& s : stores) out.push_back(s.pc);
  return out;
}

class Finder {
 public:
  Finder(const Job& job, const CtaSlice& slice, const std::set<size_t>& buffers)
      : job_(job),
        slice_(slice),
        values_(job),
        paths_(job.program, pcs_of(slice.stores), slice.conditions) {
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
  // Looks at all threads of all CTAs, and counts only stores that the conditions permit. Returns
  // false if this takes too many steps. find_parts: stop as soon as all parts are found.
  bool look_at_guarded(int64_t count, bool find_parts) {
    const int64_t groups = (count + kLanes - 1) / kLanes;
    const int64_t most = values_.steps() + kMostGuardSteps;
    reset();
    for (int64_t group = 0; group < groups && !(find_parts && found_all()); ++group) {
      SliceValues::Ctas ctas;  // far apart, so that a few groups reach most parts
      uint32_t lanes = 0;
      for (int64_t lane = 0; lane < kLanes; ++lane) {
        ctas[size_t(lane)] = std::min(group + lane * groups, count - 1);
        lanes |= uint32_t(group + lane * groups < count) << lane;
      }
      look_at_threads(ctas, lanes);
      if (values_.steps() > most) return false;
    }
    return true;
  }
  // Estimates from a few CTAs of each kind whether the stores have slightly fewer bytes than some
  // buffer.
  bool seems_short(int64_t count, const CtaKinds& kinds, std::mt19937_64& random) {
    std::map<size_t, double> bytes;
    const std::vector<std::vector<int64_t>> members = kinds.members();
    for (size_t kind = 0; kind < std::max<size_t>(1, members.size()); ++kind) {
      const auto of_kind = uint64_t(members.empty() ? count : int64_t(members[kind].size()));
      SliceValues::Ctas ctas;
      for (int64_t& cta : ctas) {
        const uint64_t drawn = random() % of_kind;
        cta = members.empty() ? int64_t(drawn) : members[kind][drawn];
      }
      reset();
      look_at_threads(ctas, ~0u);
      for (const auto& [buffer, found] : found_)
        bytes[buffer] += double(found.bytes) / kLanes * double(of_kind);
    }
    return std::any_of(bytes.begin(), bytes.end(), [&](const auto& b) {
      const Buffer& buffer = job_.memory.buffers[b.first];
      const double share = b.second / double(buffer.size);
      return buffer.content != Content::scratch && share > 0.5 && share < 1 - 1e-7;
    });
  }
  bool has_conditions() const { return !slice_.conditions.empty(); }
  bool found_all() const {
    return std::all_of(found_.begin(), found_.end(),
                       [](const auto& f) { return f.second.parts.all(); });
  }
  const std::map<size_t, StoreReach::Reached>& found() const { return found_; }

 private:
  static constexpr int64_t kLanes = SliceValues::kLanes;

  void reset() {
    guarded_ = true;
    for (auto& [buffer, found] : found_) found = {.parts = {}, .bytes = 0};
  }
  void look_at_threads(const SliceValues::Ctas& ctas, uint32_t lanes) {
    const auto& b = job_.config.block;
    for (int64_t thread = 0; thread < b[0] * b[1] * b[2]; ++thread) look(ctas, thread, lanes);
  }
  // lanes: a mask of the CTAs whose stores count.
  void look(const SliceValues::Ctas& ctas, int64_t thread, uint32_t lanes = ~0u) {
    values_.set_ctas(ctas);
    values_.set_thread(thread);
    values_.run(slice_.by_cta), values_.run(slice_.by_thread);
    std::array<uint64_t, kLanes> outcomes{};
    if (guarded_) find_outcomes(outcomes);
    for (size_t lane = 0; lane < size_t(kLanes); ++lane)
      if (lanes >> lane & 1) store_of(lane, guarded_ ? &paths_.reached(outcomes[lane]) : nullptr);
  }
  // Sets out[lane] to the mask of the conditions that are true in this lane.
  void find_outcomes(std::array<uint64_t, SliceValues::kLanes>& out) const {
    for (size_t i = 0; i < slice_.conditions.size(); ++i) {
      uint32_t yes = 0;
      std::memcpy(&yes, values_.registers() + slice_.conditions[i], sizeof yes);
      for (size_t lane = 0; lane < out.size(); ++lane) out[lane] |= uint64_t(yes >> lane & 1) << i;
    }
  }
  // executed: which of the stores the thread may execute; nullptr: all.
  void store_of(size_t lane, const std::vector<char>* executed) {
    for (size_t i = 0; i < slice_.stores.size(); ++i) {
      if (executed && !(*executed)[i]) continue;
      const Inst& in = job_.program.code[slice_.stores[i].pc];
      uint64_t at = 0;
      std::memcpy(&at, values_.registers() + in.a + lane * sizeof at, sizeof at);
      reach(at + uint64_t(in.imm), uint64_t(in.size) * in.vec);
    }
  }
  void reach(uint64_t address, uint64_t bytes) {
    if (!last_ || !last_->holds(address)) last_ = job_.memory.find(address);
    if (!last_) return;
    auto found = found_.find(size_t(last_ - job_.memory.buffers.data()));
    if (found == found_.end()) return;
    const double scale = double(StoreReach::kBins) / double(last_->size);
    const uint64_t from = address - last_->base, to = std::min(from + bytes, last_->size);
    const auto end = std::min(size_t(std::ceil(double(to) * scale)), StoreReach::kBins);
    for (auto part = size_t(double(from) * scale); part < end; ++part)
      found->second.parts.set(part);
    found->second.bytes += to - from;
  }

  const Job& job_;
  const CtaSlice& slice_;
  SliceValues values_;
  StorePaths paths_;
  const Buffer* last_ = nullptr;
  bool guarded_ = false;
  std::map<size_t, StoreReach::Reached> found_;
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
  if (finder.found_all() && finder.has_conditions() && !finder.look_at_guarded(ctas, true))
    return out;
  out.known_ = true;
  out.buffers_ = finder.found();
  for (auto& [buffer, reached] : out.buffers_) reached.bytes = UINT64_MAX;
  if (!finder.found_all() || ctas > kMostCounted || kinds.count() > kMostKinds) return out;
  if (finder.seems_short(ctas, kinds, random) && finder.look_at_guarded(ctas, false))
    out.buffers_ = finder.found();
  return out;
}

}  // namespace cutegen::ptx
