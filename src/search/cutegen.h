// SPDX-License-Identifier: Apache-2.0
// The strategy `cutegen` with a model: several short lines of work, then the best of them.
//
// Contract: a planner names one approach for each line. A line begins with a first program
// (written, or a recipe's), is repaired until it is correct, then changed one idea at a time,
// always from its own best: first its structure, then its details. A line ends when its share of
// the evaluations is used, when nothing helps any more, or when it cannot be made correct; then the
// fastest line goes on to the end of the budget, the plateau, the reachable bound or the floor.
// Only what beats the best of all lines is accepted for the run. Figures of the profile are shown
// as `profiling` says (search/profiling.h).
//
// Example: make_strategy("cutegen", {.agents = AgentSettings{.chains = 3}});
#pragma once

#include "search/machine.h"
#include "search/profiling.h"

namespace cutegen {

class CutegenStrategy final : public Machine {
 public:
  explicit CutegenStrategy(const StrategySettings& settings)
      : Machine(settings), agents_(*settings.agents) {}

 private:
  struct Kept {
    std::string id;
    std::optional<Timing> timing;
    Structure structure;
    bool profiled = false;  // its verdict holds a profile
  };
  struct Line {
    std::string approach;
    std::optional<Kept> best;
    Profiling profiling;
    int64_t evaluations = 0;
    int misses = 0;    // judged steps in a row without gain
    int fixes = 0;     // repairs in a row of the candidate in hand
    int rewrites = 0;  // beginnings that could not be made correct
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
  [[nodiscard]] Json context(Wanted wanted) const;
  [[nodiscard]] bool line_is_over() const;
  [[nodiscard]] std::optional<std::string> reason_to_stop() const;
  [[nodiscard]] int64_t share() const;  // of a line's evaluations while there are several
  [[nodiscard]] std::string best() const { return best_ ? best_->id : std::string(); }
  [[nodiscard]] std::optional<double> best_ns() const;
  Line& line() { return lines_[line_]; }
  [[nodiscard]] const Line& line() const { return lines_[line_]; }

  AgentSettings agents_;
  std::string workload_;
  bool profile_is_free_ = false;
  std::vector<Line> lines_;
  size_t line_ = 0;
  bool last_phase_ = false;  // the best line goes on alone
  std::optional<Kept> best_;
  Wanted wanted_ = Wanted::plan;
  std::optional<Candidate> proposed_;  // the candidate in hand
  std::string failing_, advice_;       // the candidate to be repaired, and a judge's word on it
  std::string profiled_again_;         // the candidate that is evaluated for its profile only
  int unusable_ = 0;                   // answers in a row
  int64_t charged_ = 0;                // evaluations that a line has answered for
};

}  // namespace cutegen
