// SPDX-License-Identifier: Apache-2.0
#include "ptx/cta/cta_kinds.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <random>
#include <unordered_map>

#include "ptx/cta/cta_slice.h"

namespace cutegen::ptx {
namespace {

constexpr int64_t kMostCtas = int64_t{1} << 23;
constexpr int64_t kMostSteps = 40'000'000;  // evaluated instructions, about 10 ns each
constexpr int kMostRounds = 4096;           // of a loop
constexpr int64_t kDecisionSteps = 5;       // a decision counts as this many instructions
constexpr size_t kLanes = SliceValues::kLanes;

// Evaluates a slice for 32 CTAs at a time: each lane of the registers belongs to one CTA.
class Evaluator {
 public:
  Evaluator(const Job& job, const CtaSlice& slice)
      : slice_(slice), values_(job), registers_(values_.registers()) {
    values_.run(slice_.once);
  }

  // Outcomes of one decision: a bit per CTA.
  struct Outcomes {
    uint32_t less = 0, equal = 0, greater = 0;
  };
  // The outcomes of each decision in 32 CTAs from `first` on. Beyond the grid, its last CTA
  // repeats.
  const std::vector<Outcomes>& of(int64_t first, int64_t total,
                                  const std::vector<int64_t>& threads) {
    outcomes_.assign(slice_.decisions.size(), {});
    SliceValues::Ctas ctas;
    for (size_t lane = 0; lane < kLanes; ++lane)
      ctas[lane] = std::min(first + int64_t(lane), total - 1);
    values_.set_ctas(ctas);
    values_.run(slice_.by_cta);
    note(kByCta);
    for (int64_t thread : threads) {
      values_.set_thread(thread);
      values_.run(slice_.by_thread);
      note(kByCta | kByThread);
      if (!slice_.counters.empty()) run_loop();
    }
    return outcomes_;
  }
  int64_t steps() const { return steps_ + values_.steps(); }

 private:
  // Runs the loop for all CTAs together: advances its counters until a branch goes the other way in
  // every CTA.
  void run_loop() {
    for (const Counter& c : slice_.counters) values_.run(c.first);
    std::vector<uint32_t> before;
    for (int round = 0; round < kMostRounds; ++round) {
      values_.run(slice_.by_loop);
      note(kByCta | kByLoop), note(kByCta | kByThread | kByLoop);
      bool over = false;
      size_t at = 0;
      for (const Decision& d : slice_.decisions) {
        if (d.guard < 0 || !(d.depends & kByLoop)) continue;
        uint32_t now = 0;
        std::memcpy(&now, registers_ + d.guard, sizeof now);
        if (round == 0) before.push_back(now);
        over = over || ((now == 0 || now == ~0u) && now != before[at]);
        ++at;
      }
      if (over) return;
      for (const Counter& c : slice_.counters) values_.run(c.next);
    }
  }

  template <class T>
  void note_order(const Decision& d, Outcomes& out) const {
    T a[kLanes], b[kLanes];
    std::memcpy(a, registers_ + d.slot, sizeof a), std::memcpy(b, registers_ + d.other, sizeof b);
    for (size_t lane = 0; lane < kLanes; ++lane) {
      out.less |= uint32_t(a[lane] < b[lane]) << lane;
      out.equal |= uint32_t(a[lane] == b[lane]) << lane;
      out.greater |= uint32_t(a[lane] > b[lane]) << lane;
    }
  }
  void note_order(const Decision& d, Outcomes& out) const {
    switch (d.as) {
      case Compared::s16:
        return note_order<int16_t>(d, out);
      case Compared::u16:
        return note_order<uint16_t>(d, out);
      case Compared::s32:
        return note_order<int32_t>(d, out);
      case Compared::u32:
        return note_order<uint32_t>(d, out);
      case Compared::s64:
        return note_order<int64_t>(d, out);
      case Compared::u64:
        return note_order<uint64_t>(d, out);
      case Compared::f32:
        return note_order<float>(d, out);
      case Compared::f64:
        return note_order<double>(d, out);
      case Compared::none:
        return;
    }
  }
  void note(const Decision& d, Outcomes& out) {
    steps_ += kDecisionSteps;
    if (d.of == Decision::Of::order) return note_order(d, out);
    uint32_t yes = 0;
    const std::byte* value = registers_ + d.slot;
    if (d.of == Decision::Of::predicate) {
      std::memcpy(&yes, value, sizeof yes);
    } else {
      static constexpr std::byte zeros[16]{};
      const size_t each = size_t(d.bytes), bytes = std::min(each, sizeof zeros);
      for (size_t lane = 0; lane < kLanes; ++lane)
        yes |= uint32_t(std::memcmp(value + lane * each, zeros, bytes) == 0) << lane;
    }
    out.equal |= yes, out.less |= ~yes;
  }
  void note(uint8_t depends) {
    for (size_t i = 0; i < slice_.decisions.size(); ++i)
      if (slice_.decisions[i].depends == depends) note(slice_.decisions[i], outcomes_[i]);
  }

  const CtaSlice& slice_;
  SliceValues values_;
  const std::byte* registers_;
  std::vector<Outcomes> outcomes_;
  int64_t steps_ = 0;  // for decisions
};

uint64_t mixed(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
  return hash ^ hash >> 29;
}

// Returns the threads of a block to evaluate: all, or only those at the ends of its axes if all
// would take too many steps.
// `each`: steps to evaluate one thread of all CTAs.
std::vector<int64_t> threads_of(const Job& job, int64_t each) {
  const auto& b = job.config.block;
  std::vector<int64_t> out(size_t(b[0] * b[1] * b[2]), 0);
  std::iota(out.begin(), out.end(), 0);
  if (each <= kMostSteps / int64_t(out.size())) return out;
  out.clear();
  for (int64_t z : {int64_t{0}, b[2] - 1})
    for (int64_t y : {int64_t{0}, b[1] - 1})
      for (int64_t x : {int64_t{0}, b[0] - 1}) out.push_back(x + b[0] * (y + b[1] * z));
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

}  // namespace

CtaKinds CtaKinds::find(const Job& job) {
  CtaKinds one_kind, unknown, out;
  unknown.known_ = false;
  const auto& g = job.config.grid;
  const int64_t total = g[0] * g[1] * g[2], groups = (total + 31) / 32;
  const CtaSlice slice(job.program);
  if (slice.decisions.empty()) return one_kind;
  if (total > kMostCtas) return unknown;
  Evaluator evaluator(job, slice);
  evaluator.of(total / 2, total, {0});
  const int64_t each = groups * evaluator.steps();
  if (each > kMostSteps) return unknown;
  std::vector<int64_t> threads{0};
  if (slice.depends_on_threads) threads = threads_of(job, each);
  const int64_t most = evaluator.steps() + 2 * kMostSteps;
  std::unordered_map<uint64_t, uint32_t> kinds;
  out.sizes_.clear();
  out.kind_of_.resize(size_t(total));
  for (int64_t first = 0; first < total; first += int64_t(kLanes)) {
    if (evaluator.steps() > most) return unknown;  // some loops are longer
    std::array<uint64_t, kLanes> hashes{};
    for (const auto& o : evaluator.of(first, total, threads))
      for (size_t lane = 0; lane < kLanes; ++lane)
        hashes[lane] = mixed(hashes[lane], 1 + (o.less >> lane & 1) + 2 * (o.equal >> lane & 1) +
                                               4 * (o.greater >> lane & 1));
    for (int64_t cta = first; cta < std::min(total, first + int64_t(kLanes)); ++cta) {
      auto [kind, fresh] = kinds.try_emplace(hashes[size_t(cta - first)], uint32_t(kinds.size()));
      if (fresh) out.sizes_.push_back(0);
      ++out.sizes_[kind->second];
      out.kind_of_[size_t(cta)] = kind->second;
    }
  }
  return out;
}

std::vector<std::vector<int64_t>> CtaKinds::members() const {
  std::vector<std::vector<int64_t>> out(kind_of_.empty() ? 0 : sizes_.size());
  for (size_t cta = 0; cta < kind_of_.size(); ++cta) out[kind_of_[cta]].push_back(int64_t(cta));
  return out;
}

std::vector<int64_t> CtaKinds::members_of_kinds_without(const std::vector<int64_t>& ran,
                                                        uint64_t seed) const {
  if (kind_of_.empty()) return {};
  std::vector<char> seen(sizes_.size());
  for (int64_t cta : ran) seen[kind_of_[size_t(cta)]] = 1;
  std::vector<int64_t> member(sizes_.size(), -1), met(sizes_.size());
  std::mt19937_64 random(seed);
  for (size_t cta = 0; cta < kind_of_.size(); ++cta) {
    const uint32_t kind = kind_of_[cta];
    if (!seen[kind] && random() % uint64_t(++met[kind]) == 0) member[kind] = int64_t(cta);
  }
  std::vector<size_t> order;
  for (size_t kind = 0; kind < member.size(); ++kind)
    if (member[kind] >= 0) order.push_back(kind);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return sizes_[a] < sizes_[b]; });
  std::vector<int64_t> out;
  for (size_t kind : order) out.push_back(member[kind]);
  return out;
}

}  // namespace cutegen::ptx
