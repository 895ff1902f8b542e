// SPDX-License-Identifier: Apache-2.0
#include "engine/report/fail_under.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/testing/toy_world.h"

namespace cutegen::engine {
namespace {

using testing::HasSubstr;
using toy::numbered_program;
using toy::relu_task;
using toy::timed;
using toy::toy_certificate;

RunView one_step(const DeviceName& device) {
  RunView view;
  view.settings.evaluator.device = device;
  view.task = relu_task();
  for (double ns : {100.0, 50.0}) {
    RunStep step;
    step.candidate.id = view.next_id();
    step.candidate.program = numbered_program(1);
    step.verdict = timed(ns);
    step.verdict->timing->low_ns = ns * 0.99, step.verdict->timing->high_ns = ns * 1.01;
    step.decision = Decision::accepted;
    view.best = step.candidate.id;
    view.steps.push_back(step);
  }
  view.first_ns = 100;
  return view;
}

TEST(FailUnder, OnASimulatorTheFirstCorrectProgramCounts) {
  RunView view = one_step("sim:h200");
  auto gain = best_gain(view);
  ASSERT_TRUE(gain);
  EXPECT_EQ(gain->by, GainFrom::first);
  EXPECT_EQ(gain->ratio, 2);
  EXPECT_NEAR(gain->low, 99 / 50.5, 1e-9);
  EXPECT_TRUE(reaches(gain, 1.9));
  EXPECT_FALSE(reaches(gain, 2)) << "the lower end counts, not the median";
}

TEST(FailUnder, OnAGpuABaselineHasToBeKnown) {
  RunView view = one_step("cuda:0");
  EXPECT_FALSE(best_gain(view)) << "the first program is no baseline";
  EXPECT_FALSE(reaches(best_gain(view), 0.1));
  EXPECT_THAT(to_text(best_gain(view)), HasSubstr("there is no baseline"));
  view.baselines = TaskBaselines{.times = {{.kind = "eager",
                                            .time_ns = 80,
                                            .low_ns = 79,
                                            .high_ns = 81,
                                            .samples = 8,
                                            .origin = Origin::measured,
                                            .far = 0,
                                            .build_s = 1,
                                            .why = ""},
                                           {.kind = "eager-tf32",
                                            .time_ns = 20,
                                            .low_ns = 19,
                                            .high_ns = 21,
                                            .samples = 8,
                                            .origin = Origin::measured,
                                            .far = 0,
                                            .build_s = 1,
                                            .why = ""}},
                                 .note = ""};
  auto gain = best_gain(view);
  ASSERT_TRUE(gain);
  EXPECT_EQ(gain->against, "eager") << "tf32 is another math mode";
  EXPECT_EQ(gain->by, GainFrom::baselines);
  EXPECT_NEAR(gain->low, 79 / 50.5, 1e-9);
}

TEST(FailUnder, ACertificateOfTheBestProgramDecides) {
  RunView view = one_step("cuda:0");
  view.certified =
      BestCertificate{.candidate = "c2", .certificate = toy_certificate(numbered_program(1))};
  auto gain = best_gain(view);
  ASSERT_TRUE(gain);
  EXPECT_EQ(gain->by, GainFrom::certificate);
  EXPECT_EQ(gain->against, "compile");
  EXPECT_EQ(gain->low, 1.98);
  EXPECT_THAT(to_text(gain),
              HasSubstr("at least 1.980x over compile (certified, cold; median 2.000x)"));
  EXPECT_FALSE(reaches(gain, 2));
  view.certified->candidate = "c1";
  EXPECT_FALSE(best_gain(view)) << "that belongs to another program";
}

TEST(FailUnder, ABaselineThatFailsTheProgramsGateIsNotTheHardest) {
  RunView view = one_step("cuda:0");
  Certificate c = toy_certificate(numbered_program(1));
  c.baselines = {
      {.kind = "eager",
       .accuracy =
           {.precision = "fp32", .coarser = false, .share = 0.5, .passes = true, .why = ""}},
      {.kind = "compile",
       .accuracy = {.precision = "tf32 convolutions",
                    .coarser = true,
                    .share = 40,
                    .passes = false,
                    .why = "every element"}},
      {.kind = "eager-tf32",
       .accuracy = {
           .precision = "tf32", .coarser = true, .share = 0.9, .passes = true, .why = ""}}};
  view.certified = BestCertificate{.candidate = "c2", .certificate = c};
  auto gain = best_gain(view);
  ASSERT_TRUE(gain);
  EXPECT_EQ(gain->against, "eager-tf32") << "as exact as a program has to be";
  view.certified->certificate->baselines[2].accuracy.passes.reset();
  EXPECT_EQ(best_gain(view)->against, "eager");
}

TEST(FailUnder, ImportedTimesAreNotComparedWithThisRunsOwn) {
  RunView view = one_step("sim:h200");
  view.steps.back().imported = ImportedFrom{
      .entry = "c2", .entry_sha256 = "", .device = "NVIDIA H200", .origin = Origin::measured};
  EXPECT_FALSE(best_gain(view));
  EXPECT_FALSE(view.over_first(view.steps.back()));
  EXPECT_EQ(view.over_floor(view.steps.back()), 5);
}

TEST(FailUnder, NothingCorrectReachesNothing) {
  RunView view;
  EXPECT_FALSE(best_gain(view));
}

}  // namespace
}  // namespace cutegen::engine
