// SPDX-License-Identifier: Apache-2.0
// The error of an output as a whole: the root mean square (RMS) and the bias of its elements'
// errors, and the limits for RMS and bias.
//
// Contract: each element's error is divided by the element's scale (Expected::unit in
// tensor/compare.h), so that errors of large elements do not hide errors of small elements. The
// bias is the mean error in the direction of the truth (the result in float64): a factor of 1.01 on
// all elements is pure bias. The limits for RMS and bias follow from the errors of two references:
// the native reference (PyTorch in the task's dtypes), and a sequential sum in the arithmetic of
// the math mode. In measurements, kernels with accurate sums stayed below 2.5 times the larger
// error of the two references. Kernels with plain tf32 products or with truncating accumulators
// exceeded 2.5 times this error. The page docs/tolerance.md gives the measurements.
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

// Accumulates the errors of elements, each divided by the element's scale.
class AggregateError {
 public:
  void add(double error_in_units, double truth) {
    ++count_;
    squares_ += error_in_units * error_in_units;
    signed_ += truth < 0 ? -error_in_units : error_in_units;
  }
  AggregateError() = default;
  // Takes the count and the sums that a GPU has computed.
  AggregateError(int64_t count, double squares, double signed_sum)
      : count_(count), squares_(squares), signed_(signed_sum) {}

  int64_t count() const { return count_; }
  double rms() const;
  double bias() const;

 private:
  int64_t count_ = 0;
  double squares_ = 0, signed_ = 0;
};

// The permitted relative bias of a float32 matrix product that a kernel computes by three tf32
// products. Tensor cores truncate sums instead of rounding them. If one term dominates a short sum,
// the result is up to 3.5 float32 roundings below the truth (docs/tolerance.md).
inline constexpr double kTruncation = 4 * 0x1p-23;

// The errors of accurate implementations for one set of inputs.
struct HonestErrors {
  // sequential.count() is 0 if the sequential sum's errors are unknown
  AggregateError native, sequential;
  double floor_rms = 0;   // RMS error that rounding inputs and result can cause
  double floor_bias = 0;  // bias that truncating a float32 sum can cause
};

struct AggregateLimits {
  double native_rms = 0, sequential_rms = 0, rms = 0;
  double native_bias = 0, bias = 0;
  bool apply = false;
};

// The number of independent errors in an output, for the RMS and for the bias. The number of
// independent errors for the bias is smaller, because a few slices may look independent by chance.
struct Independent {
  double rms = 1, bias = 1;
};

AggregateLimits aggregate_limits(const ToleranceRule& rule, const HonestErrors& honest,
                                 Independent independent);

// Estimates how many of an output's errors are independent. Elements that depend on the same row
// sum or channel statistics share an error. If the elements of each slice along an axis share an
// error, the means of the slices vary more than means of independent elements, and each slice
// counts as one error.
Independent independent_errors(std::span<const double> errors_in_units, const Shape& shape);
// The slices whose reference errors are so large that they would decide the error of the whole
// output. For example, the mean of a row whose values are 200 below all others is less accurate.
// The function worst_slices() picks a tenth of the slices, and at least one, along the axis whose
// slices differ most. It picks none if the axis has fewer than four slices or if no axis has slices
// with shared errors. Element i is in slice (i / inner) % size.
struct WorstSlices {
  size_t inner = 1, size = 1;
  std::vector<uint8_t> worst = {};  // one flag per slice
  bool has(size_t element) const { return !worst.empty() && worst[element / inner % size] != 0; }
};
WorstSlices worst_slices(std::span<const double> native, std::span<const double> sequential,
                         const Shape& shape);
// Estimates the number of independent errors from the shape alone (its shortest axis), for callers
// that have no errors.
Independent independent_errors(const Shape& shape);

}  // namespace cutegen
