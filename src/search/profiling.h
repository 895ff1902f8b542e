// SPDX-License-Identifier: Apache-2.0
// Decides when a line's structure has settled and when its questions may show a profile. Implements
// the published method of delayed profiling, and an adaptive method.
//
// Contract: the structure (launches, tiling, movement of data) has settled if no accepted edit
// changed it over the last kWindow correct candidates and the best time fell by less than kFlat.
// "Open" means that questions may show a profile. `adaptive` opens when the structure settles. It
// opens at the latest after a fifth of the run's evaluations (at least two), if the line has a
// correct program. `delayed` opens when a line has more correct candidates than the fixed depth of
// the task's class. `from_start` is always open, `never` never opens. Once open, a line stays open.
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

  // `evaluations`: the run's budget.
  Profiling(ProfilingMode mode, const std::string& workload, int64_t evaluations);
  // Call it after each judged candidate of the line. `structure_changed`: an accepted edit changed
  // the structure; `best_ns`: the line's best time.
  void step(bool correct, bool structure_changed, double best_ns);
  bool open() const { return open_; }
  // Whether it is open, or opens after the next candidate if that is correct.
  bool opens_next() const;
  bool settled() const;

  // The number of correct candidates that `delayed` must exceed.
  static int fixed_depth(const std::string& workload);

 private:
  ProfilingMode mode_;
  int threshold_ = 0, depth_ = 0;
  int64_t steps_ = 0, latest_ = 0;  // judged candidates; the number at which `adaptive` opens
  int steady_ = 0;                  // correct candidates since an edit changed the structure
  bool open_ = false;
  std::deque<double> times_;  // the line's best time after each of the last correct candidates
};

}  // namespace cutegen::search
