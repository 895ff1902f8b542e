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
constexpr double kMostRounds = 4096;        // of a loop

// Finds the loops of a program as ranges of instructions that end with a backward branch.
class Loops {
 public:
  explicit Loops(const Program& p) : p_(p) {
    for (size_t pc = 0; pc < p.code.size(); ++pc) {
      const Inst& in = p.code[pc];
      if (in.op == Op::branch_index) tables_ = true;
      if (in.op == Op::branch && in.target >= 0 && size_t(in.target) <= pc)
        loops_.push_back({size_t(in.target), pc});
    }
  }

  // Whether the counters advance in the same loop, once a round, and no other loop is around it.
  bool advance_together(const CtaSlice& slice) const {
    if (tables_) return false;
    std::set<size_t> in;
    for (const Counter& c : slice.counters) {
      const auto of_next = of(c.next);
      if (of_next.size() != 1 || !of(c.first).empty() || skips(c.next, loops_[*of_next.begin()]))
        return false;
      in.insert(of_next.begin(), of_next.end());
    }
    for (const StorePlace& s : slice.stores)
      if ((s.depends & kByLoop) && of(s.pc) != in) return false;
    return in.size() == 1;
  }

 private:
  struct Range {
    size_t first, last;
    bool holds(size_t pc) const { return first <= pc && pc <= last; }
  };
  std::set<size_t> of(size_t pc) const {
    std::set<size_t> out;
    for (size_t i = 0; i < loops_.size(); ++i)
      if (loops_[i].holds(pc)) out.insert(i);
    return out;
  }
  // Whether a branch of the loop jumps over the instruction without leaving the loop.
  bool skips(size_t pc, const Range& loop) const {
    for (size_t at = loop.first; at < pc; ++at) {
      const Inst& in = p_.code[at];
      if (in.op == Op::branch && in.target > int64_t(pc) && loop.holds(size_t(in.target)))
        return true;
    }
    return false;
  }

  const Program& p_;
  std::vector<Range> loops_;
  bool tables_ = false;
};

class Finder {
 public:
  Finder(const Job& job, const CtaSlice& slice, int64_t rounds)
      : job_(job), slice_(slice), values_(job), rounds_(rounds) {
    values_.run(slice.once);
  }

  void look(const SliceValues::Ctas& ctas, int64_t thread) {
    values_.set_ctas(ctas);
    values_.set_thread(thread);
    values_.run(slice_.by_cta), values_.run(slice_.by_thread);
    note(false);
    if (slice_.counters.empty()) return;
    for (const Counter& c : slice_.counters) values_.run(c.first);
    for (int64_t round = 0; round < rounds_; ++round) {
      values_.run(slice_.by_loop);
      note(true);
      for (const Counter& c : slice_.counters) values_.run(c.next);
    }
  }
  int64_t steps() const { return values_.steps(); }
  std::map<size_t, StoreReach::Parts>& found() { return found_; }

 private:
  void note(bool by_loop) {
    for (const StorePlace& store : slice_.stores) {
      if (bool(store.depends & kByLoop) != by_loop) continue;
      const Inst& in = job_.program.code[store.pc];
      uint64_t at[SliceValues::kLanes];
      std::memcpy(at, values_.registers() + in.a, sizeof at);
      for (uint64_t address : at) reach(address + uint64_t(in.imm), uint64_t(in.size) * in.vec);
    }
  }
  void reach(uint64_t address, uint64_t bytes) {
    if (!last_ || !last_->holds(address)) last_ = job_.memory.find(address);
    if (!last_) return;
    StoreReach::Parts& parts = found_[size_t(last_ - job_.memory.buffers.data())];
    const double scale = double(StoreReach::kBins) / double(last_->size);
    const uint64_t from = address - last_->base, to = std::min(from + bytes, last_->size) - 1;
    const auto end = std::min(size_t(double(to) * scale), StoreReach::kBins - 1);
    for (auto part = size_t(double(from) * scale); part <= end; ++part) parts.set(part);
  }

  const Job& job_;
  const CtaSlice& slice_;
  SliceValues values_;
  int64_t rounds_;
  const Buffer* last_ = nullptr;
  std::map<size_t, StoreReach::Parts> found_;
};

}  // namespace

StoreReach StoreReach::find(const Job& job, const Ran& ran, uint64_t seed) {
  StoreReach out;
  if (ran.other_writes || ran.runs_per_warp.empty()) return out;
  CtaSlice slice(job.program, CtaSlice::Of::stores);
  std::erase_if(slice.stores, [&](auto& s) { return !ran.runs_per_warp.contains(s.pc); });
  if (slice.stores.size() != ran.runs_per_warp.size()) return out;
  double rounds = 0;
  for (const StorePlace& s : slice.stores)
    if (s.depends & kByLoop) rounds = std::max(rounds, ran.runs_per_warp.at(s.pc));
  rounds = 2 * std::ceil(rounds) + 2;  // CTAs outside the sample may need more
  const bool loops = std::any_of(slice.stores.begin(), slice.stores.end(),
                                 [](const StorePlace& s) { return bool(s.depends & kByLoop); });
  if (loops && (rounds > kMostRounds || !Loops(job.program).advance_together(slice))) return out;
  Finder finder(job, slice, loops ? int64_t(rounds) : 0);
  const auto& g = job.config.grid;
  const auto& b = job.config.block;
  const int64_t total = g[0] * g[1] * g[2], threads = b[0] * b[1] * b[2];
  const int64_t groups = (total + 31) / 32;
  const bool all = groups <= kGroups / threads;
  std::mt19937_64 random(seed);
  const int64_t wanted = all ? groups * threads : kGroups;
  for (int64_t n = 0; n < wanted; ++n) {
    if (finder.steps() > kMostSteps) {
      if (all || n < kLeastGroups) return out;
      break;
    }
    SliceValues::Ctas ctas;
    for (size_t lane = 0; lane < SliceValues::kLanes; ++lane)
      ctas[lane] = all ? std::min(n / threads * 32 + int64_t(lane), total - 1)
                       : int64_t(random() % uint64_t(total));
    finder.look(ctas, all ? n % threads : int64_t(random() % uint64_t(threads)));
  }
  out.known_ = true;
  out.buffers_ = std::move(finder.found());
  return out;
}

}  // namespace cutegen::ptx
