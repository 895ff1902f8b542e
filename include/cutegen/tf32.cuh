// SPDX-License-Identifier: Apache-2.0
// Rounds floats to the precision of tf32, which has 10 mantissa bits after the leading one.
//
// Contract: the tensor cores ignore the 13 low bits of a float, which truncates it. The functions
// of this header round to the nearest tf32 value instead.
//
// Example: high = tf32_high(x), low = x - high;  // x in two parts
#pragma once

#include <cute/config.hpp>

#include <cuda/std/cstdint>

namespace cutegen {

// Rounds x to the nearest float whose 13 low bits are zero.
CUTE_DEVICE float tf32_high(float x) {
  return __uint_as_float((__float_as_uint(x) + 0x1000u) & 0xffffe000u);
}

// Returns the tf32 value nearest to x. Unlike tf32_high(), tf32_nearest() returns NaN for every
// NaN.
CUTE_DEVICE float tf32_nearest(float x) {
  uint32_t rounded;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(rounded) : "f"(x));
  return __uint_as_float(rounded);
}

// Returns a float that a tensor core reads as the tf32 value nearest to x, because the tensor core
// ignores the 13 low bits. tf32_operand() does not clear these low bits, and returns NaN for every
// NaN.
CUTE_DEVICE float tf32_operand(float x) {
  return x == x ? __uint_as_float(__float_as_uint(x) + 0x1000u) : x;
}

// Returns whether the split into high and low tf32 parts may have made a sum of products wrong, so
// that the kernel must recompute it in float32. A NaN may come from an infinite operand, because
// the low part of an infinity is NaN. A sum below 2^-64 may come from subnormal operands, because
// the tensor cores ignore the bits that hold their low parts. Sums of normal operands are zero or
// have a magnitude of at least 2^-64.
CUTE_DEVICE bool parts_lost(float sum) { return !(fabsf(sum) >= 0x1p-64f) && sum != 0; }

}  // namespace cutegen
