// SPDX-License-Identifier: Apache-2.0
#include "recipes/graph/reshape.h"

#include <gtest/gtest.h>

namespace cutegen::recipes {
namespace {

// "0=0 1=1,2": axes of each run.
std::string groups(const Shape& from, const Shape& to) {
  auto found = group_axes(from, to);
  if (!found) return "none";
  std::string text;
  auto add = [&](const std::vector<size_t>& axes) {
    for (size_t i = 0; i < axes.size(); ++i) text += (i ? "," : "") + std::to_string(axes[i]);
  };
  for (const AxisGroup& group : *found) {
    if (!text.empty()) text += " ";
    add(group.from);
    text += "=";
    add(group.to);
  }
  return text;
}

TEST(GroupAxes, PairsTheShortestRuns) {
  EXPECT_EQ(groups({8, 64, 5, 5}, {8, 4, 16, 25}), "0=0 1=1,2 2,3=3");
  EXPECT_EQ(groups({4, 6, 5}, {4, 6, 5}), "0=0 1=1 2=2");
  EXPECT_EQ(groups({4, 6, 5}, {1, 24, 5}), "0,1=0,1 2=2");
  EXPECT_EQ(groups({12}, {3, 4}), "0=0,1");
}

TEST(GroupAxes, OnesGoWithTheirNeighbours) {
  EXPECT_EQ(groups({4, 1, 6}, {4, 6}), "0=0 1,2=1");
  EXPECT_EQ(groups({4, 6, 1, 1}, {4, 6}), "0=0 1,2,3=1");
  EXPECT_EQ(groups({}, {1, 1}), "=0,1");
  EXPECT_EQ(groups({}, {}), "=");
}

TEST(GroupAxes, NeedTheSameElements) {
  EXPECT_EQ(groups({4, 6}, {5, 5}), "none");
  EXPECT_EQ(groups({0, 6}, {6, 0}), "none");
}

}  // namespace
}  // namespace cutegen::recipes
