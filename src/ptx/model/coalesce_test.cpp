// SPDX-License-Identifier: Apache-2.0
// The costs of single accesses, derived by hand.
#include "ptx/model/coalesce.h"

#include <gtest/gtest.h>

#include <bit>
#include <functional>

namespace cutegen::ptx {
namespace {

constexpr uint32_t kAll = ~0u;

struct Access {
  alignas(64) uint64_t at[32] = {};
  AddressSummary s;
};

// The addresses of the active lanes, and their summary.
Access access(const std::function<uint64_t(int)>& address, uint64_t bytes, uint32_t mask = kAll) {
  Access a;
  a.s.low = ~uint64_t{0};
  a.s.contiguous = mask == kAll;
  for (int lane = 0; lane < 32; ++lane) {
    a.at[lane] = address(lane);
    if (!(mask >> lane & 1)) continue;
    a.s.low = std::min(a.s.low, a.at[lane]), a.s.high = std::max(a.s.high, a.at[lane]);
    if (a.at[lane] != a.at[0] + uint64_t(lane) * bytes) a.s.contiguous = false;
  }
  a.s.uniform = a.s.low == a.s.high;
  return a;
}
uint32_t sectors(const std::function<uint64_t(int)>& address, uint64_t bytes,
                 uint32_t mask = kAll) {
  const Access a = access(address, bytes, mask);
  return sectors_of(a.s, a.at, mask, bytes);
}
// "WAVEFRONTS of WAVEFRONTS WITHOUT CONFLICTS"
std::string wavefronts(const std::function<uint64_t(int)>& address, uint64_t bytes,
                       uint32_t mask = kAll, SharedUse use = SharedUse::load) {
  const Access a = access(address, bytes, mask);
  const Wavefronts w = wavefronts_of(a.s, a.at, mask, bytes, use);
  return std::to_string(w.count) + " of " + std::to_string(w.least);
}
uint32_t local(const std::function<uint64_t(int)>& address, uint64_t bytes, uint32_t mask = kAll) {
  const Access a = access(address, bytes, mask);
  return local_sectors_of(a.s, a.at, mask, bytes);
}

TEST(Sectors, OfARequest) {
  EXPECT_EQ(sectors([](int i) { return 256 + i * 4; }, 4), 4u);               // 128 bytes, aligned
  EXPECT_EQ(sectors([](int i) { return 256 + 4 + i * 4; }, 4), 5u);           // one sector more
  EXPECT_EQ(sectors([](int i) { return 256 + i * 16; }, 16), 16u);            // float4: 512 bytes
  EXPECT_EQ(sectors([](int i) { return 256 + i * 2; }, 2), 2u);               // halves: 64 bytes
  EXPECT_EQ(sectors([](int) { return 260; }, 4), 1u);                         // a broadcast
  EXPECT_EQ(sectors([](int i) { return i * 4096; }, 4), 32u);                 // a column
  EXPECT_EQ(sectors([](int i) { return i * 8; }, 4), 8u);                     // every other word
  EXPECT_EQ(sectors([](int i) { return (31 - i) * 4; }, 4), 4u);              // backwards
  EXPECT_EQ(sectors([](int i) { return i * 4; }, 4, 0x000000ff), 1u);         // 8 lanes
  EXPECT_EQ(sectors([](int i) { return i % 2 * 1024 + i / 2 * 4; }, 4), 4u);  // two half rows
}

TEST(Wavefronts, UpTo32BitsAreServedForTheWholeWarp) {
  EXPECT_EQ(wavefronts([](int i) { return i * 4; }, 4), "1 of 1");
  EXPECT_EQ(wavefronts([](int) { return 64; }, 4), "1 of 1");           // a broadcast
  EXPECT_EQ(wavefronts([](int i) { return i / 4 * 4; }, 4), "1 of 1");  // 8 words, broadcast
  EXPECT_EQ(wavefronts([](int i) { return i * 8; }, 4), "2 of 1");      // stride 2: 16 banks
  EXPECT_EQ(wavefronts([](int i) { return i * 128; }, 4), "32 of 1");   // a column of 32 words
  EXPECT_EQ(wavefronts([](int i) { return i * 132; }, 4), "1 of 1");    // the same, padded
  EXPECT_EQ(wavefronts([](int i) { return i * 2; }, 2), "1 of 1");      // halves share words
  EXPECT_EQ(wavefronts([](int i) { return i * 128; }, 4, 0xf), "4 of 1");
}

TEST(Wavefronts, WideAccessesAreServedInHalvesAndQuarters) {
  EXPECT_EQ(wavefronts([](int i) { return i * 8; }, 8), "2 of 2");
  EXPECT_EQ(wavefronts([](int i) { return i * 16; }, 16), "4 of 4");
  EXPECT_EQ(wavefronts([](int i) { return i * 16; }, 8), "4 of 2");   // stride 2 in each half
  EXPECT_EQ(wavefronts([](int i) { return i * 32; }, 16), "8 of 4");  // stride 2 in each quarter
  // A column of float4, in rows of 128 bytes: the 8 lanes of a quarter use the same 4 banks.
  EXPECT_EQ(wavefronts([](int i) { return i * 128; }, 16), "32 of 4");
  EXPECT_EQ(wavefronts([](int i) { return i * 16; }, 16, 0xff), "1 of 1");  // one quarter
  EXPECT_EQ(wavefronts([](int i) { return i * 8; }, 8, 0x0000ffff), "1 of 1");
  // A broadcast works within a group only: each quarter reads its words once.
  EXPECT_EQ(wavefronts([](int i) { return i % 4 * 16; }, 16), "4 of 4");
}

TEST(Wavefronts, LoadsOfEqualPairsAreServedInLargerGroups) {
  EXPECT_EQ(wavefronts([](int i) { return i / 16 * 16; }, 16), "2 of 2");
  EXPECT_EQ(wavefronts([](int) { return 64; }, 16), "2 of 2");
  EXPECT_EQ(wavefronts([](int) { return 64; }, 8), "1 of 1");
  EXPECT_EQ(wavefronts([](int i) { return i / 2 * 16; }, 16), "2 of 2");              // n and n^1
  EXPECT_EQ(wavefronts([](int i) { return (i / 4 * 2 + i % 2) * 8; }, 8), "1 of 1");  // n and n^2
  EXPECT_EQ(wavefronts([](int i) { return i / 2 * 128; }, 16), "16 of 2");            // conflicts
  EXPECT_EQ(wavefronts([](int i) { return i / 2 * 16; }, 16, 0x55555555), "2 of 2");  // no pairs
  EXPECT_EQ(wavefronts([](int i) { return i / 3 * 16; }, 16), "4 of 4");              // not all
  EXPECT_EQ(wavefronts([](int) { return 64; }, 16, kAll, SharedUse::store), "4 of 4");
}

TEST(Wavefronts, AtomicsServeEachLane) {
  EXPECT_EQ(wavefronts([](int) { return 64; }, 4, kAll, SharedUse::atomic), "32 of 1");
  EXPECT_EQ(wavefronts([](int i) { return i * 4; }, 4, kAll, SharedUse::atomic), "1 of 1");
  EXPECT_EQ(wavefronts([](int i) { return i % 8 * 4; }, 4, kAll, SharedUse::atomic), "4 of 1");
}

TEST(LocalSectors, WordsOfTheLanesLieSideBySide) {
  EXPECT_EQ(local([](int) { return 8; }, 4), 4u);            // one word each: 128 bytes
  EXPECT_EQ(local([](int) { return 16; }, 16), 16u);         // four words each
  EXPECT_EQ(local([](int i) { return i * 4; }, 4), 32u);     // a different word per lane
  EXPECT_EQ(local([](int i) { return i / 8 * 4; }, 4), 4u);  // the same word per sector
  EXPECT_EQ(local([](int) { return 8; }, 4, 0xff), 1u);
}

TEST(PatternCache, KnowsAPatternByDistancesAndPhase) {
  PatternCache cache(4);
  const Access a = access([](int i) { return 4096 + i * 8; }, 4);
  EXPECT_EQ(cache.find(2, a.at, 32), nullptr);
  cache.keep(2, a.at, 32, {.count = 8, .least = 1});
  const Access moved = access([](int i) { return 8192 + 64 + i * 8; }, 4);
  ASSERT_NE(cache.find(2, moved.at, 32), nullptr);
  EXPECT_EQ(cache.find(2, moved.at, 32)->count, 8u);
  EXPECT_EQ(cache.find(1, moved.at, 32), nullptr) << "another instruction";
  const Access shifted = access([](int i) { return 4096 + 4 + i * 8; }, 4);
  EXPECT_EQ(cache.find(2, shifted.at, 32), nullptr) << "another phase";
  const Access other = access([](int i) { return 4096 + i * 8 + (i == 31 ? 32 : 0); }, 4);
  EXPECT_EQ(cache.find(2, other.at, 32), nullptr) << "one lane differs";
  cache.keep(2, other.at, 32, {.count = 9, .least = 1});
  EXPECT_EQ(cache.find(2, other.at, 32)->count, 9u);
  EXPECT_EQ(cache.find(2, a.at, 32), nullptr) << "only the last pattern is kept";
}

}  // namespace
}  // namespace cutegen::ptx
