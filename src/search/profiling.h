// SPDX-License-Identifier: Apache-2.0
// Decides when questions to the model may show profiles, for one line (a short search with its own
// first program). The class Profiling implements the modes of the option `--profiling`.
//
// Contract: if open() is true, questions may show profiles. Once true, open() stays true for the
// rest of the line. The mode decides when open() becomes true:
// - `adaptive`: when the structure has settled, or when the line has a correct program and has
//   judged as many candidates as a fifth of the budget's evaluations (at least two)
// - `delayed`: when the line has more correct candidates than fixed_depth() of the workload
// - `from_start`: at once
// - `never`: never
//
// The structure of a line's programs (launches, tiling, movement of data) has settled if, over the
// last kWindow correct candidates, no accepted edit changed the structure, and the best time fell
// by less than the share kFlat.
//
// Example: Profiling p(ProfilingMode::adaptive, "softmax", 40); p.step(true, false, ns);
//          if (p.open()) show(profile);
#pragma once

#include <deque>
#include <string>

#include "search/strategy.h"
#include "search/structure.h"

namespace cutegen::search {

class Profiling {
 public:
  static constexpr size_t kWindow = 3;
  static constexpr double kFlat = 0.05;

  // `evaluations` is the number of evaluations in the run's budget.
  Profiling(ProfilingMode mode, const std::string& workload, int64_t evaluations);
  // Call step() after each judged candidate of the line. `structure_changed` is true if the line
  // accepted an edit that changed the structure. `best_ns` is the line's best time.
  void step(bool correct, bool structure_changed, double best_ns);
  bool open() const { return open_; }
  // Returns whether open() is true, or may become true after the next correct candidate.
  bool opens_next() const;
  bool settled() const;

  // Returns the number of correct candidates that a line must exceed in the mode `delayed`.
  static int fixed_depth(const std::string& workload);

 private:
  ProfilingMode mode_;
  int threshold_ = 0, depth_ = 0;
  // steps_: number of candidates judged so far. From latest_ steps on, the mode `adaptive` shows
  // profiles even if the structure has not settled.
  int64_t steps_ = 0, latest_ = 0;
  int steady_ = 0;  // number of correct candidates since an edit changed the structure
  bool open_ = false;
  std::deque<double> times_;  // the line's best time after each of the last correct candidates
};

}  // namespace cutegen::search
