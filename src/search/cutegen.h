// SPDX-License-Identifier: Apache-2.0
// Implements the strategy `cutegen` for a language model: it runs several short searches, called
// lines, one after another, and then continues the best line.
//
// Contract: a planner names one approach for each line. A line starts with a program from the coder
// or from a recipe, and asks for repairs until the program is correct. The coder then changes the
// line's best program, one idea at a time: first its structure, then details. A line ends when it
// has used its share of the evaluations, when several changes in a row gain nothing, or when
// repairs cannot make a program correct. After all lines, the line with the fastest program
// continues until the budget is used up, several changes in a row gain nothing, or the program is
// close to the fastest possible time (the floor or the reachable bound, docs/bounds.md). The
// strategy accepts a program only if it is faster than the programs of all lines. The setting
// `profiling` decides when questions show profiles (search/profiling.h).
//
// Example: make_strategy(StrategyKind::cutegen, {.agents = AgentSettings{.chains = 3}});
#pragma once

#include "search/lines.h"
#include "search/machine.h"

namespace cutegen::search {

// Says what a question asks the model for.
enum class Wanted { plan, first, improve, fix, diagnosis };

struct TaskFacts {
  std::string workload;
  bool profile_is_free = false;
};

class CutegenStrategy final : public Machine {
 public:
  explicit CutegenStrategy(const StrategySettings& settings)
      : Machine(settings), agents_(*settings.agents) {}

 private:
  void on_task(const Json& data) override;
  void on_source(const Json& task, const Candidate& source, const Verdict& verdict) override;
  void on_answer(const Proposed& answer) override;
  void on_verdict(const std::string& candidate, const Verdict& verdict) override;
  void on_set_aside(const std::string& candidate, const std::string& why) override;
  void on_accepted(const std::string&) override { decide(); }
  void on_rejected(const std::string&) override { after_rejection(); }

  void begin_lines(const std::vector<std::string>& approaches);
  void charge_line();
  void on_unusable(const std::string& reason);
  void on_profiled();
  void on_correct(const std::string& candidate, const Verdict& verdict);
  void on_best_of_line(const Kept& now);
  void after_rejection();
  void give_up_candidate();
  void decide();
  void ask_for(Wanted wanted);
  void evaluate(const std::string& candidate);
  Json context(Wanted wanted) const;
  std::optional<std::string> reason_to_stop() const;
  std::string best() const { return best_ ? best_->id : std::string(); }
  std::optional<double> best_ns() const;
  Line& line() { return lines_.now(); }
  const Line& line() const { return lines_.now(); }

  AgentSettings agents_;
  TaskFacts task_;
  bool profile_asked_ = false;  // whether the current candidate's profile was requested
  Lines lines_;
  std::optional<Kept> best_;
  Wanted wanted_ = Wanted::plan;
  std::optional<Candidate> proposed_;  // the current candidate
  std::string failing_, advice_;       // the candidate to repair, and the judge's advice
  // The candidate that the evaluator judges again, only to profile it.
  std::string profiled_again_;
  int unusable_ = 0;     // number of consecutive unusable answers
  int64_t charged_ = 0;  // number of evaluations that already count for a line
};

}  // namespace cutegen::search
