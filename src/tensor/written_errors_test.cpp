// SPDX-License-Identifier: Apache-2.0
#include "tensor/written_errors.h"

#include <gtest/gtest.h>

#include <random>

#include "tensor/testing/test_errors.h"

namespace cutegen {
namespace {

using Values = std::vector<double>;

constexpr size_t kRows = 61, kColumns = 127;

struct Excerpt {
  std::mt19937_64 random{11};
  Values truth;

  Excerpt() : truth(kRows * kColumns) {
    std::uniform_real_distribution<double> near(900, 1100);
    for (double& t : truth) t = near(random);
  }
  double noisy(size_t i, double relative) {
    return truth[i] * (1 + std::normal_distribution<double>(0, relative)(random));
  }
  Values with_noise(double relative) {
    Values out(truth.size());
    for (size_t i = 0; i < out.size(); ++i) out[i] = noisy(i, relative);
    return out;
  }
  Expected expected(KeepReferences keep = KeepReferences::yes) {
    return make_expected({.name = "out", .dtype = DType::f32, .shape = {kRows, kColumns}}, truth,
                         with_noise(kNative), Values(truth.size(), 2.4e-7 * 1000), {.factor = 128},
                         with_noise(kSequential), keep);
  }
};

// The judgement of the first rows x columns elements if they have this relative error.
Judgement of_a_block(Excerpt& x, const Expected& e, size_t rows, size_t columns, double relative) {
  WrittenErrors w(e);
  for (size_t r = 0; r < rows; ++r)
    for (size_t c = 0; c < columns; ++c)
      w.add(r * kColumns + c, x.noisy(r * kColumns + c, relative));
  return w.judgement();
}

TEST(WrittenErrors, SeesLowerPrecisionInSomeBlocks) {
  Excerpt x;
  const Expected e = x.expected();
  for (auto [rows, columns] : {std::pair{8, 8}, {61, 127}, {1, 63}, {61, 8}}) {
    const Judgement lossy = of_a_block(x, e, size_t(rows), size_t(columns), kTf32);
    EXPECT_EQ(lossy.limits.apply, rows * columns >= 64) << rows;
    EXPECT_EQ(lossy.rms_is_wrong(), rows * columns >= 64) << rows << " " << lossy.rms;
    for (double honest : {kNative, 3 * kNative, kSequential})
      EXPECT_TRUE(of_a_block(x, e, size_t(rows), size_t(columns), honest).passes()) << rows;
  }
}

TEST(WrittenErrors, RepetitionsOfAnElementCountOnce) {
  Excerpt x;
  const Expected e = x.expected();
  WrittenErrors once(e), often(e);
  for (size_t i = 0; i < 400; ++i) {
    const double value = x.noisy(i, kSequential);
    once.add(i, value);
    for (size_t n = 0; n < 1 + i % 7; ++n) often.add(i, value);
  }
  const Judgement a = once.judgement(), b = often.judgement();
  EXPECT_EQ(a.elements, 400);
  EXPECT_EQ(b.elements, 400);
  EXPECT_NEAR(a.rms, b.rms, 1e-9 * a.rms);
  EXPECT_NEAR(a.bias, b.bias, 1e-9 * a.rms);
  EXPECT_EQ(a.limits.rms, b.limits.rms);
}

TEST(WrittenErrors, TheLimitIsAtLeastThatOfTheWholeOutput) {
  Excerpt x;
  // The reference happens to be far more accurate for the first rows than for the others.
  Values native = x.with_noise(kSequential);
  for (size_t i = 0; i < 8 * kColumns; ++i) native[i] = x.truth[i];
  const Expected e =
      make_expected({.name = "out", .dtype = DType::f32, .shape = {kRows, kColumns}}, x.truth,
                    native, {}, {.factor = 128}, native, KeepReferences::yes);
  const Judgement j = of_a_block(x, e, 8, 127, kSequential);
  EXPECT_TRUE(j.limits.apply);
  EXPECT_GE(j.limits.rms, e.limits.rms);
  EXPECT_TRUE(j.passes()) << j.rms << " " << j.limits.rms;
}

TEST(WrittenErrors, NothingWrittenAndUnknownReferencesDecideNothing) {
  Excerpt x;
  const Expected e = x.expected(), without = x.expected(KeepReferences::no);
  EXPECT_TRUE(WrittenErrors(e).judgement().passes());
  EXPECT_EQ(WrittenErrors(e).judgement().elements, 0);
  EXPECT_FALSE(of_a_block(x, without, 61, 127, 1).limits.apply);
}

TEST(WrittenErrors, AConstantFactorIsABias) {
  Excerpt x;
  const Expected e = x.expected();
  WrittenErrors w(e);
  for (size_t i = 0; i < 20 * kColumns; ++i) w.add(i, x.truth[i] * (1 + 2.5e-6));
  EXPECT_TRUE(w.judgement().bias_is_wrong());
}

TEST(LimitsAmong, AllElementsAreTheLimitsOfTheOutput) {
  Excerpt x;
  const Expected e = x.expected();
  const AggregateLimits all = limits_among(e, std::vector<uint8_t>(x.truth.size(), 1));
  EXPECT_EQ(all.rms, e.limits.rms);
  EXPECT_EQ(all.bias, e.limits.bias);
  EXPECT_EQ(all.native_rms, e.limits.native_rms);
  EXPECT_TRUE(all.apply);
  EXPECT_FALSE(limits_among(e, std::vector<uint8_t>(x.truth.size(), 0)).apply);
}

}  // namespace
}  // namespace cutegen
