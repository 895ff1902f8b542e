// SPDX-License-Identifier: Apache-2.0
// Implements the strategy `cutegen` for the model `builtin`, which proposes recipes (expert kernels
// with parameters). The strategy is hill climbing from one program.
//
// Contract: until a program is correct, the strategy asks for repairs, up to a limit. After a
// correct program, the strategy asks for one change of the incumbent at a time, and accepts a
// program that saves at least the share min_gain of the time. The strategy stops when the incumbent
// reaches the floor (a lower bound of the time) or, if the task is memory-bound, the reachable
// bound (the time to copy the least bytes). The strategy also stops on a plateau (several changes
// without a gain), when the budget is used up, or when the proposer has no more proposals. If the
// evaluator aborts the evaluation of a candidate and of all its retries, the strategy rejects the
// candidate, but does not count it towards the plateau or the repairs.
//
// Example:
//   make_strategy(StrategyKind::cutegen, settings);  // more in strategy.h
#pragma once

#include "search/machine.h"

namespace cutegen::search {

class ClimbStrategy final : public Machine {
 public:
  explicit ClimbStrategy(const StrategySettings& settings) : Machine(settings) {}

 private:
  struct Incumbent {
    std::string id;
    std::optional<Timing> timing;
  };
  void on_task(const Json&) override { decide(); }
  void on_source(const Json& task, const Candidate& source, const Verdict& verdict) override;
  void on_answer(const Proposed& answer) override;
  void on_verdict(const std::string& candidate, const Verdict& verdict) override;
  void on_set_aside(const std::string& candidate, const std::string& why) override;
  void on_accepted(const std::string& candidate) override;
  void on_rejected(const std::string& candidate) override;
  void on_correct(const std::string& candidate);
  void decide();
  std::optional<std::string> reason_to_stop() const;
  std::optional<double> best_ns() const;
  std::string best() const { return incumbent_ ? incumbent_->id : std::string(); }
  Json context() const;

  std::optional<Incumbent> incumbent_;
  Incumbent judged_;    // the candidate that the last verdict is about
  bool counts_ = true;  // whether the next rejection increases misses_
  int misses_ = 0;      // number of rejections since the last accepted program, or since the start
};

}  // namespace cutegen::search
