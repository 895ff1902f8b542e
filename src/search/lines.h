// SPDX-License-Identifier: Apache-2.0
// Lines: the lines of work of the strategy `cutegen`, each with its best program and its misses.
//
// Contract: one line works at a time: now(). A line ends when it cannot make a program correct,
// when it has used its share of the evaluations, or when several steps in a row gain nothing. In
// the last phase, the line with the run's best program continues, and it ends only if it cannot
// make a program correct.
//
// Example: lines.begin(settings, approaches, workload); lines.now().take(kept, false, 0.01);
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "search/profiling.h"

namespace cutegen::search {

struct Kept {
  std::string id;
  std::optional<Timing> timing;
  Structure structure;
  bool profiled = false;  // whether its evaluation included a profile
};

struct Line {
  std::string approach;
  Profiling profiling;
  std::optional<Kept> best = {};
  int64_t evaluations = 0;
  int misses = 0;    // steps in a row without gain
  int fixes = 0;     // repairs in a row of the current candidate
  int rewrites = 0;  // number of first programs that the line gave up because they stayed incorrect

  // Takes a correct candidate and returns whether it becomes the line's best program. `of_run`: the
  // line's best is the incumbent, so the candidate was timed against it.
  bool take(const Kept& now, bool of_run, double min_gain);
  void take_failure();
  // Counts an unusable answer.
  void take_unusable(bool first_program);
  // Stops repairing, and returns to the line's best program or to a new first program.
  void give_up_candidate();
  bool is_hopeless() const;
  Stage stage() const;  // the stage of the next improvement
};

class Lines {
 public:
  // Several lines share half of the budget, unless the settings give a number of evaluations per
  // line.
  void begin(const StrategySettings& settings, const std::vector<std::string>& approaches,
             const std::string& workload);
  bool have_begun() const { return !lines_.empty(); }
  Line& now() { return lines_[at_]; }
  const Line& now() const { return lines_[at_]; }
  size_t number() const { return at_ + 1; }
  bool in_last_phase() const { return last_phase_; }
  bool is_over() const;  // whether the current line has ended
  // Moves to the next line or, for the last phase, to the line with the best program. False if
  // there is no such line.
  bool next(const std::optional<Kept>& best);

 private:
  std::vector<Line> lines_;
  size_t at_ = 0;
  int64_t share_ = 0;  // the evaluations of each line before the last phase
  bool last_phase_ = false;
};

}  // namespace cutegen::search
