// SPDX-License-Identifier: Apache-2.0
#include "recipes/fuse/nest_writer.h"

#include <gtest/gtest.h>

#include "recipes/fuse/nest_sizes.h"

namespace cutegen::recipes {
namespace {

// A nest over rows and a reduced axis, whose graph has one value `x` of the task.
struct SmallNest {
  Decomposed source{.graph = {}, .extents = {}};
  Region region{.source = source, .names = {{"x", "x"}}, .kept = {{"y", {"7"}}}, .outputs = {}};
  NestWriter nest{
      region,
      {{.size = 8, .extent = "dim(x,0)"}, {.size = 16, .reduced = true, .extent = "dim(x,1)"}}};
  NestSizes sizes{nest};
};

TEST(NestWriter, ReturnsTheSameInstructionForTheSameArguments) {
  SmallNest s;
  const int x = s.nest.places(1);
  EXPECT_EQ(s.nest.places(1), x);
  EXPECT_NE(s.nest.places(0), x);
  const int twice = s.nest.make("twice", "{0} + {0}", {x});
  EXPECT_EQ(s.nest.make("other name", "{0} + {0}", {x}), twice);
  EXPECT_NE(s.nest.make("twice", "{0} + {0}", {x}, true), twice) << "a truth value";
  EXPECT_EQ(s.nest.reduce("sum", ReduceKind::sum, twice),
            s.nest.reduce("sum", ReduceKind::sum, twice));
  EXPECT_NE(s.nest.constant("1.0f"), s.nest.constant("1.0f"));
}

TEST(NestWriter, LetsAnInstructionVaryWithItsInputs) {
  SmallNest s;
  const int along_rows = s.nest.places(0), along_both = s.nest.line({{0, 16}, {1, 1}});
  const auto& insts = s.nest.fused().insts;
  EXPECT_EQ(insts[size_t(s.nest.make("a", "{0} + 1", {along_rows}))].level, Level::row);
  EXPECT_EQ(insts[size_t(s.nest.make("b", "{0} + 1", {along_both}))].level, Level::element);
  const int sum = s.nest.reduce("sum", ReduceKind::sum, along_both);
  EXPECT_EQ(insts[size_t(sum)].level, Level::row);
  EXPECT_EQ(insts[size_t(sum)].depth, 1);
}

TEST(NestWriter, KeepsTheFirstCut) {
  SmallNest s;
  s.nest.cut_before("first");
  s.nest.cut_before("second");
  EXPECT_EQ(s.nest.cut(), "first");
}

TEST(NestSizes, KnowsSizesOfTensorsAndOfScratchValues) {
  SmallNest s;
  EXPECT_EQ(s.sizes.extent_of("x", 1), "dim(x,1)");
  EXPECT_EQ(s.sizes.extent_of("y", 0), "7");
  EXPECT_EQ(s.sizes.extent_of("z", 0), std::nullopt);
  EXPECT_EQ(s.sizes.size_parameter("dim(x,1)"), s.sizes.size_parameter("dim(x,1)"));
  EXPECT_NE(s.sizes.size_parameter("dim(x,1)"), s.sizes.size_parameter("dim(x,0)"));
}

}  // namespace
}  // namespace cutegen::recipes
