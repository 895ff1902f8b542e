// SPDX-License-Identifier: Apache-2.0
// The error of an output as a whole: root mean square and bias, and how large they may be.
//
// Contract: each element's error counts in units of its own scale (Expected::unit), so that large
// elements do not hide small ones. The bias is the mean error in the direction of the truth: a
// constant factor of 1.01 is all bias. Both limits follow from the native reference and from a
// sequential sum in the mode's arithmetic. docs/evaluation.md, "Tolerance", gives the reasons; the
// separation was measured (honest sums stay below 2.5 times the larger of the two, tf32, two
// products and sums without promotion lie above).
//
// Example:
//   AggregateLimits l = aggregate_limits(rule, {native, sequential, floor}, independent_errors);
//   if (e.rms > l.rms) ...
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tensor/dtype.h"

namespace cutegen {

struct ToleranceRule;

// Collects errors of elements in units of their scale.
class AggregateError {
 public:
  void add(double error_in_units, double truth) {
    ++count_;
    squares_ += error_in_units * error_in_units;
    signed_ += truth < 0 ? -error_in_units : error_in_units;
  }
  AggregateError() = default;
  // Sums that were taken elsewhere.
  AggregateError(int64_t count, double squares, double signed_sum)
      : count_(count), squares_(squares), signed_(signed_sum) {}

  [[nodiscard]] int64_t count() const { return count_; }
  [[nodiscard]] double rms() const;
  [[nodiscard]] double bias() const;

 private:
  int64_t count_ = 0;
  double squares_ = 0, signed_ = 0;
};

// What is known of honest errors on one set.
struct HonestErrors {
  AggregateError native, sequential;  // sequential: count() is 0 where no such sum was made
  double floor_rms = 0;               // what rounding inputs and result alone may make
};

struct AggregateLimits {
  double native_rms = 0, sequential_rms = 0, rms = 0;
  double native_bias = 0, bias = 0;
  bool apply = false;
};

// How many independent errors an output holds. Few slices that agree may do so by luck: for the
// bias they count as sharing a cause.
struct Independent {
  double rms = 1, bias = 1;
};

[[nodiscard]] AggregateLimits aggregate_limits(const ToleranceRule& rule,
                                               const HonestErrors& honest, Independent independent);

// Errors that share a cause (the sum of a row, the statistics of a channel) are one error, not
// many. For each axis, the means over its slices vary more than independent elements would allow if
// the slices share causes: then only as many errors as the axis has slices are independent.
[[nodiscard]] Independent independent_errors(std::span<const double> errors_in_units,
                                             const Shape& shape);
// Slices whose honest errors are the largest by far: one row 200 below the others has a mean that
// is known less well, and its error would be the whole output's. A tenth of the slices (one at
// least, of four) of the axis that shares causes most; empty if no axis does. The element at i lies
// in slice i / inner % size.
struct WorstSlices {
  size_t inner = 1, size = 1;
  std::vector<uint8_t> worst = {};  // by slice
  [[nodiscard]] bool has(size_t element) const {
    return !worst.empty() && worst[element / inner % size] != 0;
  }
};
[[nodiscard]] WorstSlices worst_slices(std::span<const double> native,
                                       std::span<const double> sequential, const Shape& shape);
// The same from the shape alone, where errors cannot be looked at: the shortest axis.
[[nodiscard]] Independent independent_errors(const Shape& shape);

}  // namespace cutegen
