// SPDX-License-Identifier: Apache-2.0
// The strategy `cutegen`, first form: one evolving kernel.
//
// Contract: correct first (a wrong first answer is repaired by asking again, up to a limit); then
// one change at a time to the incumbent, accepted when it gains at least min_gain; stops at the
// floor, on a plateau, at the end of the budget, or when the proposer has nothing left. One action
// is open at a time. An aborted evaluation is retried; if it stays aborted the candidate is set
// aside and counts neither for the plateau nor for the repairs.
//
// Example: see strategy.h; make_strategy("cutegen", settings).
#pragma once

#include "search/strategy.h"

namespace cutegen {

class CutegenStrategy final : public Strategy {
 public:
  explicit CutegenStrategy(const StrategySettings& settings) : settings_(settings) {}
  void apply(const Event& event) override;
  [[nodiscard]] std::vector<Action> next() override;

 private:
  struct Incumbent {
    std::string id;
    std::optional<double> time_ns;
  };
  void open(Action action);
  template <class A>
  [[nodiscard]] bool awaits(const Event& event) const;
  void on_answer(const Json& data);
  void on_verdict(const Json& data);
  void on_correct(const std::string& candidate);
  void on_aborted(const Evaluate& asked, const std::string& why);
  void on_accepted();
  void on_rejected();
  void decide();
  [[nodiscard]] std::optional<std::string> reason_to_stop() const;
  [[nodiscard]] std::string best() const { return incumbent_ ? incumbent_->id : std::string(); }
  [[nodiscard]] Json context() const;

  StrategySettings settings_;
  std::optional<Action> open_;  // the one action not yet completed by an event
  bool issued_ = false;
  double floor_ns_ = 0;
  int64_t clock_ms_ = 0, evaluations_ = 0;
  std::optional<Incumbent> incumbent_;
  Incumbent judged_;    // the candidate of the last verdict
  Feedback feedback_;   // of the last verdict
  bool counts_ = true;  // whether the rejection in hand counts as a miss
  int misses_ = 0;      // in a row: since the last gain, or all while nothing is correct
  int attempts_ = 0;    // of the evaluation in hand
  int set_aside_ = 0;   // candidates in a row that could not be judged
};

}  // namespace cutegen
