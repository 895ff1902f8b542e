// SPDX-License-Identifier: Apache-2.0
// QuietMemory: detects whether other work slows the GPU's memory down, from the times of a memory
// operation that always has the same size.
//
// Contract: before every run with a cold L2, the device overwrites the L2 with the same amount of
// other data. note() takes the times of this overwriting in one block of runs. The least time so
// far counts as the time on a GPU without other work. is_known() is true after kLearning, because
// after the end of a process, the driver clears the process's memory for 0.1 s or longer.
// is_quiet() compares the median time in the last block with the least time.
//
// Example: memory.note(report.state, Clock::now()); if (!memory.is_quiet()) repeat();
#pragma once

#include <map>
#include <optional>
#include <string>

#include "base/context.h"

namespace cutegen::eval {

class QuietMemory {
 public:
  static constexpr auto kLearning = std::chrono::milliseconds(200);
  // The memory is not quiet if the median exceeds the least time by this factor.
  static constexpr double kSlower = 1.05;

  // state: the device's report of a block. A block with a warm L2 has no times of overwriting and
  // counts as quiet.
  void note(const std::map<std::string, double>& state, Clock::time_point now);
  bool is_known() const { return !median_ns_ || last_ - *first_ >= kLearning; }
  bool is_quiet() const { return !median_ns_ || *median_ns_ <= kSlower * least_ns_; }

 private:
  std::optional<Clock::time_point> first_;
  Clock::time_point last_;
  std::optional<double> median_ns_;  // median time in the last block
  double least_ns_ = 0;
};

}  // namespace cutegen::eval
