// SPDX-License-Identifier: Apache-2.0
// Converts 8-bit and 16-bit floats, for one lane at a time and without branches. Only instruction
// handlers (ptx/handlers) include this header.
//
// Contract: half_rn() and bfloat_rn() round to nearest even, and convert every NaN to 0x7fff.
//
// Example: uint16_t one = half_rn(1.f);  // 0x3c00
#pragma once

#include <cstdint>

#include "ptx/machine/inst.h"

namespace cutegen::ptx {
namespace {

template <class T, class V>
inline T bits_of(V value) {
  static_assert(sizeof(T) == sizeof(V));
  T out;
  __builtin_memcpy(&out, &value, sizeof(T));
  return out;
}
inline float canonical_nan() {
  return bits_of<float>(0x7fffffffu);
}
inline float flush(float x) {
  return __builtin_fabsf(x) < 0x1p-126f ? __builtin_copysignf(0.f, x) : x;
}
inline double flush(double x) {
  return x;
}
inline float saturate(float x) {
  return x > 0.f ? (x < 1.f ? x : 1.f) : 0.f;
}  // NaN and -0 give 0
inline double saturate(double x) {
  return x > 0 ? (x < 1 ? x : 1) : 0;
}

inline float from_half(uint16_t h) {
  uint32_t e = h & 0x7c00u, low = h & 0x7fffu;
  uint32_t normal = (low << 13) + (112u << 23), special = (low << 13) + (224u << 23);
  uint32_t tiny = bits_of<uint32_t>(float(int32_t(low)) * 0x1p-24f);
  uint32_t bits = e == 0 ? tiny : e == 0x7c00u ? special : normal;
  return bits_of<float>(bits | uint32_t(h & 0x8000u) << 16);
}
inline uint16_t half_rn(float f) {
  uint32_t u = bits_of<uint32_t>(f), sign = u >> 16 & 0x8000u, a = u & 0x7fffffffu;
  uint32_t tiny = bits_of<uint32_t>(bits_of<float>(a) + 0.5f) - bits_of<uint32_t>(0.5f);
  uint32_t normal = (a + 0xfffu + (a >> 13 & 1) - (112u << 23)) >> 13;
  uint32_t h = a < 0x38800000u ? tiny : a >= 0x477ff000u ? 0x7c00u : normal;
  return uint16_t(a > 0x7f800000u ? 0x7fffu : (h | sign));
}
inline uint16_t half_rz(float f) {
  uint32_t u = bits_of<uint32_t>(f), sign = u >> 16 & 0x8000u, a = u & 0x7fffffffu;
  uint32_t tiny = uint32_t(int32_t(bits_of<float>(a < 0x38800000u ? a : 0u) * 0x1p24f));
  uint32_t h = a < 0x38800000u    ? tiny
               : a == 0x7f800000u ? 0x7c00u
               : a >= 0x47800000u ? 0x7bffu
                                  : (a - (112u << 23)) >> 13;
  return uint16_t(a > 0x7f800000u ? 0x7fffu : (h | sign));
}
inline float from_bfloat(uint16_t b) {
  return bits_of<float>(uint32_t(b) << 16);
}
inline uint16_t bfloat_rn(float f) {
  uint32_t u = bits_of<uint32_t>(f);
  uint32_t rounded = (u + 0x7fffu + (u >> 16 & 1)) >> 16;
  return uint16_t((u & 0x7fffffffu) > 0x7f800000u ? 0x7fffu : rounded);
}
inline uint16_t bfloat_rz(float f) {
  uint32_t u = bits_of<uint32_t>(f);
  return uint16_t((u & 0x7fffffffu) > 0x7f800000u ? 0x7fffu : u >> 16);
}
// Converts to float with round-to-odd (truncates, and sets the last bit if the result is inexact),
// so that a later rounding to 16 bits gives the same value as rounding x directly.
inline float to_odd(double x) {
  float f = float(x);
  uint32_t u = bits_of<uint32_t>(f);
  double back = f;
  bool inexact = back != x && x == x;
  double magnitude = x < 0 ? -x : x, kept = back < 0 ? -back : back;
  if (inexact && kept > magnitude) u -= 1;
  return bits_of<float>(inexact ? u | 1u : u);
}

// The conversions from 8-bit floats are exact. The format e4m3 has no infinity, and 0x7f is its
// NaN.
inline float from_e4m3(uint8_t x) {
  float v = from_half(uint16_t((x & 0x7f) << 7)) * 256.f;
  return (x & 0x7f) == 0x7f ? canonical_nan() : (x & 0x80) ? -v : v;
}
inline float from_e5m2(uint8_t x) {
  return from_half(uint16_t(x << 8));
}

// A float format of at most 16 bits.
struct Narrow {
  int exponent_bits, mantissa_bits;
  bool has_infinity;
  uint32_t nan, largest, overflow;  // overflow: the result for x above `largest`
};
inline constexpr Narrow kF16{.exponent_bits = 5,
                             .mantissa_bits = 10,
                             .has_infinity = true,
                             .nan = 0x7fff,
                             .largest = 0x7bff,
                             .overflow = 0x7c00},
    kBf16{.exponent_bits = 8,
          .mantissa_bits = 7,
          .has_infinity = true,
          .nan = 0x7fff,
          .largest = 0x7f7f,
          .overflow = 0x7f80},
    kE4m3{.exponent_bits = 4,
          .mantissa_bits = 3,
          .has_infinity = false,
          .nan = 0x7f,
          .largest = 0x7e,
          .overflow = 0x7f},
    kE5m2{.exponent_bits = 5,
          .mantissa_bits = 2,
          .has_infinity = true,
          .nan = 0x7f,
          .largest = 0x7b,
          .overflow = 0x7c};

// Rounds x to the narrow format f. `mode` is a rounding mode of Inst::sub. x may be a result of
// to_odd().
inline uint32_t to_narrow(float x, const Narrow& f, uint8_t mode, bool satfinite) {
  const uint32_t u = bits_of<uint32_t>(x), a = u & 0x7fffffffu;
  const int total = f.exponent_bits + f.mantissa_bits;
  const uint32_t sign = u >> 31 << total;
  if (a > 0x7f800000u) return f.nan;
  if (a == 0x7f800000u) return sign | (satfinite ? f.largest : f.overflow);
  if (a == 0) return sign;
  const int bias = (1 << (f.exponent_bits - 1)) - 1;
  uint32_t mantissa = a & 0x7fffffu;
  int exponent = int(a >> 23) - 127;
  if (a >> 23) {
    mantissa |= 0x800000u;
  } else {
    exponent = -126;
  }
  const int least = 1 - bias;  // smallest exponent of normal numbers
  int drop = 23 - f.mantissa_bits + (exponent < least ? least - exponent : 0);
  // these values remain if |x| is less than half of the format's smallest number
  uint32_t kept = 0, lost = 1, half = 2;
  if (drop <= 24) {
    kept = mantissa >> drop, half = 1u << (drop - 1);
    lost = mantissa & ((1u << drop) - 1);
  }
  const bool negative = u >> 31;
  const bool up = mode == kRoundNearest ? lost > half || (lost == half && (kept & 1))
                  : mode == kRoundUp    ? lost != 0 && !negative
                  : mode == kRoundDown  ? lost != 0 && negative
                                        : false;
  kept += up;
  uint32_t out = exponent < least ? kept : (uint32_t(exponent - least) << f.mantissa_bits) + kept;
  if (out > f.largest) {
    const bool stays = satfinite || mode == kRoundZero || (mode == kRoundUp && negative) ||
                       (mode == kRoundDown && !negative);
    out = stays ? f.largest : f.overflow;
  }
  return sign | out;
}

struct F16 {
  uint16_t bits;
  static constexpr float kLeast = 0x1p-14f;  // smallest normal number
  static float load(uint16_t h) { return from_half(h); }
  static uint16_t store(float f) { return half_rn(f); }
};
struct BF16 {
  uint16_t bits;
  static constexpr float kLeast = 0x1p-126f;
  static float load(uint16_t h) { return from_bfloat(h); }
  static uint16_t store(float f) { return bfloat_rn(f); }
};

}  // namespace
}  // namespace cutegen::ptx
