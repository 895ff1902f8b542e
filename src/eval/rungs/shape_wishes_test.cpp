// SPDX-License-Identifier: Apache-2.0
#include "eval/rungs/shape_wishes.h"

#include <gtest/gtest.h>

namespace cutegen::eval {
namespace {

using WishKind = ShapeWish::Kind;

// A program whose only launch divides the size N by 128.
class Tiled {
 public:
  explicit Tiled(int64_t n) {
    shape_.constants = {{"N", n}};
    shape_.tensors["x"] = {n};
    at_.shape = &shape_;
    at_.reach.divisions = {PlanReach::Division{.size = n, .step = 128}};
    at_.reach.bounds = {PlanReach::Bound{.a = n, .b = 1000}};
    PlanReach::Launch launch;
    launch.grid = {(n + 127) / 128, 1, 1};
    launch.threads = 128;
    at_.reach.launches = {launch};
    at_.reach.divisions_of = {{0}};
  }
  const ReachedShape& at() const { return at_; }

 private:
  ShapeCase shape_;
  ReachedShape at_;
};

const torch::ShapeConstants kSizes{{"N", 4096}};

ShapeGoal only_goal_of(const ShapeWish& wish, const Tiled& official) {
  auto goals = goals_of(wish, official.at(), kSizes);
  EXPECT_EQ(goals.size(), 1U);
  return goals.empty() ? ShapeGoal{} : goals[0];
}

TEST(ShapeGoals, OfADivisionAreThreeTilesAndATail) {
  const Tiled official(4096), grown(3 * 128 + 8), small(128);
  const ShapeWish wish{.kind = WishKind::division};
  const ShapeGoal goal = only_goal_of(wish, official);
  EXPECT_EQ(goal.target, 3 * 128 + 8);
  EXPECT_EQ(goal.step, 128);
  EXPECT_EQ(goal.measure(small.at()), 128);
  EXPECT_TRUE(meets(wish, grown.at(), official.at(), kSizes, true));
  EXPECT_FALSE(meets(wish, small.at(), official.at(), kSizes, true));
}

TEST(ShapeGoals, OfABoundPassItAsTheOfficialShapeDoes) {
  const Tiled official(4096), below(900);
  const ShapeWish wish{.kind = WishKind::passes};
  const ShapeGoal goal = only_goal_of(wish, official);
  EXPECT_EQ(goal.target, 2001);
  EXPECT_EQ(goal.measure(below.at()), 900);
  EXPECT_FALSE(meets(wish, below.at(), official.at(), kSizes, true));
  const Tiled grown(goal.target);
  EXPECT_TRUE(meets(wish, grown.at(), official.at(), kSizes, true));
}

TEST(ShapeGoals, OfALengthAddATail) {
  const Tiled official(4096), small(64);
  const ShapeGoal goal =
      only_goal_of({.kind = WishKind::length, .least = 600, .name = "N"}, official);
  EXPECT_EQ(goal.target, 600 + ShapeGoal::kTail);
  EXPECT_EQ(goal.measure(small.at()), 64);
}

TEST(ShapeGoals, OfAGridAreItsBlocksAlongTheAxis) {
  const Tiled official(4096), small(200);
  const ShapeGoal goal = only_goal_of({.kind = WishKind::blocks, .axis = 0, .least = 3}, official);
  EXPECT_EQ(goal.target, 3);
  EXPECT_EQ(goal.measure(small.at()), 2);
  EXPECT_EQ(blocks_of(*small.at().reach.launches[0]), 2);
}

}  // namespace
}  // namespace cutegen::eval
