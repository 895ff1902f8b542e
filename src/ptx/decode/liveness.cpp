// SPDX-License-Identifier: Apache-2.0
// Finds the registers that may be read before they are written, and the most that are live at once.
#include <algorithm>
#include <bit>
#include <unordered_map>
#include <unordered_set>

#include "ptx/decode/decode.h"

namespace cutegen::ptx {
namespace {

constexpr size_t kMostWork = size_t{1} << 28;  // bits of the data-flow sets

class Liveness {
 public:
  Liveness(Program& p, const std::vector<Effects>& effects, const std::vector<SlotRange>& slots)
      : p_(p), effects_(effects), slots_(slots), words_((slots.size() + 63) / 64) {
    for (size_t i = 0; i < slots.size(); ++i) index_[slots[i].offset] = i;
  }
  void run();

 private:
  using Bits = std::vector<uint64_t>;
  void find_blocks();
  std::vector<size_t> successors(size_t block) const;
  // Walks a block backwards from the registers live at its end. Returns the most words live at
  // once.
  int walk(size_t block, Bits& live, bool measure) const;
  void step(size_t at, Bits& live) const;

  Program& p_;
  const std::vector<Effects>& effects_;
  const std::vector<SlotRange>& slots_;
  size_t words_;
  std::unordered_map<int32_t, size_t> index_;
  std::vector<size_t> starts_;    // first instruction of each block, and the end
  std::vector<size_t> block_of_;  // of an instruction
};

void Liveness::find_blocks() {
  const size_t n = p_.code.size();
  std::vector<char> leader(n + 1, 0);
  leader[0] = 1;
  for (size_t i = 0; i < n; ++i) {
    const Inst& in = p_.code[i];
    if (in.op == Op::branch) leader[size_t(in.target)] = 1;
    if (in.op == Op::branch_index) {
      for (int32_t t : p_.tables[size_t(in.target)]) leader[size_t(t)] = 1;
    }
    if (in.op == Op::branch || in.op == Op::branch_index || in.op == Op::exit) leader[i + 1] = 1;
  }
  block_of_.resize(n + 1);
  for (size_t i = 0; i < n; ++i) {
    if (leader[i]) starts_.push_back(i);
    block_of_[i] = starts_.size() - 1;
  }
  starts_.push_back(n);
}

std::vector<size_t> Liveness::successors(size_t block) const {
  const size_t last = starts_[block + 1] - 1, n = p_.code.size();
  const Inst& in = p_.code[last];
  std::vector<size_t> out;
  if (in.op == Op::branch) out.push_back(block_of_[size_t(in.target)]);
  if (in.op == Op::branch_index) {
    for (int32_t t : p_.tables[size_t(in.target)]) out.push_back(block_of_[size_t(t)]);
  }
  const bool falls =
      (in.op != Op::branch && in.op != Op::branch_index && in.op != Op::exit) || in.guard >= 0;
  if (falls && last + 1 < n) out.push_back(block + 1);
  return out;
}

void Liveness::step(size_t at, Bits& live) const {
  const bool certain = p_.code[at].guard < 0;
  if (certain) {
    for (int32_t w : effects_[at].writes) {
      if (auto it = index_.find(w); it != index_.end())
        live[it->second / 64] &= ~(uint64_t{1} << it->second % 64);
    }
  }
  for (int32_t r : effects_[at].reads) {
    if (auto it = index_.find(r); it != index_.end())
      live[it->second / 64] |= uint64_t{1} << it->second % 64;
  }
}

int Liveness::walk(size_t block, Bits& live, bool measure) const {
  int widest = 0;
  for (size_t i = starts_[block + 1]; i-- > starts_[block];) {
    step(i, live);
    if (!measure) continue;
    int width = 0;
    for (size_t w = 0; w < words_; ++w) {
      for (uint64_t bits = live[w]; bits; bits &= bits - 1) {
        const SlotRange& s = slots_[w * 64 + size_t(std::countr_zero(bits))];
        width += s.bytes >= 256 ? 2 : s.bytes >= 64 ? 1 : 0;
      }
    }
    widest = std::max(widest, width);
  }
  return widest;
}

void Liveness::run() {
  find_blocks();
  const size_t blocks = starts_.size() - 1;
  if (slots_.empty()) return;
  if (blocks * slots_.size() > kMostWork || p_.code.size() * words_ > kMostWork) {
    p_.registers_estimate = int(std::min<size_t>(slots_.size(), 255));
    p_.zeroed = slots_;
    return;
  }
  std::vector<Bits> at_start(blocks, Bits(words_));
  std::vector<std::vector<size_t>> next(blocks), before(blocks);
  for (size_t b = 0; b < blocks; ++b) {
    next[b] = successors(b);
    for (size_t s : next[b]) before[s].push_back(b);
  }
  auto live_out = [&](size_t b) {
    Bits out(words_);
    for (size_t s : next[b]) {
      for (size_t w = 0; w < words_; ++w) out[w] |= at_start[s][w];
    }
    return out;
  };
  std::vector<size_t> work;
  std::vector<char> queued(blocks, 1);
  work.reserve(blocks);
  for (size_t b = 0; b < blocks; ++b) work.push_back(b);
  while (!work.empty()) {
    const size_t b = work.back();
    work.pop_back();
    queued[b] = 0;
    Bits live = live_out(b);
    walk(b, live, false);
    if (live == at_start[b]) continue;
    at_start[b] = std::move(live);
    for (size_t s : before[b]) {
      if (!queued[s]) queued[s] = 1, work.push_back(s);
    }
  }
  int widest = 0;
  for (size_t b = 0; b < blocks; ++b) {
    Bits live = live_out(b);
    widest = std::max(widest, walk(b, live, true));
  }
  for (size_t i = 0; i < slots_.size(); ++i) {
    if (at_start[0][i / 64] >> (i % 64) & 1) p_.zeroed.push_back(slots_[i]);
  }
  p_.registers_estimate = std::min(widest, 255);
}

void mark_watched(Program& p) {
  std::unordered_set<int32_t> zeroed;
  for (const SlotRange& s : p.zeroed) zeroed.insert(s.offset);
  if (zeroed.empty()) return;
  for (size_t pc = 0; pc < p.code.size(); ++pc) {
    const auto& range = p.effect_of[pc];
    for (uint32_t i = range.begin; i < range.end; ++i) {
      if (zeroed.contains(p.effects[i])) p.code[pc].watched = true;
    }
  }
}

}  // namespace

void analyze_liveness(Program& program, const std::vector<Effects>& effects,
                      const std::vector<SlotRange>& slots) {
  Liveness(program, effects, slots).run();
  for (const Effects& e : effects) {
    const auto begin = uint32_t(program.effects.size());
    program.effects.insert(program.effects.end(), e.reads.begin(), e.reads.end());
    const auto writes = uint32_t(program.effects.size());
    program.effects.insert(program.effects.end(), e.writes.begin(), e.writes.end());
    program.effect_of.push_back(
        {.begin = begin, .writes = writes, .end = uint32_t(program.effects.size())});
  }
  program.watch_zeroed = program.zeroed.size() < slots.size();  // all: the analysis gave up
  if (program.watch_zeroed) mark_watched(program);
}

}  // namespace cutegen::ptx
