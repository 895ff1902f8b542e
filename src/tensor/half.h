// SPDX-License-Identifier: Apache-2.0
// Converts elements of any dtype to double, and back with the rounding of the dtype.
//
// Contract: to_double is exact except for 64-bit integers beyond 2^53. The function from_double
// rounds to nearest even, overflows to infinity (f8e4m3: to NaN) and saturates integers. The
// function keep_mantissa rounds to `bits` explicit mantissa bits (tf32 10, bf16 7) and does not
// limit the exponent.
//
// Example: double x = load_double(DType::bf16, bytes);  // one element
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "tensor/dtype.h"

namespace cutegen {

float f16_to_float(uint16_t bits);
float bf16_to_float(uint16_t bits);
uint16_t float_to_f16(float value);
uint16_t float_to_bf16(float value);

double load_double(DType dtype, const std::byte* at);
void store_double(DType dtype, double value, std::byte* at);
// to_double() and from_double() convert a whole array; `from` and `to` must have the same number of
// elements.
void to_double(DType dtype, std::span<const std::byte> from, std::span<double> to);
void from_double(DType dtype, std::span<const double> from, std::span<std::byte> to);

double keep_mantissa(double value, int bits);
// Rounds a value to a dtype: round_to(f16, 1e9) is infinity.
double round_to(DType dtype, double value);
double smallest_normal(DType dtype);  // for floating-point dtypes only
double smallest_subnormal(DType dtype);
// Returns an absolute error that every comparison accepts, because hardware and PyTorch's compiled
// kernels may flush subnormal results to zero: the smallest normal number of f64, f32 and bf16, and
// the smallest subnormal number of narrower dtypes.
double flush_error(DType dtype);
double largest_finite(DType dtype);
double half_ulp(DType dtype);  // relative to the value: 2^-24 for f32

}  // namespace cutegen
