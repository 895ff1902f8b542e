// SPDX-License-Identifier: Apache-2.0
// Lines: the state of the short searches (lines) that the strategy `cutegen` runs one after
// another, each from its own first program.
//
// Contract: one line is active at a time; Lines::now() returns it. If repairs do not make the first
// program of a line correct, the line begins again with another first program. A line ends when
// several first programs have stayed incorrect, when it has used its share of the evaluations, or
// when several changes in a row gained nothing. After all lines, the last phase begins, in which
// the line with the run's best program continues. If there is only one line, the last phase begins
// at once, and ends if all first programs of the line stayed incorrect. A line with a correct
// program never ends in the last phase.
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
  bool profiled = false;  // whether the evaluator has profiled the program
};

struct Line {
  std::string approach;
  Profiling profiling;
  std::optional<Kept> best = {};
  int64_t evaluations = 0;
  int misses = 0;    // number of consecutive changes without a gain
  int fixes = 0;     // number of repairs of the current candidate
  int rewrites = 0;  // how often the line began again with another first program

  // Records a correct candidate, and returns whether it becomes the line's best program. `of_run`
  // is true if the line's best program is the incumbent, which the evaluator times alternately with
  // each candidate.
  bool take(const Kept& now, bool of_run, double min_gain);
  void take_failure();
  // Records an answer of the model that the strategy cannot use.
  void take_unusable(bool first_program);
  // Stops the repairs of the current candidate. The line continues from its best program or, if no
  // program was correct, with a new first program.
  void give_up_candidate();
  bool is_hopeless() const;
  Stage stage() const;  // whether the next change is about structure or details
};

class Lines {
 public:
  // Starts the first line. All lines share half of the budget equally, unless the settings give a
  // number of evaluations for each line.
  void begin(const StrategySettings& settings, const std::vector<std::string>& approaches,
             const std::string& workload);
  bool have_begun() const { return !lines_.empty(); }
  Line& now() { return lines_[at_]; }
  const Line& now() const { return lines_[at_]; }
  size_t number() const { return at_ + 1; }
  bool in_last_phase() const { return last_phase_; }
  bool is_over() const;  // whether the current line has ended
  // Starts the next line. After the last line, starts the last phase with the line that has the
  // best program; returns false if there is no such line.
  bool next(const std::optional<Kept>& best);

 private:
  std::vector<Line> lines_;
  size_t at_ = 0;
  int64_t share_ = 0;  // number of evaluations for each line before the last phase
  bool last_phase_ = false;
};

}  // namespace cutegen::search
