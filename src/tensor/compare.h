// SPDX-License-Identifier: Apache-2.0
// Comparison of an output with its float64 truth, element by element and as a whole.
//
// Contract: tolerance_i = factor * max(native_i, sensitivity_i, eps * |truth_i|) + flush(dtype).
// native_i is the largest error |native - truth| among the 64 elements nearest in magnitude, so
// that an element where the native reference happens to be exact is not held to exactness. eps is
// at least the dtype's half ulp. A bound of the user's (rtol, atol) only narrows it. NaN and
// infinity match by class; where the native reference has another class than the truth (it
// overflowed), both classes count. Integers match exactly. With nan_is_undefined, elements whose
// truth is NaN are not judged. A sensitivity of +infinity leaves an element unjudged (its value
// depends on the order of evaluation); one with the sign bit set accepts NaN too (some order of
// evaluation gives NaN). The output as a whole is held to aggregate_limits() (tensor/aggregate.h).
// docs/evaluation.md gives the reasons.
//
// Example:
//   Expected e = make_expected(spec, truth, native, sensitivity, {.factor = 32, .eps = 0x1p-23});
//   Judgement j = judge(e, output_bytes, poison); if (!j.passes()) describe_pattern(j, e.shape);
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "tensor/aggregate.h"
#include "tensor/dtype.h"

namespace cutegen {

struct ToleranceRule {
  double factor = 32;
  double eps = 0x1p-23;
  double rms = 2.5;            // of the larger honest error; 0: the output as a whole is not judged
  double floor_eps = 0x1p-23;  // relative: an honest root mean square may always be this large
  double sensitivity = 2;      // and this many times the sensitivity
  double growth = 1;           // sequential error to native error, where no sequential sum was made
  double rtol = -1, atol = -1;  // the user's bound; both negative: none
};

// The rule of an output: no looser than what its dtype alone allows.
[[nodiscard]] ToleranceRule for_dtype(ToleranceRule rule, DType dtype);

struct OutputSpec {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
};

// One output of one input set, ready to be compared with.
struct Expected {
  OutputSpec spec;
  std::vector<double> truth, native, tolerance;  // tolerance is empty for integers
  bool nan_is_undefined = false;                 // where the truth is NaN any value will do
  std::vector<double> unit = {};                 // of each element's error; empty for integers
  std::vector<uint8_t> order = {};               // OrderFlag by element; empty: none anywhere
  AggregateLimits limits = {};
};

// What the order of evaluation decides about an element.
// kOutsideWhole: judged by itself, and left out of the output as a whole (worst_slices).
enum OrderFlag : uint8_t { kAnyValue = 1, kNanToo = 2, kOutsideWhole = 4 };

// sensitivity and sequential (the result of sequential sums) may be empty (unknown). Sizes must
// agree with the spec.
[[nodiscard]] Expected make_expected(OutputSpec spec, std::vector<double> truth,
                                     std::vector<double> native,
                                     std::span<const double> sensitivity, ToleranceRule rule,
                                     std::span<const double> sequential = {});

// Memory that was not written still holds this, repeated.
using Poison = std::array<std::byte, 8>;

struct Judgement {
  int64_t elements = 0, wrong = 0, nan = 0, unwritten = 0, zero = 0;  // of the wrong ones
  double worst_ratio = 0;         // error / tolerance, finite elements
  std::vector<uint8_t> is_wrong;  // by element; empty while nothing is wrong
  // The output as a whole, over finite elements, and its limits.
  double rms = 0, bias = 0;
  AggregateLimits limits = {};

  [[nodiscard]] bool rms_is_wrong() const { return limits.apply && rms > limits.rms; }
  [[nodiscard]] bool bias_is_wrong() const { return limits.apply && std::abs(bias) > limits.bias; }
  [[nodiscard]] bool passes() const { return wrong == 0 && !rms_is_wrong() && !bias_is_wrong(); }
};

[[nodiscard]] Judgement judge(const Expected& expected, std::span<const std::byte> output,
                              const Poison* poison = nullptr);
// The looser rule of public benchmarks: |y - native| <= tol + tol * |native|, NaN equal to NaN.
[[nodiscard]] int64_t count_not_close(const Expected& expected, std::span<const std::byte> output,
                                      double tolerance);

// The largest errors of a floating output and of the native reference, over finite elements.
struct Errors {
  double own = 0, native = 0;
  double largest = 0;  // |truth|
  double share = 0;    // of the accepted error
};
[[nodiscard]] Errors largest_errors(const Expected& expected, std::span<const std::byte> output);

// Largest of values[] within `reach` ranks to either side, ranks by |key|. NaN keys are left alone.
[[nodiscard]] std::vector<double> smooth_by_magnitude(std::span<const double> key,
                                                      std::span<const double> values, size_t reach);

}  // namespace cutegen
