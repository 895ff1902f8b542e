// SPDX-License-Identifier: Apache-2.0
#include "tensor/compare.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "tensor/half.h"
#include "tensor/pattern.h"

namespace cutegen {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// A set whose native reference is the truth rounded to f32.
struct World {
  Shape shape;
  Expected expected;
  std::vector<std::byte> native;

  explicit World(Shape s, DType dtype = DType::f32, uint32_t seed = 7) : shape(std::move(s)) {
    auto n = size_t(*element_count(shape));
    std::mt19937 random(seed);
    std::normal_distribution<double> normal;
    std::vector<double> truth(n), rounded(n);
    for (size_t i = 0; i < n; ++i) {
      truth[i] = normal(random);
      rounded[i] = round_to(dtype, truth[i]);
    }
    native.resize(n * size_of(dtype));
    from_double(dtype, rounded, native);
    expected =
        make_expected({.name = "out", .dtype = dtype, .shape = shape}, truth, rounded, {}, {});
  }
  void set(size_t i, double value) {
    store_double(expected.spec.dtype, value, native.data() + i * size_of(expected.spec.dtype));
  }
  Judgement judged() const { return judge(expected, native); }
  std::string pattern() const { return describe_pattern(judged(), shape); }
};

TEST(Compare, NativeReferencePasses) {
  for (DType d : {DType::f32, DType::f16, DType::bf16, DType::f64})
    EXPECT_EQ(World({64, 100}, d).judged().wrong, 0) << to_string(d);
}

TEST(Compare, LargestErrorsStandBesideThoseOfTheNativeReference) {
  World w({64, 100});
  w.expected.truth[5] = 2, w.expected.native[5] = 2.5;
  w.expected.tolerance[5] = 4;
  w.set(5, 3);
  w.set(6, kNan);  // not a numeric error: judge() handles NaN
  const Errors found = largest_errors(w.expected, w.native);
  EXPECT_EQ(found.own, 1);
  EXPECT_EQ(found.native, 0.5);
  EXPECT_EQ(found.share, 0.25);
  EXPECT_GE(found.largest, 2);
}

TEST(Compare, AFewUlpsPassAndLowPrecisionFails) {
  World w({64, 100});
  auto apply = [&](auto f) {
    for (size_t i = 0; i < w.expected.truth.size(); ++i) w.set(i, f(w.expected.truth[i]));
    return w.judged().wrong;
  };
  EXPECT_EQ(apply([](double t) { return t * (1 + 4 * 0x1p-23); }), 0);
  EXPECT_GT(apply([](double t) { return keep_mantissa(t, 7); }), 6000);   // bf16
  EXPECT_GT(apply([](double t) { return keep_mantissa(t, 10); }), 6000);  // tf32, fp16
  EXPECT_EQ(apply([](double t) { return t * 1.01; }), 6400);
}

TEST(Compare, ZeroTruthIsNoFreePass) {
  std::vector<double> truth{0, 1, 2, 3};
  Expected e =
      make_expected({.name = "out", .dtype = DType::f32, .shape = {4}}, truth, truth, {}, {});
  std::vector<std::byte> y(16);
  from_double(DType::f32, std::vector<double>{1e-6, 1, 2, 3}, y);
  EXPECT_EQ(judge(e, y).wrong, 1);
}

TEST(Compare, SensitivityWidensOnlyWhereItIs) {
  std::vector<double> truth{1, 1}, sensitivity{1e-3, 0};
  Expected e = make_expected({.name = "out", .dtype = DType::f32, .shape = {2}}, truth, truth,
                             sensitivity, {});
  std::vector<std::byte> y(8);
  from_double(DType::f32, std::vector<double>{1.01, 1.01}, y);
  Judgement j = judge(e, y);
  ASSERT_EQ(j.wrong, 1);
  EXPECT_EQ(j.is_wrong[1], 1);
}

// On a CPU, PyTorch adds running sums in double, so its error is only the last rounding. The error
// of an honest loop also includes the roundings of all sums before.
TEST(Compare, TheErrorOfASequentialSumIsAccepted) {
  const std::vector<double> truth{40, 20, 1e-3}, native = truth, in_order{40, 20, 1e-3 + 2e-5};
  auto wrong = [&](double value, std::span<const double> sequential) {
    const Expected e = make_expected({.name = "out", .dtype = DType::f32, .shape = {3}}, truth,
                                     native, {}, {.rms = 0}, sequential);
    std::vector<std::byte> output(12);
    from_double(DType::f32, std::vector<double>{40, 20, value}, output);
    return judge(e, output).wrong;
  };
  EXPECT_EQ(wrong(1e-3 + 6e-5, {}), 1);
  EXPECT_EQ(wrong(1e-3 + 6e-5, in_order), 0);
  EXPECT_EQ(wrong(1e-3 + 9e-5, in_order), 1);
}

TEST(Compare, ClassesMatchExactly) {
  std::vector<double> truth{kNan, kInf, -kInf, 1, 1e39}, native{kNan, kInf, -kInf, 1, kInf};
  Expected e =
      make_expected({.name = "out", .dtype = DType::f32, .shape = {5}}, truth, native, {}, {});
  std::vector<std::byte> y(20);
  from_double(DType::f32, native, y);
  EXPECT_EQ(judge(e, y).wrong, 0);
  from_double(DType::f32, std::vector<double>{0, -kInf, kInf, kNan, kNan}, y);
  Judgement j = judge(e, y);
  EXPECT_EQ(j.wrong, 5);
  EXPECT_EQ(j.nan, 2);
}

TEST(Compare, NativeOverflowAllowsBothClasses) {
  std::vector<double> truth{1e30}, native{kInf};
  Expected e =
      make_expected({.name = "out", .dtype = DType::f32, .shape = {1}}, truth, native, {}, {});
  std::vector<std::byte> y(4);
  for (double good : {1e30, kInf}) {
    store_double(DType::f32, good, y.data());
    EXPECT_EQ(judge(e, y).wrong, 0) << good;
  }
  for (double bad : {2e30, -kInf, kNan}) {
    store_double(DType::f32, bad, y.data());
    EXPECT_EQ(judge(e, y).wrong, 1) << bad;
  }
}

TEST(Compare, IntegersAndBoolsExactly) {
  std::vector<double> truth{3, 4};
  Expected e =
      make_expected({.name = "out", .dtype = DType::i64, .shape = {2}}, truth, truth, {}, {});
  std::vector<std::byte> y(16);
  from_double(DType::i64, std::vector<double>{3, 5}, y);
  EXPECT_EQ(judge(e, y).wrong, 1);
  std::vector<double> flags{1, 0};
  Expected b =
      make_expected({.name = "out", .dtype = DType::boolean, .shape = {2}}, flags, flags, {}, {});
  EXPECT_EQ(judge(b, std::vector<std::byte>{std::byte{1}, std::byte{0}}).wrong, 0);
  EXPECT_EQ(judge(b, std::vector<std::byte>{std::byte{0xff}, std::byte{0}}).wrong, 1);
}

TEST(Compare, CountsWhatWasNotWritten) {
  World w({8, 8});
  Poison poison;
  poison.fill(std::byte{0xf7});
  for (size_t b = 32; b < 64; ++b) w.native[b] = std::byte{0xf7};
  Judgement j = judge(w.expected, w.native, &poison);
  EXPECT_EQ(j.wrong, 8);
  EXPECT_EQ(j.unwritten, 8);
  EXPECT_EQ(describe_pattern(j, w.shape), "row 1, never written");
}

TEST(Compare, LooserRuleOfPublicBenchmarks) {
  World w({16, 16});
  w.set(3, w.expected.native[3] + 5e-5);
  EXPECT_EQ(w.judged().wrong, 1);
  EXPECT_EQ(count_not_close(w.expected, w.native, 1e-4), 0);
  w.set(3, kNan);
  EXPECT_EQ(count_not_close(w.expected, w.native, 1e-4), 1);
}

TEST(Compare, SmoothingTakesTheLargestNearby) {
  std::vector<double> key{4, 1, 3, 2, kNan}, values{0, 5, 1, 2, 9};
  EXPECT_EQ(smooth_by_magnitude(key, values, 1), (std::vector<double>{1, 5, 2, 5, 9}));
}

TEST(Compare, SmoothingIsTheSameForManyElements) {
  constexpr size_t kMany = 70'000, kReach = 3;
  std::vector<double> key(kMany), values(kMany);
  for (size_t i = 0; i < kMany; ++i) {
    const double magnitude = std::ldexp(double(i * 7919 % 5003), int(i % 40) - 20);
    key[i] = i % 1000 == 0 ? kNan : i % 2 ? magnitude : -magnitude;
    values[i] = double(i * 104'729 % 65'537);
  }
  std::vector<size_t> order;
  for (size_t i = 0; i < kMany; ++i)
    if (!std::isnan(key[i])) order.push_back(i);
  std::ranges::stable_sort(order, {}, [&](size_t i) { return std::abs(key[i]); });
  std::vector<double> wanted = values;
  for (size_t rank = 0; rank < order.size(); ++rank)
    for (size_t near = rank - std::min(rank, kReach);
         near <= std::min(rank + kReach, order.size() - 1); ++near)
      wanted[order[rank]] = std::max(wanted[order[rank]], values[order[near]]);
  EXPECT_EQ(smooth_by_magnitude(key, values, kReach), wanted);
  EXPECT_EQ(smooth_by_magnitude(key, std::vector<double>(kMany, 2), kReach),
            std::vector<double>(kMany, 2));
}

TEST(Pattern, Mutants) {
  auto mutant = [](Shape shape, auto hit) {
    World w(shape);
    int64_t columns = shape.back();
    for (size_t i = 0; i < w.expected.truth.size(); ++i)
      if (hit(int64_t(i) / columns, int64_t(i) % columns)) w.set(i, 9.5);
    return w.pattern();
  };
  auto every = [](int64_t, int64_t) { return true; };
  EXPECT_EQ(mutant({96, 100}, every), "every element");
  EXPECT_EQ(mutant({96, 100}, [](int64_t, int64_t c) { return c >= 96; }), "columns from 96 on");
  EXPECT_EQ(mutant({96, 100}, [](int64_t, int64_t c) { return c == 99; }),
            "the last of 100 columns");
  EXPECT_EQ(mutant({96, 100}, [](int64_t r, int64_t) { return r >= 64; }), "rows from 64 on");
  EXPECT_EQ(mutant({96, 100}, [](int64_t, int64_t c) { return c % 4 == 1; }),
            "every 4th of the columns starting at 1");
  EXPECT_EQ(mutant({96, 100}, [](int64_t r, int64_t c) { return r == 95 && c > 96; }),
            "the last 3 elements");
  EXPECT_EQ(mutant({128, 128}, [](int64_t r, int64_t c) { return r / 64 == 1 && c / 64 == 0; }),
            "1 whole 64x64 tile of 4, the first at row 64, column 0");
  EXPECT_EQ(mutant({1, 1000}, [](int64_t, int64_t c) { return c / 128 == 2; }),
            "1 whole block of 128 consecutive elements of 8");
  EXPECT_EQ(mutant({97, 101}, [](int64_t r, int64_t c) { return (r * 101 + c) % 7 == 3; }),
            "scattered, 14% of the elements");
}

TEST(Pattern, AllZeroAndAllNan) {
  World w({4, 4});
  for (size_t i = 0; i < 16; ++i) w.set(i, 0);
  EXPECT_EQ(w.pattern(), "every element, all zero");
  for (size_t i = 0; i < 16; ++i) w.set(i, kNan);
  EXPECT_EQ(w.pattern(), "every element, all NaN");
}

TEST(Pattern, FirstWrongGivesCoordinates) {
  World w({2, 3, 4});
  w.set(23, 5e5);
  w.set(4, 5e5);
  EXPECT_EQ(first_wrong(w.judged(), w.shape, 5),
            (std::vector<std::vector<int64_t>>{{0, 1, 0}, {1, 2, 3}}));
}

// Equal values may stand in any order, so their positions are uncertain.
TEST(Judge, IntegersOfInfiniteSensitivityAreNotJudged) {
  const std::vector<double> truth{4, 7, 9};
  const std::vector<double> uncertain{0, kInf, 0};
  const Expected e = make_expected({.name = "out", .dtype = DType::i64, .shape = {3}}, truth, truth,
                                   uncertain, ToleranceRule{});
  const auto wrong = [&](std::vector<double> values) {
    std::vector<std::byte> output(3 * sizeof(int64_t));
    from_double(DType::i64, values, output);
    return judge(e, output).wrong;
  };
  EXPECT_EQ(wrong({4, 8, 9}), 0);
  EXPECT_EQ(wrong({4, 7, 8}), 1);
}

TEST(Judge, AnIntegerThatARoundingDecidesMayBeOneAway) {
  const std::vector<double> truth{3, 3, 3}, sensitivity{1, 1, 0};
  const Expected e =
      make_expected({.name = "y", .dtype = DType::i8, .shape = {3}}, truth, truth, sensitivity, {});
  auto wrong = [&](std::array<int8_t, 3> output) {
    return judge(e, std::as_bytes(std::span(output)), nullptr).wrong;
  };
  EXPECT_EQ(wrong({2, 4, 3}), 0);
  EXPECT_EQ(wrong({1, 5, 3}), 2);
  EXPECT_EQ(wrong({3, 3, 4}), 1);
}

TEST(Judge, UndefinedElementsAreNotJudgedWhereNanIsUndefined) {
  World w({4});
  w.expected.truth = {1.0, kNan, kInf, 2.0};
  w.expected.native = {1.0, kNan, kInf, 2.0};
  w.set(0, 1.0), w.set(1, 5.0), w.set(2, kInf), w.set(3, 2.0);
  EXPECT_EQ(w.judged().wrong, 1);
  w.expected.nan_is_undefined = true;
  EXPECT_EQ(w.judged().wrong, 0);
  w.set(2, kNan);  // infinity is a valid result
  w.set(3, kNan);
  EXPECT_EQ(w.judged().wrong, 2);
}

}  // namespace
}  // namespace cutegen
