// SPDX-License-Identifier: Apache-2.0
// Checks what each degenerate solution returns, value by value.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "eval/sets/lazy.h"
#include "eval/testing/toy_task.h"

namespace cutegen::eval {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing_world::ToyTask;
using Values = std::vector<double>;

constexpr double kInf = std::numeric_limits<double>::infinity();

// A set whose only output has these values.
InputSet set_with(const Shape& shape, const Values& truth, DType dtype = DType::f32) {
  InputSet set;
  set.outputs.push_back(make_expected({.name = "out", .dtype = dtype, .shape = shape}, truth, truth,
                                      {}, {.factor = 32, .eps = 0x1p-23}));
  return set;
}

LazyAnswer named(const std::string& name, MathMode mode = MathMode::fp32) {
  Task task = ToyTask([](double x) { return x; }).task;
  task.math_mode = mode;
  for (LazyAnswer& a : lazy_answers(task))
    if (a.name == name) return a;
  ADD_FAILURE() << "no answer " << name;
  return {};
}

LazyValues answer(const std::string& name, const Shape& shape, const Values& truth) {
  return named(name).values(set_with(shape, truth), 0, nullptr);
}

Values counted(size_t n) {
  Values out(n);
  std::iota(out.begin(), out.end(), 1);
  return out;
}

TEST(LazyAnswers, Constants) {
  EXPECT_THAT(*answer("zeros", {2, 2}, {1, 2, 3, 4}), ElementsAre(0, 0, 0, 0));
  EXPECT_THAT(*answer("ones", {3}, {1, 2, 3}), ElementsAre(1, 1, 1));
  EXPECT_THAT(*answer("the mean everywhere", {4}, {1, 2, 3, 6}), ElementsAre(3, 3, 3, 3));
  EXPECT_THAT(*answer("the mean everywhere", {5}, {1, kInf, 3, 8, -kInf}),
              ElementsAre(4, 4, 4, 4, 4));
  EXPECT_THAT(*answer("the mean everywhere", {4}, {kInf, kInf, kInf, kInf}),
              ElementsAre(0, 0, 0, 0));
  EXPECT_FALSE(answer("the mean everywhere", {3}, {1, 2, 3}));
}

TEST(LazyAnswers, MeansByAxis) {
  // (2, 4): rows 1..4 and 5..8
  EXPECT_THAT(*answer("the mean of each row", {2, 4}, counted(8)),
              ElementsAre(2.5, 2.5, 2.5, 2.5, 6.5, 6.5, 6.5, 6.5));
  EXPECT_FALSE(answer("the mean of each row", {4, 3}, counted(12)));
  EXPECT_FALSE(answer("the mean of each row", {}, {1}));
  EXPECT_THAT(*answer("the mean of each column", {4, 2}, counted(8)),
              ElementsAre(4, 5, 4, 5, 4, 5, 4, 5));
  EXPECT_FALSE(answer("the mean of each column", {3, 2}, counted(6)));  // 3 per group
  EXPECT_FALSE(answer("the mean of each column", {8}, counted(8)));
  // (2, 2, 2): the channel is the middle axis
  EXPECT_THAT(*answer("the mean of each channel", {2, 2, 2}, counted(8)),
              ElementsAre(3.5, 3.5, 5.5, 5.5, 3.5, 3.5, 5.5, 5.5));
  EXPECT_THAT(*answer("the mean of each row", {1, 4}, {1, kInf, 3, -kInf}),
              ElementsAre(2, 2, 2, 2));
  EXPECT_THAT(*answer("the mean of each row", {1, 4}, {kInf, kInf, kInf, -kInf}),
              ElementsAre(0, 0, 0, 0));
}

TEST(LazyAnswers, LeftOutParts) {
  Values most = *answer("only the first 99%", {200}, counted(200));
  EXPECT_EQ(std::count(most.begin(), most.end(), 0), 2);
  EXPECT_EQ(most[197], 198);
  EXPECT_EQ(most[198], 0);
  EXPECT_THAT(*answer("only the first 99%", {3}, {1, 2, 3}), ElementsAre(1, 2, 0));
  EXPECT_THAT(*answer("all but the last row", {2, 3}, counted(6)), ElementsAre(1, 2, 3, 0, 0, 0));
  EXPECT_THAT(*answer("all but the last row", {3}, counted(3)), ElementsAre(1, 2, 0));
  EXPECT_THAT(*answer("all but the last column", {2, 3}, counted(6)),
              ElementsAre(1, 2, 0, 4, 5, 0));
  EXPECT_THAT(*answer("all but the last column", {2, 2}, counted(4)), ElementsAre(1, 0, 3, 0));
  EXPECT_FALSE(answer("all but the last column", {3, 1}, counted(3)));
  EXPECT_FALSE(answer("all but the last column", {}, {1}));
}

TEST(LazyAnswers, ARoundingErrorBelowZeroIsNoSign) {
  const Values truth{-1e-9, 2};
  InputSet set;
  set.outputs.push_back(make_expected({.name = "out", .dtype = DType::f32, .shape = {2}}, truth,
                                      truth, Values{1e-9, 1e-9}, {}));
  EXPECT_THAT(*named("results without signs").values(set, 0, nullptr), ElementsAre(-1e-9, 2));
}

TEST(LazyAnswers, WrongOrderSignsAndLaws) {
  EXPECT_THAT(*answer("the halves of rows swapped", {2, 4}, counted(8)),
              ElementsAre(3, 4, 1, 2, 7, 8, 5, 6));
  EXPECT_THAT(*answer("the halves of rows swapped", {1, 2}, {1, 2}), ElementsAre(2, 1));
  EXPECT_FALSE(answer("the halves of rows swapped", {2, 1}, {1, 2}));
  EXPECT_THAT(*answer("results without signs", {3}, {-1, 2, -3}), ElementsAre(1, 2, 3));
  Values truth(10000);
  for (size_t i = 0; i < truth.size(); ++i) truth[i] = i % 2 ? 7 : 3;
  truth[5] = kInf;
  Values drawn = *answer("random values of the same moments", {10000}, truth);
  double mean = std::accumulate(drawn.begin(), drawn.end(), 0.0) / 10000, square = 0;
  for (double v : drawn) square += (v - mean) * (v - mean);
  EXPECT_FALSE(answer("random values of the same moments", {3}, {1, 2, 3}));
  EXPECT_NEAR(mean, 5, 0.1);
  EXPECT_NEAR(std::sqrt(square / 10000), 2, 0.1);
}

TEST(LazyAnswers, LowerPrecisionByMathMode) {
  auto names = [](MathMode mode) {
    Task task = ToyTask([](double x) { return x; }).task;
    task.math_mode = mode;
    std::string all;
    for (const LazyAnswer& a : lazy_answers(task))
      if (a.name.starts_with("results of")) all += a.name + ";";
    return all;
  };
  EXPECT_EQ(names(MathMode::fp32),
            "results of tf32 precision;results of bf16 precision;results of fp8 precision;");
  EXPECT_EQ(names(MathMode::tf32), "results of bf16 precision;results of fp8 precision;");
  EXPECT_EQ(names(MathMode::fp16), "results of bf16 precision;results of fp8 precision;");
  EXPECT_EQ(names(MathMode::bf16), "results of fp8 precision;");
  auto rounded =
      named("results of fp8 precision").values(set_with({2}, {1.0625, 1.25}), 0, nullptr);
  EXPECT_THAT(*rounded, ElementsAre(1, 1.25));
  EXPECT_FALSE(
      named("results of fp8 precision").values(set_with({1}, {1}, DType::i64), 0, nullptr));
  EXPECT_EQ(mode_bits(MathMode::fp32), 23);
  EXPECT_EQ(mode_bits(MathMode::fp16), 10);
}

TEST(LazyAnswers, LowerPrecisionByOutput) {
  Task task = ToyTask([](double x) { return x; }).task;
  auto& outputs = task.tensors;
  auto out = std::find_if(outputs.begin(), outputs.end(),
                          [](const TensorInfo& t) { return t.role == TensorRole::output; });
  ASSERT_NE(out, outputs.end());
  EXPECT_EQ(result_bits(task), 23);
  task.tf32_convolutions = true;  // honest results of a convolution have ten bits
  EXPECT_EQ(result_bits(task), 10);
  EXPECT_EQ(mode_bits(task, *out), 10);
  out->without_convolution = true;
  EXPECT_EQ(mode_bits(task, *out), 23);
  out->without_convolution = false;
  task.tf32_convolutions = false;
  out->dtype = DType::bf16;  // the program computes in fp32 and stores seven bits
  EXPECT_EQ(mode_bits(task, *out), 23);
  EXPECT_EQ(result_bits(task), 7);
  out->dtype = DType::f32;
  task.math_mode = MathMode::bf16;
  EXPECT_EQ(result_bits(task), 7);
  TensorInfo second = *out;
  second.name = "out.1", second.math_mode = MathMode::fp32;
  outputs.push_back(second);
  EXPECT_EQ(result_bits(task), 23);  // the most precise output decides
  for (TensorInfo& t : outputs)
    if (t.role == TensorRole::output) t.dtype = DType::i64;
  EXPECT_EQ(result_bits(task), 7);
}

TEST(LazyAnswers, WhatTheInputTells) {
  ToyTask toy([](double x) { return x * x; });
  auto set = *make_input_set(toy.task, toy.task.shapes[0],
                             *toy.source()(Context(), toy.task.shapes[0], "signed", 5));
  const Values& truth = set->outputs[0].truth;
  Values x = *named("a copy of x").values(*set, 0, nullptr);
  for (size_t i = 0; i < x.size(); ++i) EXPECT_EQ(x[i] * x[i], truth[i]);
  Values line = *named("a linear map of x").values(*set, 0, nullptr);
  double rest = 0, along = 0;  // residuals of least squares have no mean and no slope
  for (size_t i = 0; i < x.size(); ++i) {
    rest += truth[i] - line[i];
    along += (truth[i] - line[i]) * x[i];
  }
  EXPECT_NEAR(rest / 2048, 0, 1e-9);
  EXPECT_NEAR(along / 2048, 0, 1e-9);
  EXPECT_NEAR(line[1] - line[0], (line[3] - line[2]) * (x[1] - x[0]) / (x[3] - x[2]), 1e-6);
  auto other = *make_input_set(toy.task, toy.task.shapes[0],
                               *toy.source()(Context(), toy.task.shapes[0], "made", 6));
  LazyAnswer replay = named("the first answer replayed");
  EXPECT_EQ(*replay.values(*set, 0, other.get()), other->outputs[0].truth);
  EXPECT_FALSE(replay.values(*set, 0, set.get()));
  EXPECT_FALSE(replay.values(*set, 0, nullptr));
  InputSet smaller = set_with({4}, counted(4));
  EXPECT_FALSE(named("a copy of x").values(smaller, 0, nullptr));
  EXPECT_FALSE(named("a linear map of x").values(smaller, 0, nullptr));
}

// Admits a task with one output and the given sets of two families.
Admission admitted(const std::vector<std::pair<std::string, Values>>& sets) {
  Task task = ToyTask([](double x) { return x; }).task;
  task.tensors.erase(task.tensors.begin());  // no input
  std::vector<SetPtr> all;
  for (const auto& [family, truth] : sets) {
    auto set = std::make_shared<InputSet>(set_with({int64_t(truth.size() / 4), 4}, truth));
    set->family = family;
    all.push_back(set);
  }
  return admit(task, all, {});
}

TEST(Admit, PassingOnOneFamilyIsNamedAndCaughtByTheOther) {
  Values ones(16, 1.0), mixed = counted(16);
  Admission a = admitted({{"made", ones}, {"signed", mixed}});
  EXPECT_TRUE(a.admitted);
  EXPECT_THAT(a.families, ElementsAre("made", "signed"));
  EXPECT_THAT(a.passing, Contains("ones passes on 'made'"));
  EXPECT_THAT(a.passing, Contains("the mean of each row passes on 'made'"));
  EXPECT_THAT(a.passing, Not(Contains(HasSubstr("zeros"))));
  EXPECT_THAT(a.remark, HasSubstr("fails on another"));
  Admission twice = admitted({{"made", ones}, {"made", mixed}});  // passes one of two sets only
  EXPECT_THAT(twice.passing, Not(Contains("ones passes on 'made'")));
  Admission only = admitted({{"made", ones}});
  EXPECT_FALSE(only.admitted);
  EXPECT_THAT(only.remark, HasSubstr("ones, the mean everywhere"));
  EXPECT_TRUE(only.precision_tells);
  Admission clean = admitted({{"made", {1.3, -5.1, 9.7, 2.2, -0.4, 3.3, 8.1, -7.7}}});
  EXPECT_TRUE(clean.admitted);
  EXPECT_THAT(clean.remark, HasSubstr("every degenerate solution fails"));
  EXPECT_FALSE(admitted({}).admitted);
}

TEST(Admit, LowerPrecisionThatPassesEverywhereIsRemembered) {
  Task task = ToyTask([](double x) { return x; }).task;
  task.tensors.erase(task.tensors.begin());
  auto set = std::make_shared<InputSet>();
  Values truth{1.3, -5.1, 9.7, 2.2, -0.4, 3.3, 8.1, -7.7};
  Values wiggle(8, 1.0);  // so sensitive that bf16 passes; tf32 is exact here
  for (double& v : truth) v *= 100;
  set->outputs.push_back(make_expected({.name = "out", .dtype = DType::f32, .shape = {2, 4}}, truth,
                                       truth, wiggle, {.factor = 32, .eps = 0x1p-23}));
  set->family = "made";
  Admission a = admit(task, {set}, {});
  EXPECT_FALSE(a.precision_tells);
  EXPECT_THAT(a.remark, HasSubstr("results of bf16 precision"));
}

// Another solution that passes everywhere says nothing about precision.
TEST(Admit, OnlySolutionsOfLowerPrecisionSpeakAgainstPrecision) {
  Task task = ToyTask([](double x) { return x; }).task;
  task.tensors.erase(task.tensors.begin());
  auto set = std::make_shared<InputSet>();
  Values truth{1.3, -5.1, 9.7, 2.2, -0.4, 3.3, 0.7, 1e-9}, wiggle(8, 0.0);
  wiggle.back() = 1e-8;  // the last element may be zero
  set->outputs.push_back(make_expected({.name = "out", .dtype = DType::f32, .shape = {2, 4}}, truth,
                                       truth, wiggle, {.factor = 32, .eps = 0x1p-23}));
  set->family = "made";
  Admission a = admit(task, {set}, {});
  EXPECT_THAT(a.remark, HasSubstr("only the first 99%"));
  EXPECT_TRUE(a.precision_tells);
}

}  // namespace
}  // namespace cutegen::eval
