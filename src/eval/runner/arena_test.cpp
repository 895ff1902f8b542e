// SPDX-License-Identifier: Apache-2.0
#include "eval/runner/arena.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "tensor/half.h"

namespace cutegen::eval {
namespace {

using ItemKind = ArenaItem::Kind;

struct Fixture {
  std::vector<std::byte> x = std::vector<std::byte>(1000, std::byte{3});
  std::vector<ArenaItem> items{
      {.kind = ItemKind::input, .name = "x", .bytes = x.size(), .content = x},
      {.kind = ItemKind::output, .name = "out", .bytes = 4000},
      {.kind = ItemKind::scratch, .name = "tmp", .bytes = 333},
      {.kind = ItemKind::zeroed, .name = "sem", .bytes = 64}};
  Arena make(Arena::Fill fill = Arena::Fill::nan) { return std::move(*Arena::make(items, fill)); }
};

std::byte* writable(const Arena& a, const std::string& name) {
  return const_cast<std::byte*>(a.bytes_of(name).data());
}

TEST(Arena, BuffersAreAlignedApartAndFilled) {
  Fixture f;
  Arena a = f.make();
  ASSERT_EQ(a.buffers().size(), 4u);
  int64_t end = 0;
  for (const RunBuffer& b : a.buffers()) {
    EXPECT_EQ(b.offset % 256, 0);
    EXPECT_GE(b.offset, end + 256);
    end = b.offset + b.bytes;
  }
  EXPECT_EQ(a.bytes_of("x")[999], std::byte{3});
  EXPECT_EQ(a.bytes_of("sem")[63], std::byte{0});
  EXPECT_TRUE(a.findings().empty());
}

TEST(Arena, PoisonIsNanInEveryWidthOrHuge) {
  Fixture f;
  for (int round = 0; round < 20; ++round) {
    Arena nan = f.make(), huge = f.make(Arena::Fill::plausible);
    for (DType d : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
      EXPECT_TRUE(std::isnan(load_double(d, nan.bytes_of("out").data())));
      double h = std::abs(load_double(d, huge.bytes_of("out").data()));
      EXPECT_TRUE(std::isfinite(h) && h > 1e4) << h;
    }
  }
}

TEST(Arena, PlacesAndPoisonChangeFromRunToRun) {
  Fixture f;
  std::set<int64_t> places;
  std::set<Poison> poisons;
  for (int round = 0; round < 16; ++round) {
    Arena a = f.make();
    for (const RunBuffer& b : a.buffers())
      if (b.name == "out") places.insert(b.offset);
    poisons.insert(a.poison());
  }
  EXPECT_GT(places.size(), 4u);
  EXPECT_GT(poisons.size(), 4u);
}

TEST(Arena, SeesEveryKindOfDamage) {
  Fixture f;
  Arena a = f.make();
  *(writable(a, "x") + 17) = std::byte{9};
  *(writable(a, "out") + 4000) ^= std::byte{1};
  auto found = a.findings();
  EXPECT_EQ(found.size(), 2u);
  EXPECT_NE(std::find(found.begin(), found.end(), "the input 'x' was changed, first at byte 17"),
            found.end());
  EXPECT_NE(std::find(found.begin(), found.end(), "memory behind 'out' was written"), found.end());
}

TEST(Arena, AMutatedTensorStartsWithItsValuesAndMayBeWritten) {
  std::vector<std::byte> before(500, std::byte{7});
  std::vector<ArenaItem> items{
      {.kind = ItemKind::state, .name = "cache", .bytes = before.size(), .content = before}};
  for (Arena::Fill fill : {Arena::Fill::nan, Arena::Fill::plausible}) {
    Arena a = std::move(*Arena::make(items, fill));
    EXPECT_FALSE(a.buffers()[0].read_only);
    EXPECT_EQ(a.buffers()[0].content, device::BufferContent::data);
    EXPECT_EQ(a.bytes_of("cache")[499], std::byte{7});
    *(writable(a, "cache") + 499) = std::byte{9};
    EXPECT_TRUE(a.findings().empty());
    *(writable(a, "cache") + 500) ^= std::byte{1};
    EXPECT_EQ(a.findings().size(), 1u);
  }
  EXPECT_EQ(before[499], std::byte{7});  // every run has its own copy
}

TEST(Arena, SeesDamageBeforeABuffer) {
  Fixture f;
  Arena a = f.make();
  *(writable(a, "tmp") - 1) ^= std::byte{1};
  EXPECT_EQ(a.findings().size(), 1u);
}

TEST(Arena, EmptyBuffersAreFine) {
  std::vector<ArenaItem> items{{.kind = ItemKind::input, .name = "x", .bytes = 0},
                               {.kind = ItemKind::output, .name = "out", .bytes = 0}};
  auto a = Arena::make(items, Arena::Fill::nan);
  ASSERT_TRUE(a);
  EXPECT_TRUE(a->findings().empty());
}

}  // namespace
}  // namespace cutegen::eval
