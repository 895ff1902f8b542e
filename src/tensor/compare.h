// SPDX-License-Identifier: Apache-2.0
// Comparison of an output with its float64 truth, element by element.
//
// Contract: tolerance_i = factor * max(native_i, sensitivity_i, eps * |truth_i|) + smallest normal.
// native_i is the largest error |native - truth| among the 64 elements nearest in magnitude, so
// that an element where the native reference happens to be exact is not held to exactness. eps is
// at least the dtype's half ulp. NaN and infinity match by class; where the native reference has
// another class than the truth (it overflowed), both classes count. Integers match exactly. With
// nan_is_undefined, elements whose truth is NaN are not judged.
// docs/evaluation.md gives the reasons.
//
// Example:
//   Expected e = make_expected(spec, truth, native, sensitivity, {.factor = 32, .eps = 0x1p-23});
//   Judgement j = judge(e, output_bytes, poison); if (j.wrong) describe_pattern(j, e.shape);
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "tensor/dtype.h"

namespace cutegen {

struct ToleranceRule {
  double factor = 32;
  double eps = 0x1p-23;
};

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
};

// sensitivity may be empty (unknown). Sizes must agree with the spec.
[[nodiscard]] Expected make_expected(OutputSpec spec, std::vector<double> truth,
                                     std::vector<double> native,
                                     std::span<const double> sensitivity, ToleranceRule rule);

// Memory that was not written still holds this, repeated.
using Poison = std::array<std::byte, 8>;

struct Judgement {
  int64_t elements = 0, wrong = 0, nan = 0, unwritten = 0, zero = 0;  // of the wrong ones
  double worst_ratio = 0;         // error / tolerance, finite elements
  std::vector<uint8_t> is_wrong;  // by element; empty while nothing is wrong
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
