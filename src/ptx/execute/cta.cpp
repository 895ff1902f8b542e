// SPDX-License-Identifier: Apache-2.0
// Setting a CTA up, running its warps in turn, and what ends it.
#include "ptx/execute/cta.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "base/text.h"

namespace cutegen::ptx {
namespace {

std::byte* allocate_registers(size_t bytes) {
  void* p = std::aligned_alloc(64, (bytes + 63) / 64 * 64);
  if (!p) throw std::bad_alloc();
  return static_cast<std::byte*>(p);
}

uint32_t lane_value(Special which, int lane) {
  switch (which) {
    case Special::laneid:
      return uint32_t(lane);
    case Special::lanemask_eq:
      return 1u << lane;
    case Special::lanemask_lt:
      return (1u << lane) - 1;
    case Special::lanemask_le:
      return (2u << lane) - 1;
    case Special::lanemask_ge:
      return ~((1u << lane) - 1);
    default:
      return ~((2u << lane) - 1);
  }
}

}  // namespace

Cta::Cta(Job& job) : job_(job), forms_(forms()), registers_(nullptr, std::free) {
  const auto& b = job.config.block;
  block_threads_ = b[0] * b[1] * b[2];
  const size_t warps = size_t((block_threads_ + 31) / 32),
               bytes = size_t(job.program.register_bytes);
  registers_.reset(allocate_registers(std::max<size_t>(64, warps * bytes)));
  warps_.resize(warps);
  copies_.resize(warps);
  shared_.resize(size_t(job.shared_bytes));
  local_.resize(size_t(job.program.local_bytes) * warps * 32);
  mixed_ = job.order == Order::mixed, spins_ = job.spins();
  turns_.resize(warps);
  for (size_t i = 0; i < warps; ++i)
    turns_[i] = uint8_t(job.order == Order::reversed ? warps - 1 - i : i);
  for (size_t i = 0; i < warps; ++i) {
    Warp& w = warps_[i];
    w.index = int(i);
    w.registers = registers_.get() + i * bytes;
    for (const ConstantSlot& c : job.program.constants) {
      uint64_t value = c.bits;
      if (c.variable >= 0) {
        const auto& used = job.program.variables;
        auto it = std::lower_bound(used.begin(), used.end(), c.variable);
        value += job.variable_base[size_t(it - used.begin())];
      }
      fill(w, c.offset, c.size, value);
    }
  }
  set_specials();
  if (!job.hazards) return;
  hazards_ =
      std::make_unique<Hazards>(job.program, job.checks, *job.hazards, int(warps), shared_.size());
  races_ = job.checks.races;
}

int64_t Cta::bytes(const Job& job) {
  const auto& b = job.config.block;
  const int64_t warps = (b[0] * b[1] * b[2] + 31) / 32;
  return warps *
             (job.program.register_bytes + 32 * job.program.local_bytes + int64_t(sizeof(Warp))) +
         job.shared_bytes * (job.hazards ? 4 + warps : 1);
}

void Cta::fill(Warp& w, int32_t offset, int size, uint64_t value) {
  std::byte* r = w.registers + offset;
  if (size == 0) {
    std::memcpy(r, &value, 4);
    return;
  }
  if (size == 4) {
    std::fill_n(reinterpret_cast<uint32_t*>(r), 32, uint32_t(value));
    return;
  }
  for (int lane = 0; lane < 32; ++lane) std::memcpy(r + lane * size, &value, size_t(size));
}

// Special registers that are the same for every CTA of the launch.
void Cta::set_specials() {
  const auto &g = job_.config.grid, &b = job_.config.block;
  for (const SpecialSlot& s : job_.program.specials) {
    const int which = int(s.which);
    for (Warp& w : warps_) {
      uint32_t* out = reinterpret_cast<uint32_t*>(w.registers + s.offset);
      auto same = [&](uint64_t v) { fill(w, s.offset, 4, v); };
      if (which <= int(Special::tid_z)) {
        for (int lane = 0; lane < 32; ++lane) {
          const int64_t t = w.index * 32 + lane;
          const int64_t xyz[3] = {t % b[0], t / b[0] % b[1], t / (b[0] * b[1])};
          out[lane] = uint32_t(xyz[which - int(Special::tid_x)]);
        }
      } else if (which <= int(Special::ntid_z)) {
        same(uint64_t(b[size_t(which - int(Special::ntid_x))]));
      } else if (which <= int(Special::ctaid_z)) {
        continue;  // begin()
      } else if (which <= int(Special::nctaid_z)) {
        same(uint64_t(g[size_t(which - int(Special::nctaid_x))]));
      } else if (s.which == Special::warpid) {
        same(uint64_t(w.index));
      } else if (s.which == Special::nwarpid) {
        same(warps_.size());
      } else if (s.which == Special::dynamic_smem_size) {
        same(uint64_t(job_.config.shared_bytes));
      } else if (s.which == Special::total_smem_size) {
        same(uint64_t(job_.shared_bytes));
      } else if (s.which == Special::workspace_high || s.which == Special::workspace_low) {
        same(s.which == Special::workspace_high ? job_.workspace >> 32
                                                : job_.workspace & 0xffffffff);
      } else if (s.which == Special::zero || s.which == Special::one) {
        same(s.which == Special::one);
      } else {
        for (int lane = 0; lane < 32; ++lane) out[lane] = lane_value(s.which, lane);
      }
    }
  }
}

void Cta::begin(int64_t linear, Counting& counting) {
  linear_ = linear;
  random_ = job_.order_seed * 0x9e3779b97f4a7c15 + uint64_t(linear);
  counting_ = &counting;
  work_ = {};
  const auto& g = job_.config.grid;
  at_ = {linear % g[0], linear / g[0] % g[1], linear / (g[0] * g[1])};
  for (const SpecialSlot& s : job_.program.specials) {
    const int axis = int(s.which) - int(Special::ctaid_x);
    if (axis < 0 || axis > 2) continue;
    for (Warp& w : warps_) fill(w, s.offset, 4, uint64_t(at_[size_t(axis)]));
  }
  for (Warp& w : warps_) {
    const int64_t threads = std::min<int64_t>(32, block_threads_ - w.index * 32);
    w.alive = threads == 32 ? ~0u : (1u << threads) - 1;
    w.state = Warp::State::running;
    w.current = {0, w.alive, false};
    w.count = 0, w.turns = 0, w.barrier = -1, w.executed = 0, w.spins = 0;
    w.slept_ns = 0, w.polled = 0;
    for (const SlotRange& s : job_.program.zeroed)
      std::memset(w.registers + s.offset, 0, size_t(s.bytes));
  }
  alive_warps_ = int(warps_.size());
  for (Barrier& b : barriers_) b = {};
  forget_copies();
  if (hazards_) hazards_->begin(linear);
  pending_.reset();
  // What is read before it is written shows as NaN, the same in every run.
  if (!shared_.empty()) std::memset(shared_.data(), 0xff, shared_.size());
  if (!local_.empty()) std::memset(local_.data(), 0xff, local_.size());
}

LaunchStatus Cta::check_limits() {
  if (job_.context.done()) {
    reason_ = "the launch was cancelled or ran out of time";
    return LaunchStatus::cancelled;
  }
  if (job_.spent.load(std::memory_order_relaxed) > job_.budget) {
    reason_ = fmt::format("more than {} warp instructions: an endless loop, or too much work",
                          job_.budget);
    return LaunchStatus::out_of_budget;
  }
  return LaunchStatus::ok;
}

Cta::Turn Cta::turn() {
  counting_->enter(work_, linear_);
  if (job_.stop_after.load(std::memory_order_relaxed) < linear_) {
    counting_->ended(executed());
    return Turn::ended;
  }
  bool any = false;
  all_spin_ = true;
  if (mixed_) shuffle_warps();
  for (const uint8_t turn : turns_) {
    Warp& w = warps_[turn];
    if (w.state != Warp::State::running) continue;
    any = true;
    const uint64_t before = w.executed;
    const Step step = run_warp(w);
    job_.spent.fetch_add(w.executed - before, std::memory_order_relaxed);
    if (step == Step::failed) return Turn::failed;
    all_spin_ = all_spin_ && step == Step::yield && w.spins >= spins_;
    if (step != Step::done) continue;
    w.state = Warp::State::done;
    --alive_warps_;
    for (int id = 0; id < 16; ++id) {
      if (!release_if_complete(id)) return Turn::failed;
    }
  }
  if (alive_warps_ == 0 && pending_) {
    finding_ = *std::exchange(pending_, std::nullopt);
    status_ = LaunchStatus::finding;
    return Turn::failed;
  }
  if (alive_warps_ == 0) {
    end_work();
    return Turn::ended;
  }
  if (!any && deadlock()) return Turn::failed;
  if ((status_ = check_limits()) != LaunchStatus::ok) {
    counting_->ended(executed());
    return Turn::failed;
  }
  return all_spin_ ? Turn::spinning : Turn::going;
}

uint64_t Cta::executed() const {
  uint64_t out = 0;
  for (const Warp& w : warps_) out += w.executed;
  return out;
}

void Cta::end_work() {
  uint64_t all = executed();
  for (const Warp& w : warps_) all -= w.polled;
  work_.instructions = double(all);
  for (const Warp& w : warps_) work_.slept_ns = std::max(work_.slept_ns, w.slept_ns);
  counting_->ended(all, work_.slept_ns);
  if (linear_ == job_.traced && job_.chain) job_.chain->ended(all);
}

// SplitMix64.
uint64_t Cta::random() {
  uint64_t z = (random_ += 0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

void Cta::shuffle_warps() {
  for (size_t i = turns_.size(); i > 1; --i) std::swap(turns_[i - 1], turns_[random() % i]);
}

// A warp that polls sleeps as long as others make it wait: that is no time of its own.
void Cta::sleep(Warp& w, const Inst& in, uint32_t mask) {
  if (w.spins >= 2) return;
  constexpr uint32_t kMost = 1'000'000;  // ns, of one nanosleep
  const auto* ns = reinterpret_cast<const uint32_t*>(w.registers + in.a);
  uint32_t longest = 0;
  for (uint32_t m = mask; m; m &= m - 1)
    longest = std::max(longest, std::min(kMost, ns[std::countr_zero(m)]));
  w.slept_ns += longest;
}

uint64_t Pulls::before(std::byte* place, uint8_t bytes) {
  auto [at, fresh] = words.try_emplace(place);
  Word& word = at->second;
  if (fresh) {
    word.bytes = bytes;
    std::memcpy(word.first.data(), place, bytes);
  }
  const double k = double(word.pulls++);
  return uint64_t((k + 1) * stands_for) - uint64_t(k * stands_for) - 1;
}

void Pulls::restore() {
  for (auto& [place, word] : words) std::memcpy(place, word.first.data(), word.bytes);
  words.clear();
}

void Cta::note_poll(Warp& w, const Inst& in, uint64_t address, bool changed) {
  if (changed || (in.op == Op::load && !in.ordered)) {
    w.spins = changed ? 0 : w.spins;
  } else if (address != w.spin_address) {
    w.spin_address = address, w.spins = 1;
    note_wait(w, false);
  } else {
    ++w.spins;
    note_wait(w, true);
  }
}

// A short loop around a poll waits for others: what it takes is in their time.
void Cta::note_wait(Warp& w, bool again) {
  constexpr uint64_t kShort = 64;  // instructions between two polls
  const uint64_t loop = w.executed - w.polled_at;
  again = again && loop <= kShort;
  if (again) w.polled += loop;
  w.polled_at = w.executed;
  if (job_.chain && linear_ == job_.traced && w.index == 0) job_.chain->poll(w.current.pc, again);
}

// "line 12 (bar.sync 1, 64)"
std::string Cta::place(int32_t pc) const {
  const SourceLine& at = job_.program.lines[size_t(pc)];
  const std::string text = sanitize(at.text, 60);
  if (at.source_line > 0) return fmt::format("line {} ({})", at.source_line, text);
  return fmt::format("ptx line {} ({})", at.line, text);
}

std::string Cta::state_of(const Warp& w) const {
  if (w.state == Warp::State::done) return "ended";
  if (w.state == Warp::State::running) return "at " + place(w.current.pc);
  const Barrier& b = barriers_[w.barrier];
  return fmt::format(
      "at barrier {}, {}, where {} of {} threads are", w.barrier, place(w.barrier_pc), b.arrived,
      b.expected ? std::to_string(b.expected) : fmt::format("all {}", block_threads_));
}

bool Cta::deadlock() {
  std::string who;
  for (size_t i = 0; i < warps_.size();) {  // neighbours in the same state are told together
    const std::string state = state_of(warps_[i]);
    size_t end = i + 1;
    while (end < warps_.size() && state_of(warps_[end]) == state) ++end;
    if (who.size() < 400) {
      const bool one = end == i + 1;
      who += fmt::format("; warp{} {}", one ? "" : "s",
                         one ? std::to_string(i) : fmt::format("{}-{}", i, end - 1));
      who += " " + state;
    }
    i = end;
  }
  for (Warp& w : warps_) {
    if (w.state != Warp::State::at_barrier) continue;
    w.current.pc = w.barrier_pc;
    report(w, "deadlock", "no warp can go on" + who, std::countr_zero(w.alive));
    break;
  }
  return true;
}

void Cta::fail_spinning(int64_t resident) {
  for (Warp& w : warps_) {
    if (w.state != Warp::State::running) continue;
    report(w, "deadlock",
           fmt::format("all {} CTAs that are resident poll memory and none writes it; warp {} "
                       "polls {:#x} at {}",
                       resident, w.index, w.spin_address, place(w.current.pc)),
           std::countr_zero(w.alive));
    return;
  }
}

bool Cta::report(Warp& w, const char* kind, std::string message, int lane) {
  const SourceLine& line = job_.program.lines[size_t(w.current.pc)];
  status_ = LaunchStatus::finding;
  finding_.kind = kind;
  finding_.message = std::move(message);
  finding_.instruction = sanitize(line.text, 200);
  finding_.ptx_line = line.line, finding_.source_line = line.source_line;
  finding_.cta = at_;
  finding_.thread = w.index * 32 + lane;
  return false;
}

}  // namespace cutegen::ptx
