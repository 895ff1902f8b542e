// SPDX-License-Identifier: Apache-2.0
// Floats with the precision of tf32: 10 bits after the leading one.
//
// Contract: the tensor cores ignore the 13 low bits of a float. These functions round instead.
//
// Example: high = tf32_high(x), low = x - high;  // x in two parts
#pragma once

#include <cute/config.hpp>

#include <cuda/std/cstdint>

namespace cutegen {

// x rounded to the nearest float whose 13 low bits, which tf32 lacks, are zero.
CUTE_DEVICE float tf32_high(float x) {
  return __uint_as_float((__float_as_uint(x) + 0x1000u) & 0xffffe000u);
}

// The nearest tf32 value. Unlike tf32_high() it keeps every NaN.
CUTE_DEVICE float tf32_nearest(float x) {
  uint32_t rounded;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(rounded) : "f"(x));
  return __uint_as_float(rounded);
}

// Returns a float that a tensor core, which ignores the low bits, reads as the tf32 value nearest to x.
// Does not clear the low bits. Keeps every NaN.
CUTE_DEVICE float tf32_operand(float x) {
  return x == x ? __uint_as_float(__float_as_uint(x) + 0x1000u) : x;
}

// Whether to recompute a sum of products of two tf32 parts in float32. A sum may be NaN because the
// two parts of an infinite number give NaN. A sum may be tiny and wrong because the low part of a
// subnormal number lies in bits that the tensor cores ignore. Sums of ordinary numbers are larger
// than 2^-64, or zero.
CUTE_DEVICE bool parts_lost(float sum) { return !(fabsf(sum) >= 0x1p-64f) && sum != 0; }

}  // namespace cutegen
