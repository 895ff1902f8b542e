// SPDX-License-Identifier: Apache-2.0
#include "eval/judge/turns.h"

#include <fmt/format.h>

#include <algorithm>

#include "eval/diagnosis/statistics.h"

namespace cutegen::eval {
namespace {

constexpr size_t kLeastRounds = 8, kMostRounds = 24;
constexpr auto kMostTime = std::chrono::seconds(8);  // for one mode in one process

void note_least(const std::map<std::string, double>& state, const std::string& key,
                std::optional<double>& least) {
  if (auto at = state.find(key); at != state.end() && at->second > 0)
    least = std::min(least.value_or(at->second), at->second);
}

}  // namespace

bool precise_enough(const Rounds& rounds, double precise) {
  return std::all_of(rounds.others.begin(), rounds.others.end(), [&](const auto& other) {
    if (other.second.size() != rounds.own.size()) return false;
    const Median m = speedup_of(rounds.own, other.second);
    return (m.high - m.low) / 2 <= precise * m.value;
  });
}

void Clocks::note_sms(const std::map<std::string, double>& state) {
  if (auto at = state.find("sm_clock_hz"); at != state.end() && at->second > 0)
    sm_hz_.push_back(at->second);
  note_least(state, "sm_clock_least_hz", least_sm_hz_);
}

void Clocks::note_memory(const std::map<std::string, double>& state) {
  note_least(state, "memory_clock_hz", least_memory_hz_);
}

void Clocks::write(Certificate& out) const {
  if (!sm_hz_.empty()) out.sm_clock_hz = median_of(sm_hz_).value;
  out.sm_clock_least_hz = least_sm_hz_;
  out.memory_clock_hz = least_memory_hz_;
}

Result<void> Turns::run(double precise) {
  const auto start = Clock::now();
  while (rounds_.own.size() < kMostRounds && Clock::now() - start < kMostTime) {
    CG_CHECK(ctx_.check("certifying"));
    if (rounds_.own.size() >= kLeastRounds && precise_enough(rounds_, precise)) break;
    CG_TRY(bool going, round());
    if (!going) break;
  }
  return {};
}

// Times the program and each baseline once, in random order. Returns false if the program cannot
// run in this mode.
Result<bool> Turns::round() {
  std::vector<size_t> order(baselines_.size() + 1);
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::shuffle(order.begin(), order.end(), random_);
  std::map<std::string, double> medians;
  double own = 0;
  for (size_t who : order) {
    const bool program = who == baselines_.size();
    CG_TRY(std::optional<double> median, program ? own_block() : block_of(baselines_[who]));
    if (program && !median) return false;
    if (program)
      own = *median;
    else if (median)
      medians[baselines_[who].name()] = *median;
  }
  std::erase_if(baselines_, [&](auto& b) { return !medians.contains(b.name()); });
  std::erase_if(rounds_.others, [&](auto& o) { return !medians.contains(o.first); });
  rounds_.own.push_back(own);
  for (const auto& [name, ns] : medians) rounds_.others[name].push_back(ns);
  return true;
}

Result<std::optional<double>> Turns::own_block() {
  auto end = runs_.block(ctx_, mode_, kBlock);
  if (!end && ctx_.done()) return fail(end.error());
  if (!end || *end) {
    notes_.push_back(
        fmt::format("{}: {}", to_string(mode_), !end ? end.error().message : (*end)->end.headline));
    return std::optional<double>();
  }
  clocks_.note_sms(runs_.last().state);
  return std::optional<double>(median_of(runs_.last().own).value);
}

Result<std::optional<double>> Turns::block_of(const torch::BaselineWanted& baseline) {
  auto times = worker_.time_baseline(ctx_, baseline.kind, mode_, kBlock);
  if (!times && ctx_.done()) return fail(times.error());
  if (times) return std::optional<double>(median_of(*times).value);
  notes_.push_back(
      fmt::format("{}, {}: {}", baseline.name(), to_string(mode_), times.error().message));
  return std::optional<double>();
}

}  // namespace cutegen::eval
