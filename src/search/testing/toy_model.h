// SPDX-License-Identifier: Apache-2.0
// ToyModel: replaces the model and the evaluator in tests that compare strategies. ToyModel defines
// the time of every program, so the test knows the optimum.
//
// Contract: a toy program has one level for each of six kinds of change. Each level has a gain,
// which may be zero (a plateau) or negative, and some pairs of levels make a program slower. The
// levels of a toy program determine its time. Some levels are dead ends: every change of a program
// with such a level fails. Changes of programs without a dead end fail with a fixed probability. A
// failed toy program is either almost correct or far from correct, and repairs of almost correct
// programs succeed more often. The same seed gives the same times, and the same questions in the
// same order get the same answers.
//
// Example: ToyModel toy(7); ToyRun run = toy_run(toy, "stark", settings);
#pragma once

#include <array>
#include <map>

#include "search/draws.h"
#include "search/families.h"
#include "search/strategy.h"

namespace cutegen::search {

class ToyModel {
 public:
  explicit ToyModel(uint64_t seed);
  Json answer(const Ask& ask);  // returns the data of the event `answered`
  Verdict judge(const std::string& candidate) const;
  double optimum_ns() const;

 private:
  static constexpr size_t kKinds = 6, kLevels = 5;
  using Levels = std::array<size_t, kKinds>;
  struct Program {
    Levels levels{};
    bool failed = false;
    double nearness = 0;
  };
  double time_ns(const Levels& levels) const;
  bool has_dead_end(const Levels& levels) const;
  Program first();
  Program change(const Program& parent, size_t kind);
  Program repair(const Program& failed);
  Program maybe_fail(Program program, double probability);
  size_t kind_of(const Ask& ask);

  Draws draws_;
  std::array<std::array<double, kLevels>, kKinds> gain_{};
  std::array<std::array<bool, kLevels>, kKinds> dead_end_{};
  std::array<std::array<double, kKinds>, kKinds> harm_{};
  std::map<std::string, Program> programs_;
};

struct ToyRun {
  std::vector<Event> events;
  // The best time after each evaluation; infinite while no program is correct.
  std::vector<double> best;
  std::string end;  // why the run ended
  // Returns (best time after n evaluations - optimum) / optimum.
  double regret(size_t n, double optimum_ns) const;
};

// Runs a strategy against the toy model until the strategy ends the run.
ToyRun toy_run(ToyModel toy, const std::string& strategy, const StrategySettings& settings);

}  // namespace cutegen::search
