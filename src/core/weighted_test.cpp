// SPDX-License-Identifier: Apache-2.0
// Headlines of several weighted shapes: means of times, of ratios, and of their intervals.
#include "core/weighted.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace cutegen {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::SizeIs;

ShapeCase shape(const std::string& name, ShapeKind kind, double weight) {
  ShapeCase out;
  out.name = name, out.kind = kind, out.weight = weight;
  return out;
}

Timing timing(double ns, double speedup) {
  Timing t;
  t.origin = Origin::measured, t.shape = "any";
  t.time_ns = ns, t.low_ns = 0.9 * ns, t.high_ns = 1.1 * ns, t.floor_ns = ns / 2;
  t.samples = 8, t.sm_clock_hz = ns * 1e6,
  t.clock = ClockCheck{.claimed_ns = 1, .seen_ns = 2, .agrees = true};
  t.paired = {{.against = "incumbent",
               .program_id = "p",
               .speedup = speedup,
               .low = speedup / 1.1,
               .high = speedup * 1.1,
               .other_ns = ns * speedup,
               .pairs = 8,
               .stopped = "precise"}};
  return t;
}

TEST(AdviceToShrink, NamesTheFileWithTheSizes) {
  Task task;
  task.file = "tasks/softmax.py";
  EXPECT_EQ(advice_to_shrink(task, shape("official", ShapeKind::official, 1)),
            "use smaller sizes in softmax.py");
  EXPECT_EQ(advice_to_shrink(task, shape("wide", ShapeKind::user, 2)),
            "give it weight = 0 or smaller constants in the side file");
  EXPECT_EQ(advice_to_shrink({}, shape("official", ShapeKind::official, 1)),
            "use smaller sizes in the task file");
}

TEST(GeometricMean, WeighsLogarithms) {
  EXPECT_DOUBLE_EQ(geometric_mean({{1, 7}}), 7);
  EXPECT_NEAR(geometric_mean({{1, 1}, {3, 16}}), 8, 1e-12);
  EXPECT_NEAR(geometric_mean({{1e-6, 2}, {1e6, 8}}), 8, 1e-9);
  EXPECT_NEAR(geometric_mean({{1e308, 2}, {1e308, 8}}), 4, 1e-9) << "weights do not overflow";
  EXPECT_EQ(geometric_mean({{1, 2}, {1, 0}}), 0);
  EXPECT_EQ(geometric_mean({{0, 2}, {0, 3}}), 0) << "no weight";
  EXPECT_EQ(geometric_mean({}), 0);
  EXPECT_EQ(geometric_mean({{1, std::nan("")}}), 0);
}

TEST(TimedShapes, AreTheOfficialOneAndTheUsersOwnWithAWeight) {
  Task task;
  task.shapes = {shape("official", ShapeKind::official, 1), shape("small", ShapeKind::small, 1),
                 shape("tested", ShapeKind::user, 0), shape("wide", ShapeKind::user, 2)};
  std::vector<std::string> names;
  for (const ShapeCase* s : timed_shapes(task)) names.push_back(s->name);
  EXPECT_THAT(names, ElementsAre("official", "wide"));
}

TEST(Headline, OfOneShapeIsItsTiming) {
  const ShapeCase official = shape("official", ShapeKind::official, 3);
  const Timing t = headline_of({{.shape = &official, .timing = timing(100, 2)}});
  EXPECT_EQ(t.time_ns, 100);
  EXPECT_TRUE(t.shapes.empty());
}

TEST(Headline, OfSeveralIsTheirWeightedGeometricMean) {
  const ShapeCase official = shape("official", ShapeKind::official, 1),
                  wide = shape("wide", ShapeKind::user, 3);
  const Timing t = headline_of({{.shape = &official, .timing = timing(100, 2)},
                                {.shape = &wide, .timing = timing(1600, 0.5)}});
  EXPECT_EQ(t.shape, "weighted shapes");
  EXPECT_NEAR(t.time_ns, 800, 1e-9);
  EXPECT_NEAR(t.floor_ns, 400, 1e-9);
  EXPECT_NEAR(*t.low_ns, 720, 1e-9);
  EXPECT_NEAR(*t.high_ns, 880, 1e-9);
  EXPECT_EQ(t.roofline_ns, 0) << "not known of any";
  EXPECT_EQ(t.samples, 16);
  EXPECT_EQ(*t.sm_clock_hz, 100e6) << "the slowest";
  EXPECT_FALSE(t.sm_clock_least_hz);
  EXPECT_EQ(t.clock->seen_ns, 4);
  ASSERT_THAT(t.paired, SizeIs(1));
  EXPECT_NEAR(t.paired[0].speedup, std::pow(2 * 0.5 * 0.5 * 0.5, 0.25), 1e-12);
  EXPECT_NEAR(t.paired[0].high / t.paired[0].low, 1.21, 1e-9) << "as wide as each of them";
  EXPECT_EQ(t.paired[0].pairs, 16);
  ASSERT_THAT(t.shapes, SizeIs(2));
  EXPECT_EQ(t.shapes[1].shape, "wide");
  EXPECT_EQ(t.shapes[1].weight, 3);
  EXPECT_EQ(t.shapes[1].time_ns, 1600);
  EXPECT_THAT(t.shapes[1].paired, SizeIs(1));
}

TEST(Headline, HasNoRatioThatAShapeLacks) {
  const ShapeCase official = shape("official", ShapeKind::official, 1),
                  wide = shape("wide", ShapeKind::user, 1);
  Timing alone = timing(10, 2);
  alone.paired.clear(), alone.low_ns.reset(), alone.clock.reset();
  const Timing t = headline_of(
      {{.shape = &official, .timing = timing(10, 2)}, {.shape = &wide, .timing = alone}});
  EXPECT_TRUE(t.paired.empty());
  EXPECT_FALSE(t.low_ns);
  EXPECT_TRUE(t.high_ns);
  EXPECT_FALSE(t.clock);
}

TEST(HeadlineModes, AreThoseThatAllShapesHave) {
  CertifiedShape official{.shape = "official", .weight = 1, .floor_ns = 5},
      wide{.shape = "wide", .weight = 1, .floor_ns = 5};
  official.modes = {{.mode = TimeMode::cold,
                     .time_ns = 10,
                     .low_ns = 9,
                     .high_ns = 11,
                     .against = {{.against = "eager",
                                  .program_id = "",
                                  .speedup = 4,
                                  .low = 3,
                                  .high = 5,
                                  .other_ns = 40,
                                  .pairs = 8,
                                  .stopped = "precise"},
                                 {.against = "compile",
                                  .program_id = "",
                                  .speedup = 2,
                                  .low = 1,
                                  .high = 3,
                                  .other_ns = 20,
                                  .pairs = 8,
                                  .stopped = "precise"}}},
                    {.mode = TimeMode::call, .time_ns = 20, .low_ns = 19, .high_ns = 21}};
  wide.modes = {{.mode = TimeMode::cold,
                 .time_ns = 40,
                 .low_ns = 36,
                 .high_ns = 44,
                 .against = {{.against = "eager",
                              .program_id = "",
                              .speedup = 1,
                              .low = 0.75,
                              .high = 1.25,
                              .other_ns = 40,
                              .pairs = 8,
                              .stopped = "enough"}}}};
  const auto modes = headline_modes({official, wide});
  ASSERT_THAT(modes, SizeIs(1));
  EXPECT_THAT(modes[0].time_ns, DoubleNear(20, 1e-9));
  EXPECT_THAT(modes[0].low_ns, DoubleNear(18, 1e-9));
  ASSERT_THAT(modes[0].against, SizeIs(1)) << "compile has no time at the other shape";
  EXPECT_THAT(modes[0].against[0].speedup, DoubleNear(2, 1e-9));
  EXPECT_THAT(modes[0].against[0].low, DoubleNear(1.5, 1e-9));
  EXPECT_EQ(modes[0].against[0].stopped, "enough");
  EXPECT_TRUE(headline_modes({}).empty());
}

}  // namespace
}  // namespace cutegen
