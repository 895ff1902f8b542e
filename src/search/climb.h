// SPDX-License-Identifier: Apache-2.0
// The strategy `cutegen` with recipes (the model `builtin`): a hill climb from one kernel.
//
// Contract: first asks for repairs, up to a limit, until a program is correct. Then it changes the
// incumbent one step at a time and accepts a change that gains at least min_gain. It stops at the
// floor, at the reachable bound if the task is memory-bound, on a plateau, when the budget is used,
// or when the proposer has nothing left. If a candidate's evaluation is aborted again and again,
// the strategy ignores the candidate: it counts neither towards the plateau nor as a repair.
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
  Incumbent judged_;    // the candidate of the last verdict
  bool counts_ = true;  // whether a rejection now counts as a miss
  int misses_ = 0;      // misses since the last gain, or since the start if nothing was correct yet
};

}  // namespace cutegen::search
