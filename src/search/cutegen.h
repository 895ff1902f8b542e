// SPDX-License-Identifier: Apache-2.0
// The strategy `cutegen` with a model: tries several short lines of work, then continues the best.
//
// Contract: a planner names one approach for each line. A line starts with a first program, from
// the coder or a recipe, and repairs it until it is correct. Then the line changes its own best
// program by one idea at a time: first the structure, then details. A line ends when its share of
// the evaluations is used, when several changes in a row gain nothing, or when it cannot make a
// program correct. The fastest line then continues until the budget, a plateau, the reachable bound
// or the floor. The run accepts only a program that beats the best of all lines. `profiling`
// decides when questions show profiles (search/profiling.h).
//
// Example: make_strategy("cutegen", {.agents = AgentSettings{.chains = 3}});
#pragma once

#include "search/machine.h"
#include "search/profiling.h"

namespace cutegen::search {

class CutegenStrategy final : public Machine {
 public:
  explicit CutegenStrategy(const StrategySettings& settings)
      : Machine(settings), agents_(*settings.agents) {}

 private:
  struct Kept {
    std::string id;
    std::optional<Timing> timing;
    Structure structure;
    bool profiled = false;  // its verdict has a profile
  };
  struct Line {
    std::string approach;
    std::optional<Kept> best;
    Profiling profiling;
    int64_t evaluations = 0;
    int misses = 0;    // steps in a row without gain
    int fixes = 0;     // repairs in a row of the present candidate
    int rewrites = 0;  // first programs given up as incorrect
    bool dead = false;
  };
  enum class Wanted { plan, first, improve, fix, diagnosis };

  void on_task(const Json& data) override;
  void on_answer(const Proposed& answer) override;
  void on_verdict(const std::string& candidate, const Verdict& verdict) override;
  void on_set_aside(const std::string& candidate, const std::string& why) override;
  void on_accepted(const std::string&) override { decide(); }
  void on_rejected(const std::string&) override { after_rejection(); }

  void begin_lines(const std::vector<std::string>& approaches);
  void charge_line();
  void on_unusable(const std::string& reason);
  void on_profiled(const Verdict& verdict);
  void on_correct(const std::string& candidate, const Verdict& verdict);
  void after_rejection();
  void give_up_candidate();
  void decide();
  bool next_line();
  void ask_for(Wanted wanted);
  void evaluate(const std::string& candidate);
  Json context(Wanted wanted) const;
  bool line_is_over() const;
  std::optional<std::string> reason_to_stop() const;
  int64_t share() const;  // the evaluations of each line before the last phase
  std::string best() const { return best_ ? best_->id : std::string(); }
  std::optional<double> best_ns() const;
  Line& line() { return lines_[line_]; }
  const Line& line() const { return lines_[line_]; }

  AgentSettings agents_;
  std::string workload_;
  bool profile_is_free_ = false;
  std::vector<Line> lines_;
  size_t line_ = 0;
  bool last_phase_ = false;  // the best line continues alone
  std::optional<Kept> best_;
  Wanted wanted_ = Wanted::plan;
  std::optional<Candidate> proposed_;  // the present candidate
  std::string failing_, advice_;       // the candidate to repair, and the judge's advice on it
  std::string profiled_again_;         // the candidate under evaluation for its profile only
  int unusable_ = 0;                   // answers in a row
  int64_t charged_ = 0;                // evaluations already charged to a line
};

}  // namespace cutegen::search
