// SPDX-License-Identifier: Apache-2.0
// The small decisions behind a verdict: which shapes, tolerance, sets and floor.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "eval/rungs/measure.h"
#include "eval/rungs/prepare.h"
#include "eval/rungs/timing.h"
#include "eval/testing/toy_task.h"

namespace cutegen::eval {
namespace {

using testing::HasSubstr;

using testing_world::ToyTask;

double same(double x) {
  return x;
}

TEST(Tolerance, OfLongSumsInFp32Grows) {
  Task task;
  auto factor = [&](const char* workload, int64_t longest) {
    task.workload = workload;
    ShapeCase shape;
    shape.tensors = {{"x", {3, longest}}, {"out", {3}}};
    return tolerance_rule(task, shape, {}).factor;
  };
  EXPECT_EQ(factor("reduction", 256), 32);
  EXPECT_EQ(factor("reduction", 4096), 128);
  EXPECT_EQ(factor("softmax+elementwise", 1 << 20), 256);
  EXPECT_EQ(factor("elementwise", 1 << 20), 32);
  task.math_mode = MathMode::tf32;
  EXPECT_EQ(factor("reduction", 4096), 4);
}

TEST(Tolerance, FollowsTheMathMode) {
  Task task;
  auto rule = [&](MathMode mode) {
    task.math_mode = mode;
    return tolerance_rule(task, {}, {});
  };
  EXPECT_EQ(rule(MathMode::fp32).factor, 32);
  EXPECT_EQ(rule(MathMode::fp32).eps, std::ldexp(1, -23));
  for (MathMode mode : {MathMode::tf32, MathMode::fp16}) {
    EXPECT_EQ(rule(mode).factor, 4);
    EXPECT_EQ(rule(mode).eps, std::ldexp(1, -10));
  }
  EXPECT_EQ(rule(MathMode::bf16).factor, 4);
  EXPECT_EQ(rule(MathMode::bf16).eps, std::ldexp(1, -7));
  task.tolerance = 2.5;
  EXPECT_EQ(rule(MathMode::fp32).factor, 80);
  EXPECT_EQ(compat_tolerance(MathMode::fp32), 1e-4);
  EXPECT_EQ(compat_tolerance(MathMode::tf32), 1e-4);
  EXPECT_EQ(compat_tolerance(MathMode::fp16), 1e-2);
  EXPECT_EQ(compat_tolerance(MathMode::bf16), 1e-2);
}

TEST(Tolerance, OfConvolutionsAsPyTorchShipsIsThatOfTf32) {
  Task task;
  task.tf32_convolutions = true;
  EXPECT_EQ(tolerance_rule(task, {}, {}).eps, std::ldexp(1, -10));
  TensorInfo narrow;
  narrow.math_mode = MathMode::bf16;
  EXPECT_EQ(tolerance_rule(task, {}, narrow).eps, std::ldexp(1, -7));
  TensorInfo beside;
  beside.without_convolution = true;
  EXPECT_EQ(tolerance_rule(task, {}, beside).eps, std::ldexp(1, -23));
  task.rtol = 1e-5;
  EXPECT_EQ(tolerance_rule(task, {}, {}).rtol, 1e-5);
  EXPECT_LT(tolerance_rule(task, {}, {}).atol, 0);
}

TEST(InputSet, HoldsInputsAndWhatTheOutputsMustBe) {
  ToyTask toy([](double x) { return 3 * x; });
  auto tensors = *toy.source()(Context(), toy.task.shapes[0], "signed", 5);
  tensors.notes = {"a note"};
  auto set = *make_input_set(toy.task, toy.task.shapes[0], std::move(tensors));
  EXPECT_EQ(set->shape, "small");
  EXPECT_EQ(set->family, "signed");
  EXPECT_THAT(set->notes, testing::ElementsAre("a note"));
  ASSERT_EQ(set->inputs.size(), 1U);
  ASSERT_EQ(set->outputs.size(), 1U);
  EXPECT_EQ(set->outputs[0].truth.size(), 2048U);
  EXPECT_EQ(set->bytes_of(set->inputs[0]).size(), 2048U * 4);
  double x = load_double(DType::f32, set->bytes_of(set->inputs[0]).data() + 40);
  EXPECT_EQ(set->outputs[0].truth[10], 3 * x);
  EXPECT_FALSE(set->outputs[0].nan_is_undefined);
}

TEST(InputSet, WithoutFloat64TheNativeResultIsTheTruth) {
  ToyTask toy(same);
  auto tensors = *toy.source()(Context(), toy.task.shapes[0], "made", 5);
  tensors.slots.pop_back();
  auto set = *make_input_set(toy.task, toy.task.shapes[0], std::move(tensors));
  EXPECT_EQ(set->outputs[0].truth, set->outputs[0].native);
}

TEST(InputSet, SensitivityWidensTheTolerance) {
  ToyTask toy(same);
  auto plain = *make_input_set(toy.task, toy.task.shapes[0],
                               *toy.source()(Context(), toy.task.shapes[0], "made", 5));
  auto tensors = *toy.source()(Context(), toy.task.shapes[0], "made", 5);
  torch::TensorSlot moved = tensors.slots[2];  // the truth as sensitivity, which is then 100%
  moved.part = "sensitivity";
  tensors.slots.push_back(moved);
  auto wide = *make_input_set(toy.task, toy.task.shapes[0], std::move(tensors));
  EXPECT_GT(wide->outputs[0].tolerance[3], 1000 * plain->outputs[0].tolerance[3]);
}

TEST(InputSet, NanIsUndefinedInTheSpecialFamilyOnly) {
  ToyTask toy([](double) { return std::nan(""); });
  for (const char* family : {"made", "special"}) {
    auto set = *make_input_set(toy.task, toy.task.shapes[0],
                               *toy.source()(Context(), toy.task.shapes[0], family, 5));
    std::vector<std::byte> zeros(2048 * 4);
    int64_t wrong = judge(set->outputs[0], zeros).wrong;
    EXPECT_EQ(wrong, std::string(family) == "special" ? 0 : 2048);
  }
}

TEST(TruthPool, ASetIsDroppedAfterItsUses) {
  ToyTask toy(same);
  TruthPool pool(toy.task, toy.source());
  std::map<const InputSet*, int> uses;
  std::vector<SetPtr> alive;
  for (int i = 0; i < TruthPool::kMostUses; ++i) {
    alive.push_back(*pool.draw(Context(), toy.task.shapes[0], "made", "p" + std::to_string(i)));
    ++uses[alive.back().get()];
  }
  EXPECT_EQ(toy.made, 1);  // all programs used one set
  alive.push_back(*pool.draw(Context(), toy.task.shapes[0], "made", "another"));
  EXPECT_EQ(toy.made, 2);
  EXPECT_EQ(uses.count(alive.back().get()), 0U);
}

TEST(TruthPool, ASetThatAnotherProgramMetIsNotGivenTwice) {
  ToyTask toy(same);
  TruthPool pool(toy.task, toy.source());
  auto first = *pool.draw(Context(), toy.task.shapes[0], "made", "p");
  EXPECT_EQ(pool.draw(Context(), toy.task.shapes[0], "made", "q")->get(), first.get());
  EXPECT_NE(pool.draw(Context(), toy.task.shapes[0], "made", "q")->get(), first.get());
  EXPECT_EQ(toy.made, 2);
}

TEST(TruthPool, ShapesAndFamiliesAreApart) {
  ToyTask toy(same);
  TruthPool pool(toy.task, toy.source());
  (void)pool.draw(Context(), toy.task.shapes[0], "made", "p");
  auto other = *pool.draw(Context(), toy.task.shapes[0], "signed", "q");
  EXPECT_EQ(other->family, "signed");
  EXPECT_EQ(toy.made, 2);
}

TEST(TruthPool, WhatIsMadeAsideIsNotDrawn) {
  ToyTask toy(same);
  TruthPool pool(toy.task, toy.source());
  auto aside = *pool.make(Context(), toy.task.shapes[0], "made");
  EXPECT_NE(pool.draw(Context(), toy.task.shapes[0], "made", "p")->get(), aside.get());
}

TEST(TruthPool, SeedsDiffer) {
  ToyTask toy(same);
  std::set<uint64_t> seeds;
  auto source = toy.source();
  TruthPool pool(toy.task,
                 [&](const Context& c, const ShapeCase& s, const std::string& f, uint64_t seed) {
                   seeds.insert(seed);
                   return source(c, s, f, seed);
                 });
  for (int i = 0; i < 5; ++i) (void)pool.make(Context(), toy.task.shapes[0], "made");
  EXPECT_EQ(seeds.size(), 5U);
}

TEST(TruthPool, OneProgramJudgedForEverKeepsTheStockSmall) {
  ToyTask toy(same);
  TruthPool pool(toy.task, toy.source());
  std::vector<std::weak_ptr<const InputSet>> seen;
  for (int i = 0; i < 20; ++i)
    seen.push_back(*pool.draw(Context(), toy.task.shapes[0], "made", "p"));
  auto held = std::count_if(seen.begin(), seen.end(), [](auto& s) { return !s.expired(); });
  EXPECT_LE(held, int64_t(2 * TruthPool::kStock));
  EXPECT_GE(held, 1);
}

TEST(Shapes, OnlyALargeOfficialOneIsNotJudged) {
  ShapeCase s{.name = "a", .kind = ShapeKind::small};
  s.least_bytes = Bytes{int64_t{1} << 40};
  EXPECT_TRUE(is_test_shape(s));
  s.kind = ShapeKind::official;
  EXPECT_FALSE(is_test_shape(s));
  s.least_bytes = Bytes{int64_t{2} << 20};
  EXPECT_TRUE(is_test_shape(s));
  s.least_bytes = Bytes{(int64_t{2} << 20) + 1};
  EXPECT_FALSE(is_test_shape(s));
}

TEST(Rungs, WhoseFaultAnErrorIs) {
  EXPECT_EQ(rung_of({ErrorKind::user, "x"})->status, Status::failed);
  EXPECT_EQ(rung_of({ErrorKind::unsupported, "x"})->status, Status::unsupported);
  EXPECT_FALSE(rung_of({ErrorKind::world, "x"}));
  EXPECT_FALSE(rung_of({ErrorKind::cancelled, "x"}));
  EXPECT_FALSE(rung_of({ErrorKind::user, "x"})->passed);
}

TEST(Floor, IsTheLeastTrafficAtTheOfficialShape) {
  Task task = ToyTask(same).task;
  task.shapes[0].least_bytes = Bytes{4'800'000'000};
  task.shapes[0].tensors["out"] = {1200};
  const Roofline r = floor_of(*find_gpu("h200"), task);
  EXPECT_NEAR(r.floor_ns, 1e6 - 1, 0.01) << "4800 bytes of outputs stay in the L2";
  EXPECT_EQ(r.bound_by, RooflineBound::memory);
  task.shapes[0].flops = Flops{66.9e12};
  const Roofline heavy = floor_of(*find_gpu("h200"), task);
  EXPECT_EQ(heavy.floor_ns, r.floor_ns) << "operations do not raise the floor";
  EXPECT_EQ(heavy.bound_by, RooflineBound::compute);
  EXPECT_GT(heavy.roofline_ns, 1e8);
}

Timing of_time(double ns) {
  Timing t;
  t.time_ns = ns;
  return t;
}

TEST(Floor, AloneRejectsAMeasurement) {
  const Roofline bounds{.floor_ns = 1000,
                        .reachable_ns = 1200,
                        .roofline_ns = 50'000,
                        .compute_ns = 50'000,
                        .memory_ns = 1000,
                        .bound_by = RooflineBound::compute};
  TimingOutcome below;
  hold_to_floor(bounds, of_time(960), below);
  EXPECT_EQ(below.end.status, Status::rejected);
  EXPECT_THAT(below.end.headline, HasSubstr("below the floor of 1 us"));
  TimingOutcome near;
  hold_to_floor(bounds, of_time(980), near);
  EXPECT_EQ(near.end.status, Status::correct) << "events may be this inexact";
  TimingOutcome algebra;
  hold_to_floor(bounds, of_time(9000), algebra);
  EXPECT_EQ(algebra.result, RungResult::passed);
  EXPECT_EQ(algebra.end.status, Status::correct);
  EXPECT_TRUE(algebra.marks.empty()) << "beating an estimate is no fault";
  EXPECT_THAT(algebra.end.detail, HasSubstr("below the roofline of 50 us, an estimate"));
  TimingOutcome usual;
  hold_to_floor(bounds, of_time(60'000), usual);
  EXPECT_TRUE(usual.end.detail.empty());
}

TEST(Addresses, AreTwiceTheTensorsAndNeverOverflow) {
  Task task = ToyTask(same).task;
  task.shapes[0].kind = ShapeKind::official;
  EXPECT_EQ(large_addresses(task), 2 * (2048 * 4 + 2048 * 4));
  task.shapes[0].tensors["x"] = {int64_t{1} << 40, 1 << 18};
  EXPECT_GT(large_addresses(task), int64_t{1} << 60);
  task.tensors.push_back({.name = "y", .role = TensorRole::input, .dtype = DType::f64});
  task.shapes[0].tensors["y"] = {int64_t{1} << 40, 1 << 18};
  EXPECT_GT(large_addresses(task), 0);
}

}  // namespace
}  // namespace cutegen::eval
