// SPDX-License-Identifier: Apache-2.0
#include "eval/sets/test_shapes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cutegen::eval {
namespace {

TEST(TestShapes, AnOfficialShapeWithSmallTensorsAndMuchWorkIsNone) {
  ShapeCase shape{.name = "official", .kind = ShapeKind::official};
  shape.least_bytes = Bytes{1 << 20};
  shape.flops = Flops{1e8};
  EXPECT_TRUE(is_test_shape(shape));
  shape.flops = Flops{4.4e9};  // for example a convolution whose result is pooled twice
  EXPECT_FALSE(is_test_shape(shape));
  shape.flops = Flops{1e8};
  shape.least_bytes = Bytes{3 << 20};
  EXPECT_FALSE(is_test_shape(shape));
  shape.kind = ShapeKind::small;
  EXPECT_TRUE(is_test_shape(shape));
}

// A program may read only a few rows of a large cache, but drawing all its values takes long.
TEST(TestShapes, AnOfficialShapeWithALargeCacheIsNone) {
  ShapeCase shape{.name = "official", .kind = ShapeKind::official};
  shape.least_bytes = Bytes{1 << 20};
  shape.tensors = {{"cache", {1 << 12, 1 << 10}}};
  EXPECT_TRUE(is_test_shape(shape));
  shape.tensors = {{"cache", {1 << 13, 1 << 10}}};
  EXPECT_FALSE(is_test_shape(shape));
}

ShapeCase square(const std::string& name, ShapeKind kind, int64_t n, double weight = 0) {
  ShapeCase s{.name = name, .kind = kind, .weight = weight};
  s.tensors = {{"x", {n, n}}, {"out", {n, n}}};
  s.flops = Flops{2.0 * double(n * n * n)};
  return s;
}

TEST(TestShapes, ALargeUserShapeWithoutAWeightIsNotTestedOnASimulator) {
  Task task;
  task.shapes = {square("official", ShapeKind::official, 4096, 1),
                 square("small", ShapeKind::small, 64), square("fits", ShapeKind::user, 300),
                 square("large", ShapeKind::user, 2048), square("timed", ShapeKind::user, 2048, 1)};
  ASSERT_TRUE(drop_large_test_shapes(task, "add.toml"));
  std::vector<std::string> names;
  for (const ShapeCase& s : task.shapes) names.push_back(s.name);
  EXPECT_THAT(names, testing::ElementsAre("official", "small", "fits", "timed"));
  ASSERT_EQ(task.notes.size(), 1U);
  EXPECT_THAT(task.notes[0],
              testing::AllOf(testing::HasSubstr("the shape 'large' is not tested: with 17.2 GFLOP "
                                                "and 8.39 million elements"),
                             testing::HasSubstr("at most 100 MFLOP and 1.57 million elements"),
                             testing::HasSubstr("give it a weight")));
}

TEST(TestShapes, TheLimitIsTheWorkOfTheModulesOwnShapes) {
  Task task;
  task.shapes = {square("official", ShapeKind::official, 4096, 1),
                 square("small", ShapeKind::small, 500), square("user", ShapeKind::user, 520),
                 square("larger", ShapeKind::user, 560)};
  ASSERT_TRUE(drop_large_test_shapes(task, "add.toml"));  // small: 250 MFLOP
  EXPECT_EQ(task.shapes.size(), 3U);
  EXPECT_EQ(task.shapes.back().name, "user");
}

TEST(TestShapes, AProgramForSm90aMayDoMoreWork) {
  Task task;
  task.shapes = {square("official", ShapeKind::official, 4096, 1),
                 square("small", ShapeKind::small, 64)};
  const ShapeCase three_tiles = square("three tiles", ShapeKind::derived, 776);  // 0.93 GFLOP
  EXPECT_FALSE(WorkLimit(task).permits(three_tiles));
  EXPECT_TRUE(WorkLimit(task, true).permits(three_tiles));
  EXPECT_FALSE(WorkLimit(task, true).permits(square("more", ShapeKind::derived, 1024)));
}

// For example nn.Linear(6000, 6000), whose only shapes are the user's.
TEST(TestShapes, WithoutOwnShapesTheLimitIsWider) {
  Task task;
  ShapeCase rows = square("rows", ShapeKind::user, 1);
  rows.tensors = {{"x", {3, 6000}}, {"weight", {6000, 6000}}, {"out", {3, 6000}}};
  rows.flops = Flops{2.0 * 3 * 6000 * 6000};
  ShapeCase many = rows;
  many.name = "many", many.flops = Flops{2.0 * 8 * 6000 * 6000};
  task.shapes = {square("official", ShapeKind::official, 6000, 1), rows, many};
  ASSERT_TRUE(drop_large_test_shapes(task, "add.toml"));
  ASSERT_EQ(task.shapes.size(), 2U);
  EXPECT_EQ(task.shapes[1].name, "rows");
  EXPECT_EQ(task.notes.size(), 1U);
}

TEST(TestShapes, ASideFileWhoseShapesAreAllTooLargeIsAnErrorOnASimulator) {
  Task task;
  const Task bare{.shapes = {square("official", ShapeKind::official, 6000, 1)}};
  for (double weight : {0.0, 1.0}) {
    task = bare;
    task.shapes.push_back(square("large", ShapeKind::user, 5000, weight));
    auto kept = drop_large_test_shapes(task, "dir/linear.toml");
    ASSERT_FALSE(kept) << weight;
    EXPECT_EQ(kept.error().kind, ErrorKind::user);
    EXPECT_THAT(kept.error().message, testing::HasSubstr("no test shape is left"));
    EXPECT_EQ(kept.error().where, "dir/linear.toml");
    EXPECT_THAT(kept.error().remedy,
                testing::HasSubstr("add an entry with weight = 0, of at most 400 MFLOP and 50.3"));
  }
  task.shapes.push_back(square("tested", ShapeKind::user, 300));
  EXPECT_TRUE(drop_large_test_shapes(task, "dir/linear.toml"));
  task = bare;
  EXPECT_TRUE(drop_large_test_shapes(task, "")) << "without a side file, the verdict says why";
}

}  // namespace
}  // namespace cutegen::eval
