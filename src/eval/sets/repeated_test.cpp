// SPDX-License-Identifier: Apache-2.0
#include "eval/sets/repeated.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

namespace cutegen::eval {
namespace {

std::vector<float> counting(size_t count) {
  std::vector<float> out(count);
  std::iota(out.begin(), out.end(), 0.0f);
  return out;
}

std::vector<float> filled(const Repeated& r, const std::vector<float>& excerpt) {
  std::vector<float> out(size_t(r.held_bytes) / sizeof(float));
  r.fill(std::as_bytes(std::span(excerpt)), std::as_writable_bytes(std::span(out)));
  return out;
}

TEST(Repeated, ASmallTensorIsHeldWhole) {
  auto r = Repeated::place(DType::f32, {7, 4}, {3, 4}, Repeated::Hold::little);
  ASSERT_TRUE(r);
  EXPECT_FALSE(r->mapped_again());
  const auto values = filled(*r, counting(12));
  for (size_t i = 0; i < values.size(); ++i) EXPECT_EQ(values[i], float(i % 12)) << i;
}

TEST(Repeated, EveryCutAxisRepeats) {
  auto r = Repeated::place(DType::f32, {5, 2, 7}, {3, 2, 3}, Repeated::Hold::little);
  ASSERT_TRUE(r);
  const auto values = filled(*r, counting(18));
  for (size_t i = 0; i < 5; ++i)
    for (size_t j = 0; j < 2; ++j)
      for (size_t k = 0; k < 7; ++k)
        EXPECT_EQ(values[(i * 2 + j) * 7 + k], float((i % 3 * 2 + j) * 3 + k % 3));
}

TEST(Repeated, ALargeOneIsAWholeNumberOfExcerptsAndPages) {
  for (const Shape& full : {Shape{1 << 20, 33}, Shape{8192, 32800}, Shape{1 << 26}}) {
    Shape cut = full;
    cut[0] = 5;
    auto r = Repeated::place(DType::f32, full, cut, Repeated::Hold::more);
    ASSERT_TRUE(r) << r.error().text();
    EXPECT_TRUE(r->mapped_again());
    EXPECT_EQ(r->held[0] % 5, 0);
    EXPECT_EQ(r->held_bytes % 4096, 0);
    EXPECT_LE(r->held_bytes, int64_t{256} << 20);
    EXPECT_LE(r->bytes / r->held_bytes, 8192);
  }
}

TEST(Repeated, WhatCannotBeMappedAgainAndDoesNotFitIsRefused) {
  auto inner =
      Repeated::place(DType::f32, {1 << 14, 1 << 14}, {1 << 14, 3}, Repeated::Hold::little);
  ASSERT_FALSE(inner);
  EXPECT_EQ(inner.error().kind, ErrorKind::unsupported);
  EXPECT_NE(inner.error().message.find("1.07 GB"), std::string::npos) << inner.error().message;
}

TEST(Repeated, TilesCoverWhatIsHeldOnce) {
  auto r = Repeated::place(DType::f32, {5, 2, 7}, {3, 2, 3}, Repeated::Hold::more);
  ASSERT_TRUE(r);
  std::vector<int> seen(70);
  const auto values = filled(*r, counting(18));
  r->each_tile([&](const Shape& origin) {
    r->each_run(origin, [&](int64_t excerpt, int64_t held, int64_t count) {
      for (int64_t i = 0; i < count; ++i) {
        ++seen[size_t(held + i)];
        EXPECT_EQ(values[size_t(held + i)], float(excerpt + i));
      }
    });
  });
  for (int n : seen) EXPECT_EQ(n, 1);
}

TEST(Repeated, AScalarIsOneTile) {
  auto r = Repeated::place(DType::f32, {}, {}, Repeated::Hold::more);
  ASSERT_TRUE(r);
  int runs = 0;
  r->each_tile([&](const Shape& origin) {
    r->each_run(origin, [&](int64_t, int64_t, int64_t count) { runs += int(count); });
  });
  EXPECT_EQ(runs, 1);
}

}  // namespace
}  // namespace cutegen::eval
