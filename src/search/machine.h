// SPDX-License-Identifier: Apache-2.0
// Machine: the common base of all strategies. It keeps one action open at a time, retries aborted
// evaluations, and watches the budget's evaluations and minutes.
//
// Contract: apply() matches an event with the open action and calls the hook. Every hook opens the
// next action. (After Accept or Reject, on_accepted() or on_rejected() does so.) If the evaluator
// aborts an evaluation, Machine retries it `retries` times and then ignores the candidate. If the
// task is a CUDA kernel, Machine evaluates and accepts this kernel first; a kernel that is not
// correct ends the run. A strategy may first ask for tests, which every evaluation then uses. A
// draft that a tool evaluated while a question was open counts towards the budget. If the answer is
// that draft, its verdict is already known.
//
// Example:
//   class Mine final : public Machine {
//     void on_task(const Json&) override { open(Ask{Role::coder, {}}); } ...
#pragma once

#include <map>

#include "search/source.h"
#include "search/strategy.h"

namespace cutegen::search {

class Machine : public Strategy {
 public:
  void apply(const Event& event) final;
  std::vector<Action> next() final;

 protected:
  explicit Machine(const StrategySettings& settings) : settings_(settings) {}
  struct Proposed {
    Outcome outcome = Outcome::nothing;  // `nothing` ends the run
    std::string reason;
    std::string id;                      // id of the proposed candidate
    std::optional<Candidate> candidate;  // empty if the event has no readable candidate
    std::vector<std::string> advice;
    std::vector<TestCase> tests;
  };

  // True if the strategy asks a question of its own before the first step; it then calls begin().
  virtual bool asks_before(const Json& /*task*/) { return false; }
  void begin(std::vector<TestCase> tests);

  virtual void on_task(const Json& data) = 0;
  // Replaces on_task if the task is a CUDA kernel; the kernel is then the incumbent.
  virtual void on_source(const Json& task, const Candidate& source, const Verdict& verdict) = 0;
  virtual void on_answer(const Proposed& answer) = 0;
  virtual void on_verdict(const std::string& candidate, const Verdict& verdict) = 0;
  virtual void on_set_aside(const std::string& candidate, const std::string& why) = 0;
  virtual void on_accepted(const std::string& candidate) = 0;
  virtual void on_rejected(const std::string& candidate) = 0;

  void open(Action action);
  void judge(const Evaluate& wanted);  // uses the verdict of a tool if there is one
  // Why the run must end: the budget, nothing left to win over `best_ns`, or a failing evaluator.
  std::optional<std::string> end_of_run(std::optional<double> best_ns) const;

  StrategySettings settings_;
  // Why `best_ns` cannot be improved much. Ignores the roofline, because algebra can beat that
  // estimate for the operations as written.
  std::optional<std::string> nothing_to_win(double best_ns) const;
  // Why more candidates would not help: `ties` candidates in a row had about the same time, which
  // is close to the reachable bound.
  std::optional<std::string> only_ties(double best_ns, int ties) const;
  void put_bounds(Json& context) const;

  double floor_ns_ = 0, reachable_ns_ = 0, roofline_ns_ = 0;
  bool memory_bound_ = false;
  int64_t evaluations_ = 0;
  // How many candidates in a row have no verdict, because the evaluator aborted.
  int set_aside_ = 0;
  Feedback feedback_;            // feedback of the last verdict
  std::vector<TestCase> tests_;  // in use

 private:
  void go_on_from_source();
  template <class A>
  bool awaits(const Event& event) const;
  void answered(const Json& data);
  void evaluated(const Json& data);
  void draft_evaluated(const Json& data);
  void aborted(const Evaluate& asked, const std::string& why);

  Json task_;                           // data of the event `task`, needed until the first step
  std::optional<SourceKernel> source_;  // set until the strategy takes over
  std::optional<Action> open_;          // the action that no event has completed yet
  bool issued_ = false;
  int64_t clock_ms_ = 0;
  int attempts_ = 0;                       // attempts of the current evaluation
  std::map<std::string, Verdict> drafts_;  // drafts that tools evaluated for the open question
};

// Whether a profile costs nothing. The simulator counts while it times; on a GPU, a profile is a
// separate run. `task` is the data of the event `task`.
bool profile_is_free(const Json& task);
// The text of a field, or "".
std::string text_at(const Json& data, const char* key);
// "12.3% faster (1.2 ms -> 1.0 ms)"; "3.0% slower than the best", "only 0.20% faster than the
// best", "a tie: the same time as the best".
std::string gain_text(double before, double after);
std::string loss_text(double best, double time);
// Whether two times differ by at most 1%.
bool is_tie(double best, double time);
// "failed: 7 of 64 values are wrong"
std::string fault_text(const Verdict& verdict);
// Whether `after` beats `before` by at least min_gain. If both have intervals, these must not
// overlap.
bool is_gain(const Timing& before, const Timing& after, double min_gain);
// The same for the incumbent. Alternating runs decide, if there are any.
bool beats_incumbent(const Timing& incumbent, const Timing& after, double min_gain);

// The incumbent's time to compare with `now`: from alternating runs, if there are any.
double incumbent_ns(const Timing& incumbent, const Timing& now);

inline constexpr int kMostUnusable = 3;  // unusable answers in a row that end a run

}  // namespace cutegen::search
