// SPDX-License-Identifier: Apache-2.0
#include "ptx/cta/warp.h"

#include <gtest/gtest.h>

namespace cutegen::ptx {
namespace {

Warp warp() {
  Warp w;
  w.begin(~0u);
  return w;
}

TEST(Warp, LowestPcRunsFirstAndSplitsMergeWhereTheyMeet) {
  Warp w = warp();
  w.add({.pc = 9, .mask = 0xff, .blocked = false});
  w.current = {.pc = 4, .mask = ~0xffu, .blocked = false};
  ASSERT_TRUE(w.reschedule());
  EXPECT_EQ(w.current.pc, 4);
  w.current.pc = 9;
  w.merge();
  EXPECT_EQ(w.current.mask, ~0u);
  EXPECT_EQ(w.count, 0);
}

TEST(Warp, LanesOutsideTheMaskSkipTheInstruction) {
  Warp w = warp();
  w.split_off(0xf0);
  EXPECT_EQ(w.current.mask, 0xf0u);
  EXPECT_EQ(w.others[0].mask, ~0xf0u);
  EXPECT_EQ(w.others[0].pc, 1);
}

TEST(Warp, BlockedSplitsDoNotRun) {
  Warp w = warp();
  w.current.blocked = true;
  EXPECT_FALSE(w.reschedule());
}

TEST(Warp, LanesThatEndUnblockThoseThatWaitForThem) {
  Warp w = warp();
  w.add({.pc = 2, .mask = 0xff, .blocked = true});
  w.current = {.pc = 7, .mask = ~0xffu, .blocked = false};
  w.leave(~0xffu);
  EXPECT_EQ(w.alive, 0xffu);
  EXPECT_EQ(w.current.pc, 2);
  w.leave(0xff);
  EXPECT_EQ(w.alive, 0u);
}

TEST(Warp, ASplitThatSpinsGivesWay) {
  Warp w = warp();
  w.add({.pc = 9, .mask = 1, .blocked = false});
  w.current = {.pc = 4, .mask = ~1u, .blocked = false};
  bool other = false;
  for (int i = 0; i < 2048 && !other; ++i) {
    ASSERT_TRUE(w.reschedule());
    other = w.current.pc == 9;
  }
  EXPECT_TRUE(other);
}

}  // namespace
}  // namespace cutegen::ptx
