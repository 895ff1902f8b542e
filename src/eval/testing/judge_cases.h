// SPDX-License-Identifier: Apache-2.0
// For tests: random outputs with their truth (the result in float64) in every dtype, with right and
// wrong elements, for comparing GpuJudge with judge() on the host.
#pragma once

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "eval/runner/arena.h"
#include "tensor/compare.h"
#include "tensor/half.h"

namespace cutegen::eval {

constexpr DType kAllDtypes[] = {DType::f64,    DType::f32, DType::f16, DType::bf16, DType::f8e4m3,
                                DType::f8e5m2, DType::i64, DType::i32, DType::i16,  DType::i8,
                                DType::u64,    DType::u32, DType::u16, DType::u8,   DType::boolean};

struct JudgeCase {
  DType dtype = DType::f32;
  Expected expected;
  ToleranceRule rule;
  std::vector<double> margin;
  std::vector<std::byte> native, output;
  Poison poison{};
  bool nan_is_undefined = false;
};

inline double odd_value(DType dtype, std::mt19937_64& random) {
  const double inf = std::numeric_limits<double>::infinity();
  const double large = is_floating(dtype) ? largest_finite(dtype) : 100;
  const double values[] = {0.0,    -0.0,         inf,          -inf,         std::nan(""), large,
                           -large, large * 1.01, large * 1.07, -large * 1.2, 1e-40,        1.0};
  return values[random() % std::size(values)];
}

inline JudgeCase make_case(DType dtype, size_t count, std::mt19937_64& random, int wrong_in = 20) {
  JudgeCase c;
  c.dtype = dtype;
  c.rule = random() % 2 ? ToleranceRule{.factor = 32, .eps = 0x1p-23}
                        : ToleranceRule{.factor = 4, .eps = 0x1p-7};
  if (random() % 4 == 0) c.rule.rtol = 1e-6, c.rule.atol = 1e-7;
  c.poison = draw_poison(PoisonKind::nan);
  c.nan_is_undefined = random() % 4 == 0;
  std::normal_distribution<double> normal(0, 8);
  const bool floats = is_floating(dtype);
  const size_t step = size_of(dtype);
  std::vector<double> truth(count), native(count), sensitivity(count);
  c.native.resize(count * step);
  c.output.resize(count * step);
  for (size_t i = 0; i < count; ++i) {
    truth[i] = floats ? normal(random) : std::floor(std::abs(normal(random)));
    if (dtype == DType::boolean) truth[i] = double(random() % 2);
    if (floats && random() % 16 == 0) truth[i] = odd_value(dtype, random);
    double own = truth[i] * (1 + 1e-7 * normal(random));
    if (floats && random() % 32 == 0) own = odd_value(dtype, random);
    if (!floats) own = random() % 8 ? truth[i] : truth[i] + 1;
    if (dtype == DType::boolean) own = truth[i];
    store_double(dtype, own, c.native.data() + i * step);
    native[i] = load_double(dtype, c.native.data() + i * step);
    sensitivity[i] = 1e-6 * std::abs(normal(random));
    if (random() % 50 == 0) sensitivity[i] = -sensitivity[i];  // if negative, NaN passes
    if (random() % 100 == 0) sensitivity[i] = std::numeric_limits<double>::infinity();
    // With sensitivity 1, a rounding may change the integer by one.
    if (!floats && random() % 20 == 0) sensitivity[i] = 1;
    double value = random() % 2 ? truth[i] : native[i];
    if (random() % uint64_t(wrong_in) == 0)
      value = floats ? (random() % 2 ? odd_value(dtype, random) : value + normal(random) * 1e-5)
                     : value + 1;
    store_double(dtype, value, c.output.data() + i * step);
    if (dtype == DType::boolean && random() % 30 == 0) c.output[i] = std::byte{2};
    if (random() % 40 == 0)
      for (size_t b = 0; b < step; ++b)
        c.output[i * step + b] = c.poison[(i * step + b) % c.poison.size()];
  }
  std::vector<double> error(count, 0);
  for (size_t i = 0; i < count; ++i)
    if (double d = std::abs(native[i] - truth[i]); floats && std::isfinite(d)) error[i] = d;
  c.margin = smooth_by_magnitude(truth, error, 32);
  for (size_t i = 0; i < count; ++i)
    c.margin[i] = std::copysign(std::max(c.margin[i], std::abs(sensitivity[i])), sensitivity[i]);
  c.expected = make_expected({.name = "y", .dtype = dtype, .shape = {int64_t(count)}},
                             std::move(truth), std::move(native), sensitivity, c.rule);
  c.expected.nan_is_undefined = c.nan_is_undefined;
  return c;
}

}  // namespace cutegen::eval
