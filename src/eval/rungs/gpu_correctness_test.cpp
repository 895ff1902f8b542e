// SPDX-License-Identifier: Apache-2.0
// Checks of large shapes with a driver without a GPU, on which every comparison finds nothing
// wrong.
#include "eval/rungs/gpu_correctness.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "device/testing/driver_process.h"
#include "eval/rungs/correctness.h"
#include "eval/testing/official_stage.h"

namespace cutegen::eval {
namespace {

using testing::HasSubstr;
using testing_world::OfficialStage;

CorrectnessRecord check_large_shapes(OfficialStage& stage) {
  CorrectnessRecord record;
  auto end = check_on_gpu({.ctx = Context(),
                           .services = stage.world.services,
                           .task = stage.world.toy.task,
                           .prepared = *stage.prepared,
                           .progress = [](const std::string&) {}},
                          "p", record);
  EXPECT_TRUE(end) << end.error().text();
  EXPECT_TRUE(end && end->passed);
  return record;
}

TEST(CheckOnGpu, FewerFamiliesForLackOfMemoryAreAMark) {
  device::cuda::with_driver("good", [] {
    OfficialStage stage;
    stage.world.services.families = {"made", "signed", "heavy", "outliers"};
    const auto needs = gpu_set_needs(stage.world.toy.task, stage.world.toy.task.official());
    ASSERT_TRUE(needs);
    stage.make_sets(4 * needs->set_bytes);
    CorrectnessRecord record = check_large_shapes(stage);
    EXPECT_EQ(record.sets_judged, 4);
    EXPECT_THAT(record.marks, testing::IsEmpty());
    stage.make_sets(3 * needs->set_bytes);
    record = check_large_shapes(stage);
    EXPECT_EQ(record.sets_judged, 3);
    EXPECT_THAT(record.marks,
                testing::ElementsAre(testing::AllOf(
                    HasSubstr("outputs at the official shape were compared on 3 of 4 input "
                              "families (made, outliers, "),
                    HasSubstr("because GPU memory cannot hold a set of each"))));
  });
}

TEST(CheckOnGpu, RecordsEveryShapeThatWasNotCompared) {
  device::cuda::with_driver("good", [] {
    OfficialStage stage;
    ShapeCase wide = stage.world.toy.task.official();
    wide.name = "wide", wide.kind = ShapeKind::user, wide.weight = 2;
    stage.world.toy.task.shapes.push_back(wide);
    stage.prepare();
    stage.make_sets(int64_t{1} << 40);
    CorrectnessRecord record = check_large_shapes(stage);
    EXPECT_EQ(record.sets_judged, 6);
    EXPECT_EQ(record.official_not_compared, "");
    EXPECT_THAT(record.weighted_not_compared, testing::IsEmpty());
    stage.make_sets(int64_t{1} << 40);
    stage.refuses = "the set needs 300 GB";
    record = check_large_shapes(stage);
    EXPECT_THAT(record.official_not_compared, HasSubstr("300 GB"));
    EXPECT_THAT(record.weighted_not_compared,
                testing::ElementsAre(testing::Pair("wide", HasSubstr("300 GB"))));
  });
}

}  // namespace
}  // namespace cutegen::eval
