// SPDX-License-Identifier: Apache-2.0
// The argument (JudgeRule) and the result (JudgeTally) of the comparison kernel, with the layouts
// of Rule and Tally in kernels/judge.cu.
//
// Contract: judge_rule() returns the same limits as src/tensor/compare.cpp uses for this dtype and
// rule.
//
// Example: JudgeRule r = judge_rule(DType::f32, tolerance_rule(task, shape), 1e-4, false, poison);
#pragma once

#include "tensor/compare.h"
#include "tensor/half.h"

namespace cutegen::eval {

struct JudgeRule {
  // overflow: the smallest |truth| (result in float64) at which the dtype overflows
  double factor, eps, least, largest, overflow;
  double close, rtol, atol;  // without limits from the user, rtol and atol are negative
  uint64_t poison;
  int32_t dtype, overflows_to_nan, nan_is_undefined, unused;
};
static_assert(sizeof(JudgeRule) == 88);

struct JudgeTally {
  uint64_t wrong = 0, nan = 0, zero = 0, unwritten = 0, not_close = 0;
  uint64_t first = ~uint64_t{0}, last = 0, worst = 0;  // worst: the bits of a double value
  uint64_t finite = 0;  // number of elements in the sums `squares` and `signed_sum`
  double squares = 0, signed_sum = 0;
};
static_assert(sizeof(JudgeTally) == 88);

JudgeRule judge_rule(DType dtype, ToleranceRule rule, double close, bool nan_is_undefined,
                     const Poison& poison);

}  // namespace cutegen::eval
