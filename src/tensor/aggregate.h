// SPDX-License-Identifier: Apache-2.0
// The error of an output as a whole: its root mean square (RMS), its bias, and the limits of both.
//
// Contract: each element's error counts in units of its own scale (Expected::unit), so that errors
// of large elements do not hide errors of small ones. The bias is the mean error in the direction
// of the truth: a constant factor of 1.01 is pure bias. Both limits follow from the native
// reference and from a sequential sum in the arithmetic of the math mode. In measurements, accurate
// sums stay below 2.5 times the larger of the two errors, while tf32, two-product splits and sums
// without promotion exceed it. docs/evaluation.md, "Tolerance", gives the reasons.
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

// Accumulates the errors of elements, each in units of its scale.
class AggregateError {
 public:
  void add(double error_in_units, double truth) {
    ++count_;
    squares_ += error_in_units * error_in_units;
    signed_ += truth < 0 ? -error_in_units : error_in_units;
  }
  AggregateError() = default;
  // For sums that the GPU has computed.
  AggregateError(int64_t count, double squares, double signed_sum)
      : count_(count), squares_(squares), signed_(signed_sum) {}

  int64_t count() const { return count_; }
  double rms() const;
  double bias() const;

 private:
  int64_t count_ = 0;
  double squares_ = 0, signed_ = 0;
};

// The bias, relative to the truth, that a float32 product of three tf32 products may have. Tensor
// cores truncate their sums: if one term dominates a short sum, the result ends up to 3.5 float32
// roundings below the truth (docs/evaluation.md, "The output as a whole").
inline constexpr double kTruncation = 4 * 0x1p-23;

// The errors of accurate implementations on one set.
struct HonestErrors {
  AggregateError native, sequential;  // sequential: count() is 0 if no sequential sum was computed
  double floor_rms = 0;               // the RMS error that rounding of inputs and result can cause
  double floor_bias = 0;              // the bias that truncation of a float32 sum can cause
};

struct AggregateLimits {
  double native_rms = 0, sequential_rms = 0, rms = 0;
  double native_bias = 0, bias = 0;
  bool apply = false;
};

// How many independent errors an output holds. The bias uses a smaller count, because a few slices
// may look independent by chance.
struct Independent {
  double rms = 1, bias = 1;
};

AggregateLimits aggregate_limits(const ToleranceRule& rule, const HonestErrors& honest,
                                 Independent independent);

// Counts errors that share a cause (the sum of a row, the statistics of a channel) as one. If the
// elements of each slice along an axis share a cause, the means of the slices vary more than means
// of independent elements would. Then each slice counts as one independent error.
Independent independent_errors(std::span<const double> errors_in_units, const Shape& shape);
// The slices with by far the largest reference errors, which would otherwise decide the error of
// the whole output. For example, the mean of a row that lies 200 below the others is less accurate.
// worst_slices() picks a tenth of the slices (at least one of at least four) along the axis whose
// slices differ most, or none if no axis shows shared causes. The element at i lies in slice i /
// inner % size.
struct WorstSlices {
  size_t inner = 1, size = 1;
  std::vector<uint8_t> worst = {};  // by slice
  bool has(size_t element) const { return !worst.empty() && worst[element / inner % size] != 0; }
};
WorstSlices worst_slices(std::span<const double> native, std::span<const double> sequential,
                         const Shape& shape);
// An estimate from the shape alone (the shortest axis), if there are no errors to analyse.
Independent independent_errors(const Shape& shape);

}  // namespace cutegen
