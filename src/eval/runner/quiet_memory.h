// SPDX-License-Identifier: Apache-2.0
// QuietMemory: tells from the times of equal work on GPU memory whether other work slows it down.
//
// Contract: note() takes the times of one block of runs: how long the device needed to cool the L2.
// That work is the same before every run, so its least time ever is the time on a quiet GPU. The
// least time is known once notes span kLearning, because a process that ends leaves memory that the
// driver overwrites for a tenth of a second or more. is_quiet() compares the median of the last
// block with the least time.
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
  static constexpr double kSlower = 1.05;  // a median is slow above this multiple of the least time

  // state: what the device reports of a block. Blocks with a warm L2 report no cooling time and
  // count as quiet.
  void note(const std::map<std::string, double>& state, Clock::time_point now);
  bool is_known() const { return !median_ns_ || last_ - *first_ >= kLearning; }
  bool is_quiet() const { return !median_ns_ || *median_ns_ <= kSlower * least_ns_; }

 private:
  std::optional<Clock::time_point> first_;
  Clock::time_point last_;
  std::optional<double> median_ns_;  // of the last block
  double least_ns_ = 0;
};

}  // namespace cutegen::eval
