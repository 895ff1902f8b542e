// SPDX-License-Identifier: Apache-2.0
// Decides when questions may show the figures of a profile: the published forms of delayed
// profiling, and an adaptive one.
//
// Contract: `from_start` always, `never` never. `delayed` opens when a line has more correct
// candidates than the fixed depth of the task's class. `adaptive` opens when the structure is
// stable: over the last kWindow judged steps, no accepted edit changed the structure (launches,
// tiling, movement of data), and the best time fell by less than kFlat. Once open, it stays open
// for that line.
//
// Example: Profiling p(ProfilingMode::adaptive, "softmax"); p.step(true, false, ns); if (p.open())
// ...
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

  Profiling(ProfilingMode mode, const std::string& workload);
  // Call it after each judged candidate of the line, with whether an accepted edit changed the
  // structure, and the line's best time.
  void step(bool correct, bool structure_changed, double best_ns);
  bool open() const { return open_; }
  // Steps since an accepted edit last changed the structure.
  int steps_without_change() const { return steady_; }

  // The number of correct candidates that `delayed` must exceed.
  static int fixed_depth(const std::string& workload);

 private:
  ProfilingMode mode_;
  int threshold_ = 0, depth_ = 0, steady_ = 0;
  bool open_ = false;
  std::deque<double> times_;  // the line's best time after each of the last steps
};

}  // namespace cutegen::search
