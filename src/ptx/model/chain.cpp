// SPDX-License-Identifier: Apache-2.0
#include "ptx/model/chain.h"

#include <algorithm>

#include "ptx/model/pipes.h"
#include "ptx/ops/async_copy.h"

namespace cutegen::ptx {
namespace {

constexpr size_t kMostGroups = 64;  // groups of copies that nothing has waited for

bool in_shared(const Inst& in) {
  return in.space == Space::shared || in.op == Op::load_matrix || in.op == Op::store_matrix;
}

double latency_of(const Inst& in, const Usage& use, const GpuLatency& l) {
  switch (in.op) {
    case Op::load:
      if (in.space == Space::global || in.space == Space::generic) return l.global;
      return in.space == Space::shared || in.space == Space::local ? l.shared : l.arithmetic;
    case Op::atomic:
      return in.space == Space::shared ? l.shared : l.global;
    case Op::load_matrix:
      return l.shared;
    case Op::matrix:
      return l.tensor;
    case Op::shuffle:
    case Op::vote:
    case Op::warp_reduce:
    case Op::match:
    case Op::elect:
      return l.shuffle;
    default:
      return (use.special || use.pipe == Pipe::xu ? l.special : 0) +
             l.arithmetic * std::max<int>(1, use.issue - use.special);
  }
}

}  // namespace

Chain::Chain(const Program& program, const GpuLatency& latency)
    : program_(program), latency_(latency), ready_(size_t(program.register_bytes) / 4 + 1) {
  costs_.reserve(program.code.size());
  for (size_t i = 0; i < program.code.size(); ++i) {
    const std::string_view text = program.lines[i].text;
    const Usage use = usage_of(text);
    costs_.push_back({.latency = latency_of(program.code[i], use, latency),
                      .issue = double(use.issue),
                      .constant = text.find(".nc") != std::string_view::npos});
  }
}

// The time at which the last operand of an instruction is ready.
double Chain::ready(const Inst& in, int32_t pc) const {
  const auto& range = program_.effect_of[size_t(pc)];
  double at = start_;
  for (uint32_t i = range.begin; i < range.writes; ++i)
    at = std::max(at, ready_[size_t(program_.effects[i]) / 4]);
  return in.guard < 0 ? at : std::max(at, ready_[size_t(in.guard) / 4]);
}

// Returns the time of the last store that an access must wait for, or nullptr.
double* Chain::store_before(const Inst& in) {
  const bool global = in.space == Space::global || in.space == Space::generic;
  if (in.op == Op::async_copy || in_shared(in)) return &shared_store_;
  const bool accesses = in.op == Op::load || in.op == Op::store || in.op == Op::atomic;
  return accesses && global ? &global_store_ : nullptr;
}

void Chain::poll(int32_t pc, bool again) {
  if (!again) {
    polled_[0] = start_, polled_[1] = issued_, polled_[2] = last_;
    return;
  }
  const double later = start_ - polled_[0];
  start_ = polled_[0], issued_ = polled_[1], last_ = polled_[2];
  const auto& range = program_.effect_of[size_t(pc)];
  for (uint32_t i = range.writes; i < range.end; ++i)
    ready_[size_t(program_.effects[i]) / 4] -= later;
}

void Chain::close() {
  start_ = std::max(start_ + issued_, last_);
  issued_ = 0, last_ = start_;
}

// Advances the clock until at most `pending` groups of copies are in flight.
void Chain::wait(int64_t pending) {
  close();
  if (pending == kWaitAll) {
    start_ = std::max(start_, copies_);
    pending = 0;
  }
  while (int64_t(groups_.size()) > pending) {
    start_ = std::max(start_, groups_.front());
    groups_.pop_front();
  }
  last_ = start_;
}

// A product of N columns occupies the tensor pipe of its warp for N / 2 clocks, whatever its type.
void Chain::warpgroup(const Inst& in, double at) {
  if (in.sub == kWgmmaMultiply) {
    tensor_free_ = std::max(tensor_free_, at) + program_.wgmmas[size_t(in.target)].n / 2.0;
    product_ = tensor_free_ + latency_.tensor;
  }
  if (in.sub == kWgmmaCommit) {
    products_.push_back(product_);
    if (products_.size() > kMostGroups) products_.pop_front();
  }
  if (in.sub != kWgmmaWait) return;
  close();
  for (; int64_t(products_.size()) > in.imm; products_.pop_front())
    start_ = std::max(start_, products_.front());
  last_ = start_;
}

void Chain::wait_at(uint64_t place) {
  auto it = arrivals_.find(place);
  if (it == arrivals_.end()) return;
  close();
  start_ = last_ = std::max(start_, it->second);
  arrivals_.erase(it);
}

void Chain::step(const Inst& in, int32_t pc, uint32_t mask) {
  if (pc != next_) close();
  next_ = pc + 1;
  const Cost& cost = costs_[size_t(pc)];
  issued_ += cost.issue;
  double at = ready(in, pc);
  if (double* store = store_before(in); store && mask) {
    const bool reads = in.op == Op::load || in.op == Op::load_matrix || in.op == Op::wgmma;
    if (!(reads && cost.constant)) at = std::max(at, *store);
    if (!reads && in.op != Op::async_copy) *store = at;
  }
  last_ = std::max(last_, at + 1);
  const auto& range = program_.effect_of[size_t(pc)];
  if (mask) {
    for (uint32_t i = range.writes; i < range.end; ++i)
      ready_[size_t(program_.effects[i]) / 4] = at + cost.latency;
  }
  switch (in.op) {
    case Op::async_copy:
      if (mask) copies_ = std::max(copies_, at + latency_.global);
      break;
    case Op::async_commit:
      groups_.push_back(copies_);
      if (groups_.size() > kMostGroups) groups_.pop_front();
      break;
    case Op::async_wait:
      wait(in.imm);
      break;
    case Op::wgmma:
      warpgroup(in, at);
      break;
    case Op::cluster_barrier:
    case Op::barrier:
      close();
      start_ += latency_.barrier, last_ = start_;
      break;
    case Op::branch:
    case Op::branch_index:
      close();
      break;
    default:
      break;
  }
}

double Chain::clocks() const {
  return std::max(start_ + issued_, last_);
}

}  // namespace cutegen::ptx
