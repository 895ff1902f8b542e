// SPDX-License-Identifier: Apache-2.0
// Times the baselines of one task with a scripted worker that may hang, die or break.
#include "eval/baselines/baselines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "eval/testing/toy_worker.h"

namespace cutegen::eval {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Task toy_task() {
  Task task;
  task.name = "toy";
  task.shapes.resize(1);
  return task;
}

BaselinesTimed timed(ToyWorker& worker, const std::vector<std::string>& kinds,
                     const BaselineLimits& limits = {}) {
  auto wanted = baselines_named(kinds);
  EXPECT_TRUE(wanted);
  auto out = time_baselines(Context(), worker, toy_task(), *wanted, limits);
  EXPECT_TRUE(out) << out.error().text();
  return std::move(*out);
}

TEST(Baselines, AreTimedOneAfterTheOther) {
  ToyWorker worker;
  worker.ways["eager"].samples = {3e6, 3.1e6, 2.9e6};
  BaselinesTimed t = timed(worker, {"eager", "compile"});
  ASSERT_EQ(t.times.size(), 2U);
  EXPECT_NEAR(t.times[0].time_ns, 3e6, 1e3);
  EXPECT_GE(t.times[0].samples, 40);  // 0.15 s of runs
  EXPECT_LE(t.times[0].low_ns, t.times[0].time_ns);
  EXPECT_EQ(t.times[0].origin, Origin::measured);
  EXPECT_DOUBLE_EQ(t.times[1].time_ns, 100);
  EXPECT_THAT(worker.added, ElementsAre("eager", "compile"));
  EXPECT_EQ(worker.opened, 1);
  EXPECT_EQ(worker.closed, 1);
  EXPECT_FALSE(t.broken);
}

TEST(Baselines, LongRunsAreFewAndWideOnesAreTimedOnceMore) {
  ToyWorker worker;
  worker.ways["eager"].samples = {1e9};
  worker.ways["compile"].samples = {1e9, 2e9};
  BaselinesTimed t = timed(worker, {"eager", "compile"});
  EXPECT_EQ(t.times[0].samples, 12);
  EXPECT_EQ(t.times[1].samples, 52);
}

TEST(Baselines, OneThatRaisesHasAReasonAndTheOthersGoOn) {
  ToyWorker worker;
  worker.ways["compile"].why = "the baseline compile raises BackendCompilerFailed";
  BaselinesTimed t = timed(worker, {"eager", "compile", "compile-max"});
  EXPECT_TRUE(t.times[0].known());
  EXPECT_THAT(t.times[1].why, HasSubstr("BackendCompilerFailed"));
  EXPECT_FALSE(t.times[1].known());
  EXPECT_TRUE(t.times[2].known());
  EXPECT_FALSE(t.out_of_memory);
}

TEST(Baselines, AHungBuildIsEndedAndTheModuleOpenedAgain) {
  ToyWorker worker;
  worker.ways["compile"].hangs = true;
  BaselineLimits limits;
  limits.build = std::chrono::milliseconds(20);
  BaselinesTimed t = timed(worker, {"eager", "compile", "compile-max"}, limits);
  EXPECT_EQ(t.times[1].why, "it was still being built after 20 ms, so cutegen ended it");
  EXPECT_TRUE(t.times[2].known());
  EXPECT_EQ(worker.opened, 2);
}

TEST(Baselines, ABuildLeavesHalfOfWhatIsLeftToOthers) {
  ToyWorker worker;
  worker.ways["compile-max"].hangs = true;
  auto wanted = baselines_named({"eager", "compile-max"});
  auto out = time_baselines(Context().with_timeout(std::chrono::milliseconds(400)), worker,
                            toy_task(), *wanted, {});
  ASSERT_TRUE(out) << out.error().text();
  EXPECT_TRUE(out->times[0].known());
  EXPECT_THAT(out->times[1].why, HasSubstr("it was still being built after"));
  EXPECT_TRUE(out->cut);
  BaselineLimits limits;
  limits.build = std::chrono::milliseconds(5);
  EXPECT_FALSE(timed(worker, {"compile-max"}, limits).cut) << "the whole limit was available";
}

TEST(Baselines, ADeadWorkerIsAReason) {
  ToyWorker worker;
  worker.ways["compile"].dies = true;
  BaselinesTimed t = timed(worker, {"compile", "eager"});
  EXPECT_THAT(t.times[0].why, HasSubstr("SIGSEGV"));
  EXPECT_TRUE(t.times[1].known());
  EXPECT_EQ(worker.opened, 2);
}

TEST(Baselines, AModuleThatDoesNotFitIsToldAsSuch) {
  ToyWorker worker;
  worker.module_why = "the module on the GPU: out of memory: Tried to allocate 90 GiB";
  BaselinesTimed t = timed(worker, {"eager", "compile"});
  EXPECT_TRUE(t.out_of_memory);
  EXPECT_THAT(t.times[0].why, HasSubstr("out of memory"));
  EXPECT_THAT(t.times[1].why, HasSubstr("out of memory"));
}

TEST(Baselines, AWorkerWhoseCudaIsBrokenIsTold) {
  ToyWorker worker;
  worker.close_fails = true;
  EXPECT_TRUE(timed(worker, {"eager"}).broken);
}

TEST(Baselines, TheEndOfTheContextIsAnError) {
  ToyWorker worker;
  worker.ways["eager"].never_ends = true;
  const Context ctx = Context().with_timeout(std::chrono::milliseconds(10));
  auto t = time_baselines(ctx, worker, toy_task(), {{.kind = BaselineKind::eager}}, {});
  ASSERT_FALSE(t);
  EXPECT_EQ(t.error().kind, ErrorKind::timeout);
}

ShapeCase shape(const std::string& name, ShapeKind kind, double weight) {
  ShapeCase out;
  out.name = name, out.kind = kind, out.weight = weight;
  return out;
}

TEST(Baselines, OfSeveralWeightedShapesTheirMeanCounts) {
  ToyWorker worker;
  Task task = toy_task();
  task.shapes = {shape("official", ShapeKind::official, 1), shape("small", ShapeKind::small, 1),
                 shape("wide", ShapeKind::user, 3), shape("tested", ShapeKind::user, 0)};
  worker.ways["eager"].samples = {1e9};
  std::vector<std::string> told;
  auto out = time_baselines(
      Context(), worker, task, {{.kind = BaselineKind::eager}, {.kind = BaselineKind::compile}}, {},
      [&](const std::string& text) {
        told.push_back(text);
        if (text == "shape wide: opening the module")
          worker.ways["eager"].samples = {16e9}, worker.ways["compile"].why = "it raises";
      });
  ASSERT_TRUE(out) << out.error().text();
  EXPECT_THAT(worker.shapes, ElementsAre("official", "wide"));
  EXPECT_NEAR(out->times[0].time_ns, 8e9, 1);
  EXPECT_EQ(out->times[0].samples, 24);
  EXPECT_FALSE(out->times[1].known());
  EXPECT_EQ(out->times[1].why, "shape 'wide': it raises");
}

TEST(Baselines, TheStrictRowIsTimedOnlyBesideAConvolution) {
  ToyWorker worker;
  BaselinesTimed t = timed(worker, {"eager", "eager-fp32"});
  EXPECT_THAT(t.times[1].why, HasSubstr("same as eager: no float32 convolution"));
  EXPECT_THAT(worker.added, ElementsAre("eager"));
  Task task = toy_task();
  Node conv;
  conv.op = "aten.convolution.default",
  conv.outputs = {{.name = "y", .dtype = DType::f32, .shape = {4}}};
  task.graph.nodes = {conv};
  task.tensors = {{.name = "x", .role = TensorRole::input, .dtype = DType::f32}};
  auto out =
      time_baselines(Context(), worker, task,
                     {{.kind = BaselineKind::eager}, {.kind = BaselineKind::eager_fp32}}, {});
  ASSERT_TRUE(out) << out.error().text();
  EXPECT_TRUE(out->times[1].known());
  EXPECT_EQ(out->times[0].accuracy.precision, "tf32 convolutions");
  EXPECT_TRUE(out->times[0].accuracy.coarser);
  EXPECT_EQ(best_baseline(out->times, MathMode::fp32)->kind, "eager-fp32");
}

TEST(Baselines, WhoseAccuracyCannotBeKnownSaysWhy) {
  ToyWorker worker;
  BaselineSets none;
  none.missing = "torch is built without CUDA";
  worker.ways["compile"].why = "it raises";
  auto out = time_baselines(Context(), worker, toy_task(),
                            {{.kind = BaselineKind::eager}, {.kind = BaselineKind::compile}}, {},
                            {}, [&](const ShapeCase&) { return none; });
  ASSERT_TRUE(out) << out.error().text();
  EXPECT_FALSE(out->times[0].accuracy.passes);
  EXPECT_EQ(out->times[0].accuracy.why, "torch is built without CUDA");
  EXPECT_EQ(out->times[0].accuracy.precision, "fp32");
  EXPECT_EQ(out->times[1].accuracy.why, "") << "compile was not timed";
}

TEST(Baselines, NamesAreChecked) {
  auto own = baselines_named({"eager", "mine:fast"});
  ASSERT_TRUE(own);
  EXPECT_EQ((*own)[1].kind, BaselineKind::callable);
  EXPECT_EQ((*own)[1].target, "mine:fast");
  EXPECT_FALSE(baselines_named({"egaer"}));
  EXPECT_FALSE(baselines_named({"a:b", "c:d"}));
}

}  // namespace
}  // namespace cutegen::eval
