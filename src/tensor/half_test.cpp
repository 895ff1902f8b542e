// SPDX-License-Identifier: Apache-2.0
#include "tensor/half.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

namespace cutegen {
namespace {

TEST(Half, EverySixteenBitPatternSurvives) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    auto b = uint16_t(bits);
    float f = f16_to_float(b), g = bf16_to_float(b);
    if (std::isnan(f))
      EXPECT_TRUE(std::isnan(f16_to_float(float_to_f16(f))));
    else
      EXPECT_EQ(float_to_f16(f), b);
    if (std::isnan(g))
      EXPECT_TRUE(std::isnan(bf16_to_float(float_to_bf16(g))));
    else
      EXPECT_EQ(float_to_bf16(g), b);
  }
}

TEST(Half, EveryEightBitPatternSurvives) {
  for (DType dtype : {DType::f8e4m3, DType::f8e5m2}) {
    for (int bits = 0; bits < 256; ++bits) {
      std::byte in{uint8_t(bits)}, out{};
      double value = load_double(dtype, &in);
      store_double(dtype, value, &out);
      if (std::isnan(value))
        EXPECT_TRUE(std::isnan(load_double(dtype, &out)));
      else
        EXPECT_EQ(in, out) << to_string(dtype) << " " << bits;
    }
  }
}

TEST(Half, RoundsToNearestEven) {
  EXPECT_EQ(round_to(DType::bf16, 1 + 0x1p-8), 1.0);
  EXPECT_EQ(round_to(DType::bf16, 1 + 3 * 0x1p-8), 1 + 0x1p-6);
  EXPECT_EQ(round_to(DType::f16, 65520), std::numeric_limits<double>::infinity());
  EXPECT_EQ(round_to(DType::f8e4m3, 448), 448);
  EXPECT_TRUE(std::isnan(round_to(DType::f8e4m3, 1e6)));
  EXPECT_TRUE(std::isinf(round_to(DType::f8e5m2, 1e6)));
  EXPECT_EQ(round_to(DType::f8e4m3, 0x1p-9), 0x1p-9);  // subnormal
}

TEST(Half, IntegersSaturate) {
  EXPECT_EQ(round_to(DType::i8, 300), 127);
  EXPECT_EQ(round_to(DType::u8, -3), 0);
  EXPECT_EQ(round_to(DType::i32, -7), -7);
  EXPECT_EQ(round_to(DType::boolean, 0.5), 1);
}

TEST(Half, KeepsMantissaBits) {
  EXPECT_EQ(keep_mantissa(1 + 0x1p-11, 10), 1.0);
  EXPECT_EQ(keep_mantissa(1 + 0x1p-9, 10), 1 + 0x1p-9);
  EXPECT_EQ(keep_mantissa(0, 10), 0.0);
  EXPECT_EQ(keep_mantissa(-3e-300, 52), -3e-300);
}

TEST(Half, ArraysRoundTrip) {
  std::array<double, 3> values{1.5, -2, 0.25}, back{};
  for (DType d : {DType::f64, DType::f32, DType::f16, DType::bf16, DType::f8e4m3}) {
    std::vector<std::byte> bytes(3 * size_of(d));
    from_double(d, values, bytes);
    to_double(d, bytes, back);
    EXPECT_EQ(values, back) << to_string(d);
  }
}

}  // namespace
}  // namespace cutegen
