// SPDX-License-Identifier: Apache-2.0
// Timed runs with a driver without a GPU: the real runner, memory by handles, the incumbent.
#include "eval/rungs/paired_runs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "device/testing/driver_process.h"
#include "eval/judge/time_shapes.h"
#include "eval/rungs/measure.h"
#include "eval/testing/official_stage.h"

namespace cutegen::eval {
namespace {

using testing::Contains;
using testing::Each;
using testing::HasSubstr;
using testing::SizeIs;
using testing_world::OfficialStage;

TEST(PairedRuns, AnOfficialSetIsMappedAndItsCopiesAreComparedInEveryMode) {
  device::cuda::with_driver("good", [] {
    OfficialStage stage;
    PairedRuns runs(stage.world.services, stage.world.toy.task, *stage.prepared,
                    *official_of(*stage.prepared));
    ASSERT_TRUE(runs.prepare(Context(), "p", stage.set(), &stage.world.program));
    EXPECT_TRUE(runs.paired()) << runs.note();
    EXPECT_FALSE(runs.too_large());
    auto end = runs.begin(Context());
    ASSERT_TRUE(end) << end.error().text();
    EXPECT_FALSE(*end);
    end = runs.control(Context(), 4);
    ASSERT_TRUE(end) << end.error().text();
    EXPECT_FALSE(*end);
    for (TimeMode mode : {TimeMode::cold, TimeMode::warm, TimeMode::graph, TimeMode::call}) {
      end = runs.block(Context(), mode, 12);  // more runs than copies
      ASSERT_TRUE(end) << end.error().text();
      EXPECT_FALSE(*end);
      EXPECT_THAT(runs.last().own, SizeIs(12));
      EXPECT_THAT(runs.last().other, SizeIs(12));
      if (mode != TimeMode::call) {
        EXPECT_THAT(runs.last().own, Each(5e5));
      }
    }
  });
}

// The fake kernel writes nothing. Without the truth, only the output's pattern shows that.
TEST(PairedRuns, WithoutASetAnOutputThatKeepsItsPatternFails) {
  device::cuda::with_driver("good", [] {
    OfficialStage stage;
    stage.world.pool.emplace(stage.world.toy.task, stage.world.toy.source());
    stage.world.services.pool = lent(*stage.world.pool);
    PairedRuns runs(stage.world.services, stage.world.toy.task, *stage.prepared,
                    *official_of(*stage.prepared));
    auto ready = runs.prepare(Context(), "p", nullptr, nullptr);
    ASSERT_TRUE(ready) << ready.error().text();
    auto end = runs.begin(Context());
    ASSERT_TRUE(end && !*end);
    end = runs.block(Context(), TimeMode::cold, 4);
    ASSERT_TRUE(end) << end.error().text();
    ASSERT_TRUE(*end);
    EXPECT_THAT((*end)->end.headline, HasSubstr("is not written"));
    EXPECT_FALSE(runs.paired());
  });
}

// Why the shape `huge` is not timed on a GPU with 3 GiB.
std::string too_large(ShapeCase huge) {
  OfficialStage stage;
  stage.world.pool.emplace(stage.world.toy.task, stage.world.toy.source());
  stage.world.services.pool = lent(*stage.world.pool);
  stage.world.toy.task.file = "tasks/softmax.py";
  huge.tensors = stage.world.toy.task.official().tensors;
  for (auto& [name, dims] : huge.tensors) dims[0] = 1 << 25;  // 4 GiB each
  PreparedShape shape = *official_of(*stage.prepared);
  shape.shape = &huge;
  PairedRuns runs(stage.world.services, stage.world.toy.task, *stage.prepared, shape);
  auto ready = runs.prepare(Context(), "p", nullptr, nullptr);
  EXPECT_TRUE(ready) << ready.error().text();
  auto end = runs.too_large();
  if (!end) return "it fits";
  EXPECT_EQ(end->result, RungResult::skipped);
  return end->end.detail;
}

TEST(PairedRuns, AWeightedShapeThatDoesNotFitIsNamedWithARemedy) {
  device::cuda::with_driver("small", [] {
    EXPECT_EQ(
        too_large({.name = "huge", .kind = ShapeKind::user, .weight = 2}),
        "no time: the shape 'huge' needs 8.59 GB, NVIDIA H200 has 3.22 GB; give it weight = 0 "
        "or smaller constants in the side file");
  });
}

TEST(PairedRuns, AnOfficialShapeThatDoesNotFitIsNamedWithARemedy) {
  device::cuda::with_driver("small", [] {
    EXPECT_EQ(too_large({.name = "official", .kind = ShapeKind::official}),
              "no time: the official shape needs 8.59 GB, NVIDIA H200 has 3.22 GB; use smaller "
              "sizes in softmax.py");
  });
}

TEST(PairedRuns, MemoryOfOtherProcessesIsLeftToThem) {
  for (const auto& [how, bytes_each, copies] :
       {std::tuple("good", int64_t{4} << 30, 8), std::tuple("taken", int64_t{4} << 30, 2),
        std::tuple("taken", int64_t{16} << 30, 1)}) {
    device::cuda::with_driver(how, [&, bytes = bytes_each, most = copies] {
      OfficialStage stage;
      stage.world.pool.emplace(stage.world.toy.task, stage.world.toy.source());
      stage.world.services.pool = lent(*stage.world.pool);
      ShapeCase large = stage.world.toy.task.official();
      for (auto& [name, dims] : large.tensors) dims[0] = bytes / 128;
      PreparedShape shape = *official_of(*stage.prepared);
      shape.shape = &large;
      PairedRuns runs(stage.world.services, stage.world.toy.task, *stage.prepared, shape);
      ASSERT_TRUE(runs.prepare(Context(), "p", nullptr, nullptr));
      EXPECT_FALSE(runs.too_large());
      EXPECT_EQ(runs.copies(), most) << bytes;
    });
  }
}

// Times two shapes of a program and the incumbent through the whole rung.
TEST(PairedRuns, EveryWeightedShapeIsTimedInTurnWithTheIncumbent) {
  device::cuda::with_driver("good", [] {
    OfficialStage stage;
    stage.world.services.device_name = "cuda:0", stage.world.services.device.name = "cuda:0";
    ShapeCase wide = stage.world.toy.task.official();
    wide.name = "wide", wide.kind = ShapeKind::user, wide.weight = 3;
    stage.world.toy.task.shapes.push_back(wide);
    Prepared prepared(stage.world.program, stage.world.toy.task);
    ASSERT_TRUE(prepared.compile(Context(), stage.world.services)->passed);
    ASSERT_TRUE(prepared.load(Context(), stage.world.services)->passed);
    std::vector<std::string> shapes;
    auto timed = time_shapes(prepared, [&](const PreparedShape& shape) {
      shapes.push_back(shape.shape->name);
      MeasureOptions options{.program_id = "p",
                             .set = stage.set(),
                             .against = &stage.world.program,
                             .shape = &shape,
                             .drop_losers = false};
      return measure_official({.ctx = Context(),
                               .services = stage.world.services,
                               .task = stage.world.toy.task,
                               .prepared = prepared,
                               .progress = [](const std::string&) {}},
                              options);
    });
    ASSERT_TRUE(timed) << timed.error().text();
    EXPECT_THAT(shapes, testing::ElementsAre("official", "wide"));
    ASSERT_TRUE(timed->outcome.timing) << timed->outcome.end.detail;
    const Timing& t = *timed->outcome.timing;
    EXPECT_EQ(t.origin, Origin::measured);
    EXPECT_NEAR(t.time_ns, 5e5, 1e-6);
    ASSERT_THAT(t.shapes, SizeIs(2));
    EXPECT_EQ(t.shapes[1].weight, 3);
    ASSERT_THAT(t.paired, SizeIs(1));
    EXPECT_NEAR(t.paired[0].speedup, 1, 1e-9);
    EXPECT_EQ(t.paired[0].pairs, t.shapes[0].paired[0].pairs + t.shapes[1].paired[0].pairs);
    EXPECT_THAT(timed->outcome.end.detail, HasSubstr("1.000x as fast as the incumbent"));
    EXPECT_EQ(timed->official->shape, "official");
  });
}

TEST(PairedRuns, WhatWasNotOverwrittenBetweenRunsIsAMark) {
  device::cuda::with_driver("no_scrub", [] {
    OfficialStage stage;
    auto out = measure_official({.ctx = Context(),
                                 .services = stage.world.services,
                                 .task = stage.world.toy.task,
                                 .prepared = *stage.prepared,
                                 .progress = [](const std::string&) {}},
                                {.program_id = "p", .set = stage.set()});
    ASSERT_TRUE(out) << out.error().text();
    EXPECT_TRUE(out->timing);
    EXPECT_THAT(out->marks, Contains("not overwritten between runs, because the driver refuses: "
                                     "local memory, registers"));
  });
}

TEST(PairedRuns, AClockThatFellIsTold) {
  device::cuda::with_driver("slow_clock", [] {
    OfficialStage stage;
    auto out = measure_official({.ctx = Context(),
                                 .services = stage.world.services,
                                 .task = stage.world.toy.task,
                                 .prepared = *stage.prepared,
                                 .progress = [](const std::string&) {}},
                                {.program_id = "p", .set = stage.set()});
    ASSERT_TRUE(out) << out.error().text();
    ASSERT_TRUE(out->timing);
    EXPECT_DOUBLE_EQ(out->timing->sm_clock_least_hz.value_or(0), 1e9);
    EXPECT_THAT(out->marks, Contains(HasSubstr("the SM clock fell to 1000 MHz, of 1980 (")));
  });
}

TEST(PairedRuns, BlocksThatRepeatInputsAreCounted) {
  device::cuda::with_driver("good", [] {
    OfficialStage stage;
    stage.make_sets(int64_t{1} << 40);
    const Task& task = stage.world.toy.task;
    // One set on which p has not run.
    ASSERT_TRUE(stage.official->draw(Context(), task, task.official(), "made", "somebody"));
    PairedRuns runs(stage.world.services, task, *stage.prepared, *official_of(*stage.prepared));
    ASSERT_TRUE(runs.prepare(Context(), "p", stage.set(), nullptr));
    ASSERT_TRUE(runs.begin(Context()));
    for (const char* remark : {"", "", "1 of 3 timed blocks repeated earlier inputs",
                               "2 of 4 timed blocks repeated earlier inputs"}) {
      auto end = runs.block(Context(), TimeMode::cold, 4);
      ASSERT_TRUE(end) << end.error().text();
      EXPECT_FALSE(*end);
      EXPECT_EQ(runs.inputs().remark(), remark);
    }
  });
}

TEST(PairedRuns, RepeatedInputsAreAMark) {
  device::cuda::with_driver("good", [] {
    OfficialStage stage;  // makes no more sets
    auto out = measure_official({.ctx = Context(),
                                 .services = stage.world.services,
                                 .task = stage.world.toy.task,
                                 .prepared = *stage.prepared,
                                 .progress = [](const std::string&) {}},
                                {.program_id = "p", .set = stage.set()});
    ASSERT_TRUE(out) << out.error().text();
    EXPECT_THAT(out->marks, Contains(HasSubstr("timed blocks repeated earlier inputs")));
  });
}

// The driver reports slow coolings at first, as if it overwrote freed memory.
TEST(PairedRuns, RunsAreRepeatedUntilTheMemoryIsQuiet) {
  device::cuda::with_driver("busy_memory", [] {
    OfficialStage stage;
    PairedRuns runs(stage.world.services, stage.world.toy.task, *stage.prepared,
                    *official_of(*stage.prepared));
    ASSERT_TRUE(runs.prepare(Context(), "p", stage.set(), nullptr));
    ASSERT_TRUE(runs.begin(Context()));
    auto end = runs.control(Context(), 8);
    ASSERT_TRUE(end) << end.error().text();
    EXPECT_TRUE(stage.runner.memory().is_known());
    EXPECT_TRUE(stage.runner.memory().is_quiet());
    end = runs.block(Context(), TimeMode::cold, 8);
    ASSERT_TRUE(end) << end.error().text();
    EXPECT_EQ(runs.last().state.at("cooling_ns"), 5e5);
    EXPECT_EQ(runs.busy_blocks(), 0);
  });
}

TEST(PairedRuns, AMemoryThatStaysBusyIsAMark) {
  device::cuda::with_driver("always_busy_memory", [] {
    OfficialStage stage;
    const auto start = Clock::now();
    auto out = measure_official({.ctx = Context(),
                                 .services = stage.world.services,
                                 .task = stage.world.toy.task,
                                 .prepared = *stage.prepared,
                                 .progress = [](const std::string&) {}},
                                {.program_id = "p", .set = stage.set()});
    ASSERT_TRUE(out) << out.error().text();
    EXPECT_TRUE(out->timing);
    EXPECT_THAT(out->marks,
                Contains("other work slowed the GPU's memory down during 4 of 4 blocks of timed "
                         "runs"));
    EXPECT_LT(Clock::now() - start, std::chrono::seconds(60));
  });
}

}  // namespace
}  // namespace cutegen::eval
