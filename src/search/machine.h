// SPDX-License-Identifier: Apache-2.0
// Machine: what all strategies share: one action open at a time, retries of aborted evaluations,
// the budget's evaluations and minutes.
//
// Contract: apply() matches an event with the open action and calls the hook; every hook opens the
// next action, except while a decision's own event is still to come. An evaluation that our
// machinery aborted is asked for again, `retries` times; then the candidate is set aside. What a
// tool has evaluated while a question was open counts for the budget, and is known when it is the
// answer.
//
// Example: class Mine final : public Machine { void on_task() override { ask("coder", {}); } ... };
#pragma once

#include <map>

#include "search/strategy.h"

namespace cutegen {

class Machine : public Strategy {
 public:
  void apply(const Event& event) final;
  [[nodiscard]] std::vector<Action> next() final;

 protected:
  explicit Machine(const StrategySettings& settings) : settings_(settings) {}
  struct Proposed {
    std::string outcome;  // "proposed", "advised", "unusable"; anything else ends the run
    std::string reason;
    std::string id;                      // of the proposed candidate
    std::optional<Candidate> candidate;  // where the event holds a readable one
    std::vector<std::string> advice;
  };

  virtual void on_task(const Json& data) = 0;
  virtual void on_answer(const Proposed& answer) = 0;
  virtual void on_verdict(const std::string& candidate, const Verdict& verdict) = 0;
  virtual void on_set_aside(const std::string& candidate, const std::string& why) = 0;
  virtual void on_accepted(const std::string& candidate) = 0;
  virtual void on_rejected(const std::string& candidate) = 0;

  void open(Action action);
  // The evaluation of what was proposed; its verdict comes at once if a tool had it evaluated.
  void judge(const Evaluate& wanted);
  // Why the run has to end: its budget, nothing left to win on `best_ns`, or a failing evaluator.
  [[nodiscard]] std::optional<std::string> end_of_run(std::optional<double> best_ns) const;

  StrategySettings settings_;
  // What the task can be brought to. The roofline of the operations as written is an estimate that
  // algebra passes: it ends no run.
  [[nodiscard]] std::optional<std::string> nothing_to_win(double best_ns) const;
  void put_bounds(Json& context) const;

  double floor_ns_ = 0, reachable_ns_ = 0, roofline_ns_ = 0;
  bool memory_bound_ = false;
  int64_t evaluations_ = 0;
  int set_aside_ = 0;  // candidates in a row that could not be judged
  Feedback feedback_;  // of the last verdict

 private:
  template <class A>
  [[nodiscard]] bool awaits(const Event& event) const;
  void answered(const Json& data);
  void evaluated(const Json& data);
  void draft_evaluated(const Json& data);
  void aborted(const Evaluate& asked, const std::string& why);

  std::optional<Action> open_;  // the one action not yet completed by an event
  bool issued_ = false;
  int64_t clock_ms_ = 0;
  int attempts_ = 0;                       // of the evaluation in hand
  std::map<std::string, Verdict> drafts_;  // that tools had evaluated for the open question
};

// The text of a field, or nothing.
[[nodiscard]] std::string text_at(const Json& data, const char* key);
// "12.3% faster (1.2 ms -> 1.0 ms)"; "3.0% slower than the best", "only 0.20% faster than the
// best".
[[nodiscard]] std::string gain_text(double before, double after);
[[nodiscard]] std::string loss_text(double best, double time);
// "failed: 7 of 64 values are wrong"
[[nodiscard]] std::string fault_text(const Verdict& verdict);
// Whether `after` beats `before` by the least gain and, where intervals are known, beyond them.
[[nodiscard]] bool is_gain(const Timing& before, const Timing& after, double min_gain);
// The same over the incumbent: by runs that were timed in turn with it, where there are any.
[[nodiscard]] bool beats_incumbent(const Timing& incumbent, const Timing& after, double min_gain);

// The incumbent's time beside `now`: of the runs in turn, where there are any, as one decides by.
[[nodiscard]] double incumbent_ns(const Timing& incumbent, const Timing& now);

}  // namespace cutegen
