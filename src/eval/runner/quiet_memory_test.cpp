// SPDX-License-Identifier: Apache-2.0
#include "eval/runner/quiet_memory.h"

#include <gtest/gtest.h>

namespace cutegen::eval {
namespace {

using std::chrono::milliseconds;

TEST(QuietMemory, ComparesTheMedianOfABlockWithTheLeastTimeSoFar) {
  QuietMemory memory;
  const Clock::time_point start = Clock::now();
  memory.note({{"cooling_ns", 120e3}, {"cooling_least_ns", 119e3}}, start);
  EXPECT_TRUE(memory.is_quiet());
  EXPECT_FALSE(memory.is_known());  // the first block may be slow itself
  memory.note({{"cooling_ns", 100e3}, {"cooling_least_ns", 99e3}}, start + milliseconds(250));
  EXPECT_TRUE(memory.is_known());
  EXPECT_TRUE(memory.is_quiet());
  memory.note({{"cooling_ns", 105e3}, {"cooling_least_ns", 90e3}}, start + milliseconds(260));
  EXPECT_FALSE(memory.is_quiet());
}

TEST(QuietMemory, ABlockWithoutATimeIsQuiet) {
  QuietMemory memory;
  EXPECT_TRUE(memory.is_quiet());
  memory.note({{"cooling_ns", 100e3}, {"cooling_least_ns", 50e3}}, Clock::now());
  EXPECT_FALSE(memory.is_quiet());
  memory.note({{"sm_clock_hz", 1e9}}, Clock::now());
  EXPECT_TRUE(memory.is_quiet());
  EXPECT_TRUE(memory.is_known());
}

}  // namespace
}  // namespace cutegen::eval
