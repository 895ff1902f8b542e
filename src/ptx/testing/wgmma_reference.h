// SPDX-License-Identifier: Apache-2.0
// For tests: computes one element of a wgmma product with integer arithmetic, independently of the
// simulator.
//
// Contract: all operands must be finite. ptx/ops/wgmma.h describes the rounding.
//
// Example: uint32_t bits = wgmma_element(kBf16Format, a, kBf16Format, b, c, {25, 23, false});
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

namespace cutegen::ptx {

struct FloatFormat {
  int exponent_bits, mantissa_bits, bytes;
  int ignored = 0;  // low bits
};
inline constexpr FloatFormat kF16Format{.exponent_bits = 5, .mantissa_bits = 10, .bytes = 2},
    kBf16Format{.exponent_bits = 8, .mantissa_bits = 7, .bytes = 2},
    kTf32Format{.exponent_bits = 8, .mantissa_bits = 10, .bytes = 4, .ignored = 13},
    kE4m3Format{.exponent_bits = 4, .mantissa_bits = 3, .bytes = 1},
    kE5m2Format{.exponent_bits = 5, .mantissa_bits = 2, .bytes = 1},
    kF32Format{.exponent_bits = 8, .mantissa_bits = 23, .bytes = 4};

struct AdderWidths {
  int fraction, kept;
  bool half;  // whether the accumulator is f16
};

// The number significand * 2^(exponent - bits).
struct Term {
  __int128 significand = 0;
  int exponent = 0, bits = 0;
};

inline Term term_of(const FloatFormat& f, uint32_t raw) {
  raw >>= f.ignored;
  const int bias = (1 << (f.exponent_bits - 1)) - 1;
  const uint32_t mantissa = raw & ((1u << f.mantissa_bits) - 1);
  const int field = int(raw >> f.mantissa_bits & ((1u << f.exponent_bits) - 1));
  const bool negative = raw >> (f.mantissa_bits + f.exponent_bits) & 1;
  const __int128 s = field ? __int128(mantissa | 1u << f.mantissa_bits) : __int128(mantissa);
  return {.significand = negative ? -s : s,
          .exponent = (field ? field : 1) - bias,
          .bits = f.mantissa_bits};
}

inline uint32_t wgmma_element(const FloatFormat& fa, const std::vector<uint32_t>& a,
                              const FloatFormat& fb, const std::vector<uint32_t>& b, uint32_t c,
                              const AdderWidths& w) {
  std::vector<Term> terms{term_of(w.half ? kF16Format : kF32Format, c)};
  for (size_t k = 0; k < a.size(); ++k) {
    const Term x = term_of(fa, a[k]), y = term_of(fb, b[k]);
    terms.push_back({.significand = x.significand * y.significand,
                     .exponent = x.exponent + y.exponent,
                     .bits = x.bits + y.bits});
  }
  int top = -126;
  for (const Term& t : terms)
    if (t.significand != 0) top = std::max(top, t.exponent);
  __int128 sum = 0;
  for (const Term& t : terms) {
    const int up = w.fraction - t.bits - (top - t.exponent);
    const __int128 size = t.significand < 0 ? -t.significand : t.significand;
    const __int128 cut = up >= 0 ? size << up : up < -100 ? 0 : size >> -up;
    sum += t.significand < 0 ? -cut : cut;
  }
  const double exact = std::ldexp(double(int64_t(sum)), top - w.fraction);
  if (exact == 0) return 0;
  const int least = w.half ? -14 : -126, kept = w.half ? 10 : w.kept;
  const int e = std::max(std::ilogb(exact), least);
  const double units = std::ldexp(exact, kept - e);
  const double result = std::ldexp(w.half ? std::nearbyint(units) : std::trunc(units), e - kept);
  if (!w.half) return std::bit_cast<uint32_t>(float(result));
  const uint32_t sign = result < 0 ? 0x8000 : 0;
  const double size = std::abs(result);
  if (size >= 65520) return sign | 0x7c00;
  if (size < 0x1p-14) return sign | uint32_t(size * 0x1p24);
  const int exponent = std::ilogb(size);
  return sign | uint32_t(exponent + 15) << 10 | (uint32_t(std::ldexp(size, 10 - exponent)) & 0x3ff);
}

}  // namespace cutegen::ptx
