// SPDX-License-Identifier: Apache-2.0
// Compares an output with its truth (the result in float64): each element, and the output as a
// whole.
//
// Contract: tolerance_i = factor * max(native_i, sensitivity_i, eps * |truth_i|) + flush(dtype).
// The value sensitivity_i says how far the truth moves if the inputs change by one rounding. The
// value native_i is the largest error |native - truth| of the native reference (PyTorch in the
// task's dtypes) among 65 elements: the element and the 32 elements next smaller and next larger in
// magnitude. Therefore, an element may have an error even if the native reference is exact at this
// element. If the results of sequential sums are known, the tolerance is at least 4 times their
// largest error among the same elements, because PyTorch may add in double, but kernels add in
// float32. The value of eps is at least the dtype's half ulp. The user's limit (rtol, atol) can
// only narrow the tolerance. A NaN must match NaN, and an infinity the same infinity. If truth and
// native reference differ in being finite, infinite or NaN (for example, the native reference
// overflowed), an element that matches either of them passes. An integer must equal the truth or
// the native result. An integer whose sensitivity is at least 1 may differ from the truth by one,
// because the rounding of an input can change the integer by one. With nan_is_undefined, any value
// passes if the truth is NaN. If the sensitivity is +infinity, any value passes, because the result
// depends on the order of evaluation. If the sensitivity's sign bit is set, NaN also passes,
// because some order of evaluation gives NaN. RMS and bias of the output as a whole must stay
// within aggregate_limits() (tensor/aggregate.h). The page docs/tolerance.md gives the reasons for
// the tolerances.
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
  double rms = 2.5;  // RMS limit / larger reference RMS; 0: no limits for the whole output
  double floor_eps = 0x1p-23;   // lower bound of an element's reference error / |truth|
  double sensitivity = 2;       // lower bound of an element's reference error / sensitivity
  double growth = 1;            // assumed sequential RMS / native RMS if there is no sequential sum
  double rtol = -1, atol = -1;  // the user's limit; negative: no limit
};

// Returns the rule for an output of dtype `dtype`. If the dtype is coarser than the math mode, the
// rule's factor is smaller, because the rounding to the dtype dominates the error.
ToleranceRule for_dtype(ToleranceRule rule, DType dtype);

struct OutputSpec {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
};

// Two errors of each element, divided by Expected::unit: the error of a sequential sum (empty if
// unknown), and the error of rounding alone. The limits of the whole output follow from these
// errors.
struct ReferenceErrors {
  std::vector<double> sequential, rounding;
  ToleranceRule rule;
};

// The expected values and tolerances of one output, for one input set.
struct Expected {
  OutputSpec spec;
  std::vector<double> truth, native, tolerance;  // tolerance: empty for integers
  bool nan_is_undefined = false;                 // if the truth is NaN, any value passes
  std::vector<double> unit = {};    // the scale of each element's error; empty for integers
  std::vector<uint8_t> order = {};  // flags of each element (OrderFlag); empty: no flags
  AggregateLimits limits = {};
  // Set only with KeepReferences::yes, because the vectors are large.
  std::shared_ptr<const ReferenceErrors> references = {};
};

// Flags of an element:
// - kAnyValue: any value passes, because the result depends on the order of evaluation.
// - kNanToo: NaN also passes, because some order of evaluation gives NaN.
// - kOneStep: an integer may differ from the truth by one.
// - kOutsideWhole: the element has its own tolerance, but does not count in the RMS and the bias
//   (worst_slices() in tensor/aggregate.h).
enum OrderFlag : uint8_t { kAnyValue = 1, kNanToo = 2, kOutsideWhole = 4, kOneStep = 8 };

enum class KeepReferences : bool { no, yes };

// `sensitivity` and `sequential` (the results of sequential sums) are empty if unknown, or have one
// value per element.
Expected make_expected(OutputSpec spec, std::vector<double> truth, std::vector<double> native,
                       std::span<const double> sensitivity, ToleranceRule rule,
                       std::span<const double> sequential = {},
                       KeepReferences keep = KeepReferences::no);

// Returns the limits of the whole output if only the chosen elements count. `chosen` has one byte
// per element. Needs KeepReferences::yes.
AggregateLimits limits_among(const Expected& expected, std::span<const uint8_t> chosen);
// Returns an element's error divided by its Expected::unit, or NaN if the element does not count in
// the RMS and the bias.
double error_in_units(const Expected& expected, size_t element, double value);

// A byte pattern with which the evaluator fills memory before a run, to detect elements that the
// program did not write.
using Poison = std::array<std::byte, 8>;

struct Judgement {
  // `wrong` counts all wrong elements; `nan`, `unwritten` and `zero` count wrong elements that are
  // NaN, that still hold the Poison pattern, and that are zero.
  int64_t elements = 0, wrong = 0, nan = 0, unwritten = 0, zero = 0;
  double worst_ratio = 0;         // largest error / tolerance of finite elements
  std::vector<uint8_t> is_wrong;  // one byte per element; empty if no element is wrong
  // Errors of the whole output, over its finite elements, and their limits.
  double rms = 0, bias = 0;
  AggregateLimits limits = {};

  bool rms_is_wrong() const { return limits.apply && rms > limits.rms; }
  bool bias_is_wrong() const { return limits.apply && std::abs(bias) > limits.bias; }
  bool passes() const { return wrong == 0 && !rms_is_wrong() && !bias_is_wrong(); }
};

Judgement judge(const Expected& expected, std::span<const std::byte> output,
                const Poison* poison = nullptr);
// Counts the elements that fail the looser rule of public benchmarks: |y - native| <= tolerance +
// tolerance * |native|. NaN equals NaN.
int64_t count_not_close(const Expected& expected, std::span<const std::byte> output,
                        double tolerance);

// The largest errors of a floating-point output and of the native reference, over finite elements.
struct Errors {
  double own = 0, native = 0;
  double largest = 0;  // largest absolute value of the truth
  double share = 0;    // largest error / tolerance
};
Errors largest_errors(const Expected& expected, std::span<const std::byte> output);

// Sorts the elements by |key| and returns, for each element, the largest of `values` among the
// element and the `reach` elements on either side. For an element with a NaN key, returns the
// element's own value.
std::vector<double> smooth_by_magnitude(std::span<const double> key, std::span<const double> values,
                                        size_t reach);

}  // namespace cutegen
