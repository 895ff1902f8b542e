// SPDX-License-Identifier: Apache-2.0
// Compares an output with its float64 truth, element by element and as a whole.
//
// Contract: tolerance_i = factor * max(native_i, sensitivity_i, eps * |truth_i|) + flush(dtype).
// native_i is the largest error |native - truth| among the element and its 32 neighbours on either
// side in order of magnitude, so an element need not be exact just because the native reference is.
// If sequential sums are known, the tolerance is at least 4 times their largest error among the
// same elements, because PyTorch may add in double, while a kernel adds in float32. eps is at least
// the dtype's half ulp. The user's bound (rtol, atol) can only narrow the tolerance. NaN and
// infinity match by class. If the native reference has another class than the truth (for example,
// it overflowed), both classes match. Integers must equal the truth or the native result. If the
// sensitivity of an integer is at least 1, it may be one away from the truth, because the rounding
// of an input can change it by one. With nan_is_undefined, elements whose truth is NaN are not
// judged. An element (also an integer) with the sensitivity +infinity is not judged, because its
// value depends on the order of evaluation. If the sensitivity's sign bit is set, NaN passes too,
// because some order of evaluation gives NaN. The output as a whole must stay within
// aggregate_limits() (tensor/aggregate.h). docs/evaluation.md gives the reasons.
//
// Example:
//   Expected e = make_expected(spec, truth, native, sensitivity, {.factor = 32, .eps = 0x1p-23});
//   Judgement j = judge(e, output_bytes, poison); if (!j.passes()) describe_pattern(j, e.shape);
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tensor/aggregate.h"
#include "tensor/dtype.h"

namespace cutegen {

struct ToleranceRule {
  double factor = 32;
  double eps = 0x1p-23;
  double rms = 2.5;             // RMS limit / larger reference RMS; 0: do not judge the whole
  double floor_eps = 0x1p-23;   // the reference RMS is at least this share of each truth value,
  double sensitivity = 2;       // or this many times the element's sensitivity
  double growth = 1;            // sequential RMS / native RMS, if no sequential sum exists
  double rtol = -1, atol = -1;  // the user's bound; both negative: the user gave no bound
};

// The rule for an output of this dtype. If the dtype is coarser than the math mode, its rounding
// dominates the error, so the factor is smaller.
ToleranceRule for_dtype(ToleranceRule rule, DType dtype);

struct OutputSpec {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
};

// The errors that set the limits of an output as a whole: of a sequential sum (empty: unknown) and
// of rounding alone. Each element's error is divided by its Expected::unit.
struct ReferenceErrors {
  std::vector<double> sequential, rounding;
  ToleranceRule rule;
};

// One output of one input set, ready for comparison.
struct Expected {
  OutputSpec spec;
  std::vector<double> truth, native, tolerance;  // tolerance is empty for integers
  bool nan_is_undefined = false;                 // any value passes where the truth is NaN
  std::vector<double> unit = {};    // the error scale of each element; empty for integers
  std::vector<uint8_t> order = {};  // OrderFlag of each element; empty: no flags
  AggregateLimits limits = {};
  // Kept only on request, because they are large.
  std::shared_ptr<const ReferenceErrors> references = {};
};

// kAnyValue, kNanToo: any value passes, or NaN passes too, because the result depends on the order
// of evaluation. kOneStep: an integer may be one away from the truth. kOutsideWhole: the element is
// judged alone, but does not count towards the output as a whole (worst_slices).
enum OrderFlag : uint8_t { kAnyValue = 1, kNanToo = 2, kOutsideWhole = 4, kOneStep = 8 };

enum class KeepReferences : bool { no, yes };

// sensitivity and sequential (the result of sequential sums) may be empty if unknown. Otherwise
// their sizes must match the spec.
Expected make_expected(OutputSpec spec, std::vector<double> truth, std::vector<double> native,
                       std::span<const double> sensitivity, ToleranceRule rule,
                       std::span<const double> sequential = {},
                       KeepReferences keep = KeepReferences::no);

// The limits of the output as a whole if only the chosen elements count (one byte per element).
// Needs KeepReferences::yes.
AggregateLimits limits_among(const Expected& expected, std::span<const uint8_t> chosen);
// The error of one element in units, or NaN if it does not count towards the output as a whole.
double error_in_units(const Expected& expected, size_t element, double value);

// Memory that the program has not written holds repetitions of this pattern.
using Poison = std::array<std::byte, 8>;

struct Judgement {
  // nan, unwritten and zero count wrong elements only.
  int64_t elements = 0, wrong = 0, nan = 0, unwritten = 0, zero = 0;
  double worst_ratio = 0;         // error / tolerance, finite elements
  std::vector<uint8_t> is_wrong;  // one byte per element; empty while no element is wrong
  // Errors of the output as a whole (finite elements only), and their limits.
  double rms = 0, bias = 0;
  AggregateLimits limits = {};

  bool rms_is_wrong() const { return limits.apply && rms > limits.rms; }
  bool bias_is_wrong() const { return limits.apply && std::abs(bias) > limits.bias; }
  bool passes() const { return wrong == 0 && !rms_is_wrong() && !bias_is_wrong(); }
};

Judgement judge(const Expected& expected, std::span<const std::byte> output,
                const Poison* poison = nullptr);
// The looser rule of public benchmarks: |y - native| <= tol + tol * |native|. NaN equals NaN.
int64_t count_not_close(const Expected& expected, std::span<const std::byte> output,
                        double tolerance);

// The largest errors of a floating output and of the native reference, over finite elements.
struct Errors {
  double own = 0, native = 0;
  double largest = 0;  // the largest |truth|
  double share = 0;    // the largest error / tolerance
};
Errors largest_errors(const Expected& expected, std::span<const std::byte> output);

// For each element, the largest of `values` within `reach` ranks on either side, ranked by |key|.
// Elements with a NaN key keep their value.
std::vector<double> smooth_by_magnitude(std::span<const double> key, std::span<const double> values,
                                        size_t reach);

}  // namespace cutegen
