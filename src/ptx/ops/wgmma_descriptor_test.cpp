// SPDX-License-Identifier: Apache-2.0
#include "ptx/ops/wgmma_descriptor.h"

#include <gtest/gtest.h>

#include <vector>

namespace cutegen::ptx {
namespace {

constexpr uint64_t kSwizzle128 = uint64_t{1} << 62;

uint64_t descriptor(uint64_t start, uint64_t stride, uint64_t base_offset = 0) {
  return start >> 4 | uint64_t{1} << 16 | (stride >> 4) << 32 | base_offset << 49 | kSwizzle128;
}

SharedTile rows_of(uint64_t bits) {
  return {.d = read_descriptor(bits), .rows = 64};
}

// An H200 reads these addresses: groups of eight lines of 128 bytes from any line on, at any
// distance in lines. The swizzle depends on the address.
TEST(WgmmaDescriptor, ATileBeginsAtAnyLineOfAPattern) {
  for (uint32_t distance : {8u, 9u, 10u, 18u})
    for (uint32_t first : {0u, 1u, 3u, 8u, 11u, 13u})
      for (uint32_t step : {0u, 1u, 3u}) {
        const SharedTile tile = rows_of(descriptor(first * 128 + step * 32, distance * 128));
        ASSERT_FALSE(tile.fault()) << *tile.fault();
        std::vector<uint32_t> at(128);
        tile.chunks(at.data());
        for (uint32_t row = 0; row < 64; ++row)
          for (uint32_t half = 0; half < 2; ++half) {
            const uint32_t line = first + row / 8 * distance + row % 8;
            const uint32_t chunk = (2 * step + half) ^ line % 8;
            ASSERT_EQ(at[2 * row + half], line * 128 + chunk * 16)
                << "line " << first << ", distance " << distance << ", row " << row;
          }
      }
}

TEST(WgmmaDescriptor, ABaseOffsetMovesThePattern) {
  const SharedTile tile = rows_of(descriptor(3 * 128, 1024, 3));
  ASSERT_FALSE(tile.fault());
  std::vector<uint32_t> at(128);
  tile.chunks(at.data());
  EXPECT_EQ(at[0], 3u * 128);            // row 0, chunk 0
  EXPECT_EQ(at[2], 4u * 128 + 1 * 16u);  // row 1: the second line of the pattern
}

TEST(WgmmaDescriptor, FaultsNameTheRule) {
  const auto fault = [](uint64_t bits) { return rows_of(bits).fault().value_or(""); };
  EXPECT_NE(fault(descriptor(256, 1024, 1)).find("start address 0x100 with base offset 1"),
            std::string::npos);
  EXPECT_NE(fault(descriptor(0, 512)).find("stride byte offset 512"), std::string::npos);
  EXPECT_NE(fault(descriptor(0, 1024 + 64)).find("stride byte offset 1088"), std::string::npos);
}

}  // namespace
}  // namespace cutegen::ptx
