// SPDX-License-Identifier: Apache-2.0
// Machine: the base class of all strategies. A Machine has one open action at a time (a question,
// an evaluation, ...), retries aborted evaluations, and ends the run when its evaluations or
// minutes are used up.
//
// Contract: if an event completes the open action, apply() calls the matching virtual function
// (on_answer(), on_verdict(), ...), which must open the next action. If the evaluator aborts an
// evaluation, Machine retries it `retries` times and then calls on_set_aside(). If the task is a
// CUDA kernel, Machine evaluates and accepts this kernel first, and ends the run if the kernel is
// not correct. A strategy may ask for tests before the first program; every evaluation then uses
// these tests. While a question is open, the model may evaluate drafts with a tool, and these
// evaluations count towards the budget. If the model proposes a draft that it has already
// evaluated, Machine uses the draft's verdict.
//
// Example:
//   class Mine final : public Machine {
//     void on_task(const Json&) override { open(Ask{Role::coder, {}}); } ...
#pragma once

#include <map>

#include "search/known_bounds.h"
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
    Outcome outcome = Outcome::nothing;  // the outcome `nothing` ends the run
    std::string reason;
    std::string id;                      // id of the proposed candidate
    std::optional<Candidate> candidate;  // empty if the event contains no valid candidate
    std::vector<std::string> advice;
    std::vector<TestCase> tests;
  };

  // Returns whether the strategy asks for tests first. It then calls begin() when it has the tests.
  virtual bool asks_before(const Json& /*task*/) { return false; }
  void begin(std::vector<TestCase> tests);

  virtual void on_task(const Json& data) = 0;
  // Replaces on_task() if the task is a CUDA kernel; this kernel is then the incumbent.
  virtual void on_source(const Json& task, const Candidate& source, const Verdict& verdict) = 0;
  virtual void on_answer(const Proposed& answer) = 0;
  virtual void on_verdict(const std::string& candidate, const Verdict& verdict) = 0;
  virtual void on_set_aside(const std::string& candidate, const std::string& why) = 0;
  virtual void on_accepted(const std::string& candidate) = 0;
  virtual void on_rejected(const std::string& candidate) = 0;

  void open(Action action);
  // Opens an evaluation, or uses the verdict of a tool that has already evaluated the candidate.
  void judge(const Evaluate& wanted);
  // Returns why the run must end: the budget is used up, `best_ns` cannot improve much, or the
  // evaluator keeps failing. The result is empty if the run may continue.
  std::optional<std::string> end_of_run(std::optional<double> best_ns) const;

  StrategySettings settings_;
  // Returns why more candidates are likely wasted effort, if `plateau` candidates in a row had
  // about the best time, and this time is at most 15% above the reachable bound of a memory-bound
  // task.
  std::optional<std::string> only_ties(double best_ns) const;

  KnownBounds bounds_;
  int64_t evaluations_ = 0;
  // Numbers of consecutive candidates: aborted candidates, and candidates that tie with the best.
  int set_aside_ = 0, ties_ = 0;
  Feedback feedback_;            // feedback of the last verdict
  std::vector<TestCase> tests_;  // the proposed tests that evaluations use

 private:
  void go_on_from_source();
  template <class A>
  bool awaits(const Event& event) const;
  void answered(const Json& data);
  void evaluated(const Json& data);
  void draft_evaluated(const Json& data);
  void aborted(const Evaluate& asked, const std::string& why);

  Json task_;                           // the data of the event `task`, until begin() uses it
  std::optional<SourceKernel> source_;  // set while Machine evaluates the user's kernel
  std::optional<Action> open_;          // the action that no event has completed
  bool issued_ = false;
  int64_t clock_ms_ = 0;
  int attempts_ = 0;                       // number of attempts of the current evaluation
  std::map<std::string, Verdict> drafts_;  // verdicts on drafts for the open question
};

// Returns whether a profile takes no extra time. The simulator counts while it times a program, but
// on a GPU, a profile needs a separate run. `task` is the data of the event `task`.
bool profile_is_free(const Json& task);
// Returns the text of a field, or "" if the field is missing or not a text.
std::string text_at(const Json& data, const char* key);
// gain_text() returns a text such as "12.3% faster (1.2 ms -> 1.0 ms)", and loss_text() returns
// "3.0% slower than the best", "only 0.20% faster than the best" or "a tie: the same time as the
// best".
std::string gain_text(double before, double after);
std::string loss_text(double best, double time);
// Returns whether two times differ by at most 1%.
bool is_tie(double best, double time);
// Returns the number of ties with the best time in a row, after a correct candidate with time
// `now`.
int ties_after(int ties, const std::optional<Timing>& best, const std::optional<Timing>& now);
// Returns a text such as "failed: 7 of 64 values are wrong".
std::string fault_text(const Verdict& verdict);
// Returns whether `after` is faster than `before` by at least the share min_gain. If the confidence
// intervals of the two times overlap, is_gain() returns false.
bool is_gain(const Timing& before, const Timing& after, double min_gain);
// Returns whether a candidate is faster than the incumbent by at least min_gain. If the evaluator
// timed the two programs alternately, the times of these runs decide, otherwise is_gain() decides.
bool beats_incumbent(const Timing& incumbent, const Timing& after, double min_gain);

// Returns the incumbent's time for a comparison with `now`. If the evaluator timed the incumbent
// and `now` alternately, the result is the incumbent's time in these runs.
double incumbent_ns(const Timing& incumbent, const Timing& now);

inline constexpr int kMostUnusable = 3;  // number of consecutive unusable answers that ends a run

}  // namespace cutegen::search
