// SPDX-License-Identifier: Apache-2.0
#include "device/map_fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "device/map_rules.h"

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

// 8 channels, 20 x 10 pixels, 3 images; a kernel of 3 x 3 with padding 1 and stride 2.
std::vector<int64_t> pixel_description() {
  return {4, 8, 20, 10, 3, 1, 8,  160, 1600, 1,  4,  8,  64, 1, 1,
          0, 0, 1,  2,  3, 0, 16, 0,   4,    -1, -1, -1, -1, 2, 2};
}

TEST(MapFields, Im2colModeHasCornersAndSteps) {
  MapFields f = fields(pixel_description()).value();
  EXPECT_TRUE(f.im2col);
  EXPECT_EQ(f.rank, 4U);
  EXPECT_EQ(f.box[0], 8U);
  EXPECT_EQ(f.box[1], 64U);
  EXPECT_THAT(f.lower, testing::ElementsAre(-1, -1, 0));
  EXPECT_THAT(f.upper, testing::ElementsAre(-1, -1, 0));
  EXPECT_THAT(f.steps, testing::ElementsAre(1U, 2U, 2U, 1U, 1U));
  EXPECT_FALSE(fields(description()).value().im2col);
  auto words = pixel_description();
  words[10] = 3;  // rank of the spec
  EXPECT_THAT(fields(words).error().message,
              HasSubstr("4 dims in im2col mode has a spec of rank 3"));
  words = pixel_description();
  words.back() = int64_t{1} << 40;
  EXPECT_THAT(fields(words).error().message, HasSubstr("1099511627776 in im2col mode"));
  words.pop_back();
  EXPECT_THAT(fields(words).error().message, HasSubstr("damaged"));
}

TEST(MapRules, Im2colModeIsChecked) {
  const auto rule = [](auto change) {
    MapFields f = fields(pixel_description()).value();
    change(f);
    const auto map = checked_map(f, 1024, "step s");
    return map ? std::string(map->im2col ? "im2col" : "tile") : map.error().message;
  };
  EXPECT_EQ(rule([](MapFields&) {}), "im2col");
  EXPECT_THAT(rule([](MapFields& f) { f.lower[1] = -200; }), HasSubstr("lower[1] is -200"));
  EXPECT_THAT(rule([](MapFields& f) { f.box[1] = 1200; }), HasSubstr("pixels_per_column is 1200"));
  EXPECT_THAT(rule([](MapFields& f) { f.steps[1] = 0; }), HasSubstr("element_strides[1] is 0"));
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
