// SPDX-License-Identifier: Apache-2.0
#include "tensor/aggregate.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <random>

#include "tensor/compare.h"
#include "tensor/half.h"
#include "tensor/testing/test_errors.h"

namespace cutegen {
namespace {

constexpr ToleranceRule kBf16{.factor = 4, .eps = 0x1p-7, .floor_eps = 0x1p-9, .sensitivity = 0};
constexpr ToleranceRule kFp16{.factor = 4, .eps = 0x1p-10, .floor_eps = 0x1p-12, .sensitivity = 0};

using Values = std::vector<double>;

// Sums with errors relative to the truth, as in a product of uniform inputs.
struct Sums {
  Shape shape;
  Values truth;
  std::mt19937_64 random{7};

  explicit Sums(Shape s) : shape(std::move(s)) {
    std::uniform_real_distribution<double> near(900, 1100);
    truth.resize(size_t(*element_count(shape)));
    for (double& t : truth) t = near(random);
  }
  Values with_noise(double relative) {
    std::normal_distribution<double> normal(0, relative);
    Values out = truth;
    for (double& v : out) v *= 1 + normal(random);
    return out;
  }
  Values times(double factor) const {
    Values out = truth;
    for (double& v : out) v *= factor;
    return out;
  }
};

Judgement judged(const Expected& e, const Values& values) {
  std::vector<std::byte> bytes(values.size() * size_of(e.spec.dtype));
  from_double(e.spec.dtype, values, bytes);
  return judge(e, bytes);
}

Values rounded(DType dtype, Values values) {
  for (double& v : values) v = round_to(dtype, v);
  return values;
}

TEST(Aggregate, LowerPrecisionIsSeenWhereEveryElementPasses) {
  Sums s({64, 48});
  const Expected e = make_expected({.name = "out", .dtype = DType::f32, .shape = s.shape}, s.truth,
                                   s.with_noise(kNative), Values(s.truth.size(), 2.4e-7 * 1000),
                                   {.factor = 128}, s.with_noise(kSequential));
  for (double lossy : {kTf32, kTwoProducts}) {
    const Judgement j = judged(e, s.with_noise(lossy));
    EXPECT_EQ(j.wrong, 0) << lossy;
    EXPECT_TRUE(j.rms_is_wrong()) << lossy;
    EXPECT_FALSE(j.passes());
  }
  for (double honest : {kNative, 3 * kNative, kSequential})
    EXPECT_TRUE(judged(e, s.with_noise(honest)).passes()) << honest;
}

TEST(Aggregate, WithoutASequentialSumItsErrorIsModelled) {
  Sums s({64, 48});
  const ToleranceRule rule{.factor = 128, .growth = 11};
  const Expected e = make_expected({.name = "out", .dtype = DType::f32, .shape = s.shape}, s.truth,
                                   s.with_noise(kNative), {}, rule);
  EXPECT_NEAR(e.limits.sequential_rms, 11 * e.limits.native_rms, 1e-12);
  EXPECT_TRUE(judged(e, s.with_noise(kSequential)).passes());
  EXPECT_FALSE(judged(e, s.with_noise(kTf32)).passes());
}

TEST(Aggregate, AConstantFactorOfHalfPrecisionResultsIsABias) {
  Sums s({64, 96});
  for (auto [dtype, rule] : {std::pair{DType::bf16, kBf16}, std::pair{DType::f16, kFp16}}) {
    const Expected e = make_expected({.name = "out", .dtype = dtype, .shape = s.shape}, s.truth,
                                     rounded(dtype, s.truth), {}, rule);
    EXPECT_TRUE(judged(e, s.truth).passes());
    const double step = dtype == DType::bf16 ? 0.005 : 0.0008;
    for (double factor : {1 + step, 1 - step}) {
      const Judgement j = judged(e, s.times(factor));
      EXPECT_EQ(j.wrong, 0) << factor;
      EXPECT_TRUE(j.bias_is_wrong()) << factor;
    }
  }
}

// Tensor cores truncate float32 sums. If one term dominates a short sum, it loses up to 3.5
// roundings.
TEST(Aggregate, ABiasOfAFewFloat32RoundingsIsHonest) {
  Sums s({64, 96});
  const Values native = rounded(DType::f32, s.truth);
  const Expected e = make_expected({.name = "out", .dtype = DType::f32, .shape = s.shape}, s.truth,
                                   native, {}, {}, native);
  EXPECT_TRUE(judged(e, s.times(1 - 2.4 * 0x1p-23)).passes());
  const Judgement j = judged(e, s.times(1 - 4.5 * 0x1p-23));
  EXPECT_EQ(j.wrong, 0);
  EXPECT_TRUE(j.bias_is_wrong());
}

TEST(Aggregate, TenPercentOffIsWrongInEveryElementOfHalfPrecision) {
  Sums s({64, 96});
  // A math mode finer than the dtype never loosens the check.
  for (const ToleranceRule& rule : {ToleranceRule{.factor = 256}, kFp16, kBf16}) {
    const Expected e = make_expected({.name = "out", .dtype = DType::bf16, .shape = s.shape},
                                     s.truth, rounded(DType::bf16, s.truth), {}, rule);
    EXPECT_GT(judged(e, s.times(1.1)).wrong, 6000);
    EXPECT_TRUE(judged(e, s.truth).passes());
  }
}

TEST(Aggregate, AnErrorThatARowSharesIsNoBias) {
  Sums s({3, 1031});
  auto by_row = [&](double a, double b, double c) {
    Values out = s.truth;
    for (size_t i = 0; i < out.size(); ++i) out[i] *= 1 + std::array{a, b, c}[i / 1031];
    return out;
  };
  const Expected e = make_expected({.name = "out", .dtype = DType::f32, .shape = s.shape}, s.truth,
                                   by_row(2e-8, -1e-7, 9e-8), {}, {}, by_row(-2e-7, 1e-7, -3e-8));
  EXPECT_TRUE(judged(e, by_row(1.5e-7, 2e-7, 1e-7)).passes());
  EXPECT_FALSE(judged(e, by_row(4e-6, -4e-6, 4e-6)).passes());
}

// A layer norm with one row far below zero: the mean of that row is less accurate than the others.
TEST(Aggregate, OneRowThatIsFarWorseDoesNotDecide) {
  Sums s({12, 1500});
  auto far_row = [&](double error, double others) {
    Values out = s.with_noise(others);
    for (size_t i = 5 * 1500; i < 6 * 1500; ++i) out[i] = s.truth[i] * (1 + error);
    return out;
  };
  const Expected e =
      make_expected({.name = "out", .dtype = DType::f32, .shape = s.shape}, s.truth,
                    far_row(3e-6, 5e-8), Values(s.truth.size(), 2e-4), {}, far_row(2e-6, 2e-7));
  const Judgement honest = judged(e, far_row(-1.8e-5, 1e-7));
  EXPECT_TRUE(honest.rms < honest.limits.rms) << honest.rms;
  EXPECT_FALSE(judged(e, far_row(1e-7, 5e-6)).passes());
}

TEST(Aggregate, OneElementIsHeldToMoreThanLuck) {
  const Expected e = make_expected({.name = "out", .dtype = DType::f32}, {2.0}, {2.0}, Values{2e-7},
                                   {}, Values{2.0});
  EXPECT_TRUE(judged(e, {2.0 * (1 + 0x1p-22)}).passes());  // the native result is exact by chance
  EXPECT_FALSE(judged(e, {2.0002}).passes());
}

TEST(Aggregate, IndependentErrorsAreCountedByAxis) {
  std::mt19937_64 random(3);
  std::normal_distribution<double> normal;
  const Shape shape{64, 32};
  Values each(64 * 32), by_row(64 * 32);
  for (size_t i = 0; i < each.size(); ++i) {
    each[i] = normal(random);
    by_row[i] = i % 32 == 0 ? normal(random) : by_row[i - 1];
  }
  EXPECT_EQ(independent_errors(each, shape).rms, 2048);
  EXPECT_EQ(independent_errors(each, shape).bias, 2048);
  EXPECT_EQ(independent_errors(by_row, shape).rms, 64);
  EXPECT_EQ(independent_errors(by_row, shape).bias, 64);
  EXPECT_EQ(independent_errors(each, Shape{2, 1024}).rms, 2048);
  for (size_t i = 0; i < by_row.size(); ++i)
    if (i / 32 % 32 != 3) by_row[i] = std::nan("");  // 2 of 64 rows keep finite errors
  EXPECT_EQ(independent_errors(by_row, shape).rms, 2);
  EXPECT_EQ(independent_errors(Shape{64, 1, 32}).rms, 32);
  EXPECT_EQ(independent_errors(Shape{}).bias, 1);
}

TEST(Compare, SubnormalResultsCountInHalfPrecision) {
  const Values tiny{0x1p-16, 3 * 0x1p-20, 1.0};
  const Expected e =
      make_expected({.name = "out", .dtype = DType::f16, .shape = {3}}, tiny, tiny, {}, kFp16);
  EXPECT_EQ(judged(e, {0, 0, 1}).wrong, 2);
  EXPECT_EQ(judged(e, tiny).wrong, 0);
  const Values tinier{0x1p-130, 1.0};  // hardware flushes these
  const Expected f =
      make_expected({.name = "out", .dtype = DType::f32, .shape = {2}}, tinier, tinier, {}, {});
  EXPECT_EQ(judged(f, {0, 1}).wrong, 0);
}

TEST(Compare, AUsersBoundOnlyNarrows) {
  const Values one{1.0, 100.0};
  auto wrong = [&](double rtol, double atol) {
    ToleranceRule rule;
    rule.rtol = rtol, rule.atol = atol;
    const Expected e =
        make_expected({.name = "out", .dtype = DType::f32, .shape = {2}}, one, one, {}, rule);
    return judged(e, {1 + 1e-6, 100 + 1e-4}).wrong;
  };
  EXPECT_EQ(wrong(-1, -1), 0);
  EXPECT_EQ(wrong(1, 1), 0);
  EXPECT_EQ(wrong(1e-7, -1), 2);
  EXPECT_EQ(wrong(-1, 5e-6), 1);
  const Expected loose = make_expected({.name = "out", .dtype = DType::f32, .shape = {2}}, one, one,
                                       {}, {.rtol = 1, .atol = 1});
  EXPECT_EQ(judged(loose, {1.5, 150}).wrong, 2);  // it never replaces our own tolerance
}

TEST(Compare, TheOrderOfEvaluationMayDecideAClass) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  const double nan = std::nan("");
  const Values truth{inf, inf, 5, 5};
  const Expected e = make_expected({.name = "out", .dtype = DType::f32, .shape = {4}}, truth, truth,
                                   Values{-0.0, 0.0, -1e-7, inf}, {});
  EXPECT_EQ(judged(e, {nan, inf, nan, 77}).wrong, 0);  // the last element is not judged at all
  EXPECT_EQ(judged(e, {inf, nan, 5, 5}).wrong, 1);     // no order gives NaN at the second
  EXPECT_EQ(judged(e, {5, -inf, 6, nan}).wrong, 3);
}

}  // namespace
}  // namespace cutegen
