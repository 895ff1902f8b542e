// SPDX-License-Identifier: Apache-2.0
// Turns: times a program and its baselines alternately, in one timing mode, with one runner and one
// torch worker.
//
// Contract: each round times a short block of runs of the program and of each baseline, in random
// order. run() returns when half the 95% interval of every ratio is at most `precise`, or when a
// limit of rounds or time is reached. If a baseline raises an error, later rounds omit it, and
// notes() gives the reason. If the program itself cannot run, run() ends.
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

// The times in one timing mode. Element i of each vector is the time in round i.
struct Rounds {
  std::vector<double> own;
  std::map<std::string, std::vector<double>> others;
};
// True if half the 95% interval of every ratio is at most `precise`.
bool precise_enough(const Rounds& rounds, double precise);

// Collects the GPU's clocks during timed runs, as NVML reports them.
class Clocks {
 public:
  // Adds the clocks in `state`, the GPU's state after one block of runs.
  void note_sms(const std::map<std::string, double>& state);
  void note_memory(const std::map<std::string, double>& state);
  void write(Certificate& out) const;

 private:
  std::vector<double> sm_hz_;  // the median SM clock of each block
  std::optional<double> least_sm_hz_, least_memory_hz_;
};

class Turns {
 public:
  static constexpr int kBlock = 5;  // number of runs of the program, or of a baseline, in a round

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
  // Runs a block and returns its median time, or nullopt if the block did not run.
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
