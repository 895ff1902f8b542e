// SPDX-License-Identifier: Apache-2.0
#include "core/launch_limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/testing/test_task.h"

namespace cutegen {
namespace {

using testing::HasSubstr;

struct Limits : testing::Test {
  DeviceFacts device = test_device();
  EntryFacts entry{.name = "k"};
  Launch launch{.step = "s0", .kernel = "k"};

  std::string problem() const {
    auto r = check_launch(launch, entry, device, "plan.json#/steps/0");
    return r ? "" : r.error().text();
  }
};

TEST_F(Limits, WhatFitsPasses) {
  launch.grid = {2147483647, 65535, 1};
  launch.block = {16, 1, 64};
  launch.shared_bytes = 232448;
  EXPECT_EQ(problem(), "");
}

TEST_F(Limits, TheLastValueThatFitsAndTheFirstThatDoesNot) {
  launch.grid = {1, 1, 65536};
  EXPECT_THAT(problem(), HasSubstr("steps/0/grid/2: error: grid of 65536: the limit is 65535"));
  launch.grid = {1, 1, 65535};
  launch.block = {512, 2, 1};
  EXPECT_EQ(problem(), "");
  launch.block = {512, 3, 1};
  EXPECT_THAT(problem(), HasSubstr("1536 threads per block: the limit is 1024"));
  launch.block = {1, 1, 65};
  EXPECT_THAT(problem(), HasSubstr("block of 65: the limit is 64"));
  launch.block = {32, 1, 1};
  launch.shared_bytes = 232449;
  EXPECT_THAT(problem(), HasSubstr("of shared memory: the limit on sim:h200 is 232 KB"));
}

TEST_F(Limits, Clusters) {
  launch.grid = {64, 1, 1};
  launch.cluster = {16, 1, 1};
  EXPECT_EQ(problem(), "");
  launch.cluster = {32, 1, 1};
  EXPECT_THAT(problem(), HasSubstr("a cluster has at most 16 blocks"));
  launch.cluster = {5, 1, 1};
  EXPECT_THAT(problem(), HasSubstr("cluster of 5 does not divide a grid of 64"));
  launch.grid = {64, 64, 1};
  launch.cluster = {8, 4, 1};
  EXPECT_THAT(problem(), HasSubstr("cluster of 32 blocks: the limit is 16"));
  device.arch = "sm_80";
  launch.cluster = {2, 1, 1};
  EXPECT_THAT(problem(), HasSubstr("cluster of 2 blocks: sim:h200 (sm_80) has no clusters"));
}

TEST_F(Limits, ACooperativeGridMustBeResident) {
  launch.cooperative = true;
  launch.block = {512, 1, 1};
  launch.grid = {4 * 132, 1, 1};
  EXPECT_EQ(problem(), "");
  launch.grid = {4 * 132 + 1, 1, 1};
  EXPECT_THAT(problem(), HasSubstr("cooperative grid of 529 blocks: the limit on sim:h200 is 528"));
  launch.shared_bytes = 100'000;  // two blocks per SM
  launch.grid = {265, 1, 1};
  EXPECT_THAT(problem(), HasSubstr("is 264"));
  launch.grid = {2147483647, 65535, 65535};
  EXPECT_THAT(problem(), HasSubstr("cooperative grid of"));
  launch.cooperative = false;
  EXPECT_EQ(problem(), "");
}

TEST_F(Limits, ResidentBlocksCountWhatRunsOut) {
  launch.block = {32, 1, 1};
  EXPECT_EQ(resident_blocks(launch, entry, device), 32);
  entry.static_shared_bytes = 20'000;
  EXPECT_EQ(resident_blocks(launch, entry, device), 11);
  launch.block = {1024, 1, 1};
  EXPECT_EQ(resident_blocks(launch, entry, device), 2);
}

}  // namespace
}  // namespace cutegen
