// SPDX-License-Identifier: Apache-2.0
#include "ptx/state/stored_bytes.h"

#include <gtest/gtest.h>

namespace cutegen::ptx {
namespace {

TEST(StoredBytes, CountsEachByteOnce) {
  StoredBytes s;
  s.watch(100);
  s.add(30, 8);  // in two words of the bit map
  EXPECT_EQ(s.count(), 8u);
  s.add(34, 8);
  s.add(30, 1);
  EXPECT_EQ(s.count(), 12u);
  s.add(0, 100);
  EXPECT_EQ(s.count(), 100u);
}

TEST(StoredBytes, CountsNothingBeforeItWatches) {
  StoredBytes s;
  s.add(0, 4);
  EXPECT_FALSE(s.watched());
  EXPECT_EQ(s.count(), 0u);
}

TEST(StoredBytes, CopiesShareACount) {
  StoredBytes s;
  s.watch(8);
  const StoredBytes copy = s;
  copy.add(0, 4);
  s.watch(8);  // goes on
  EXPECT_EQ(s.count(), 4u);
}

}  // namespace
}  // namespace cutegen::ptx
