// SPDX-License-Identifier: Apache-2.0
#include "device/map_fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace cutegen::device {
namespace {
using testing::HasSubstr;

// A tensor of 96 x 40 elements, second mode first: rank, dims, strides, then the spec.
std::vector<int64_t> description() {
  return {2, 96, 40, 1, 96, 1, 2, 64, 32, 0, 0, 0, 0, 1, 0, 0, 0, 16, 3, 4};
}
constexpr size_t kRank = 6, kMode0 = 12, kBits = 17, kSwizzle = 18, kBase = 19;

Result<MapFields> fields(const std::vector<int64_t>& words) {
  return map_fields(std::as_bytes(std::span(words)), "step s");
}

TEST(MapFields, AreWhatTheDriverIsTold) {
  MapFields f = fields(description()).value();
  EXPECT_EQ(f.rank, 2U);
  EXPECT_EQ(f.type, 1);  // 16 bits
  EXPECT_EQ(f.sizes[0], 96U);
  EXPECT_EQ(f.sizes[1], 40U);
  EXPECT_EQ(f.pitches[1], 192U);
  EXPECT_EQ(f.box[0], 64U);
  EXPECT_EQ(f.box[1], 32U);
  EXPECT_EQ(f.swizzle, 3);
}

TEST(MapFields, ModesMayBeInAnotherOrder) {
  auto words = description();
  words[1] = 40, words[2] = 96, words[3] = 96, words[4] = 1;
  words[kMode0] = 1, words[kMode0 + 1] = 0;
  MapFields f = fields(words).value();
  EXPECT_EQ(f.sizes[0], 96U);
  EXPECT_EQ(f.pitches[1], 192U);
}

TEST(MapFields, WhatIsNotKnownIsNamed) {
  auto words = description();
  words[kBits] = 6;
  EXPECT_THAT(fields(words).error().message, HasSubstr("6 bits"));
  words = description();
  words[kSwizzle] = 5;
  EXPECT_EQ(fields(words).error().kind, ErrorKind::unsupported);
  words = description();
  words[kBase] = 2;
  EXPECT_EQ(fields(words).error().kind, ErrorKind::unsupported);
  words = description();
  words[kMode0 + 1] = 2;
  EXPECT_THAT(fields(words).error().message, HasSubstr("no mode 2"));
  EXPECT_EQ(fields(words).error().where, "step s");
  words = description();
  words[kRank] = 0;
  EXPECT_FALSE(fields(words));
}

TEST(MapFields, DamageIsSeen) {
  auto words = description();
  words.pop_back();
  EXPECT_THAT(fields(words).error().message, HasSubstr("damaged"));
  words = description();
  words[0] = 7;
  EXPECT_FALSE(fields(words));
  EXPECT_FALSE(fields({}));
}

}  // namespace
}  // namespace cutegen::device
