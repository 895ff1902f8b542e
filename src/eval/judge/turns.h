// SPDX-License-Identifier: Apache-2.0
// Turns: times a program and its baselines alternately, in one process and one mode.
//
// Contract: each round runs a short block of every participant, in random order. Rounds end when
// every ratio is known to `precise` (half its 95% interval), or when the rounds or the time are
// used up. If a baseline raises an error, later rounds run without it, and notes() says why. If the
// program itself cannot run, the rounds end.
//
// Example: Turns turns(ctx, runs, worker, TimeMode::cold, baselines, clocks);
//   CG_CHECK(turns.run(0.002)); use(turns.rounds());
#pragma once

#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "core/certificate.h"
#include "eval/rungs/paired_runs.h"

namespace cutegen::eval {

// The times of one mode. Element i of each vector is from round i.
struct Rounds {
  std::vector<double> own;
  std::map<std::string, std::vector<double>> others;
};
// Whether all ratios are known to `precise`.
bool precise_enough(const Rounds& rounds, double precise);

// The clocks of the GPU, as NVML reports them.
class Clocks {
 public:
  void note_sms(const std::map<std::string, double>& state);  // of one block
  void note_memory(const std::map<std::string, double>& state);
  void write(Certificate& out) const;

 private:
  std::vector<double> sm_hz_;  // a median per block
  std::optional<double> least_sm_hz_, least_memory_hz_;
};

class Turns {
 public:
  static constexpr int kBlock = 5;  // runs of one participant in a round

  Turns(const Context& ctx, PairedRuns& runs, torch::TorchWorker& worker, TimeMode mode,
        std::vector<torch::BaselineWanted> baselines, Clocks& clocks)
      : ctx_(ctx),
        runs_(runs),
        worker_(worker),
        mode_(mode),
        baselines_(std::move(baselines)),
        clocks_(clocks) {}

  Result<void> run(double precise);
  const Rounds& rounds() const { return rounds_; }
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  Result<bool> round();
  // The median of a block, or nothing if the block did not run.
  Result<std::optional<double>> own_block();
  Result<std::optional<double>> block_of(const torch::BaselineWanted& baseline);

  const Context& ctx_;
  PairedRuns& runs_;
  torch::TorchWorker& worker_;
  TimeMode mode_;
  std::vector<torch::BaselineWanted> baselines_;
  Clocks& clocks_;
  Rounds rounds_;
  std::vector<std::string> notes_;
  std::mt19937_64 random_{std::random_device()()};
};

}  // namespace cutegen::eval
