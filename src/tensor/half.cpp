// SPDX-License-Identifier: Apache-2.0
#include "tensor/half.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace cutegen {
namespace {

template <class T>
T read(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

template <class T>
void write(std::byte* at, T value) {
  std::memcpy(at, &value, sizeof(T));
}

struct SmallFloat {
  int exponent_bits, mantissa_bits, bias;
  bool has_infinity;
};
constexpr SmallFloat kE4m3{
    .exponent_bits = 4, .mantissa_bits = 3, .bias = 7, .has_infinity = false};
constexpr SmallFloat kE5m2{
    .exponent_bits = 5, .mantissa_bits = 2, .bias = 15, .has_infinity = true};

double decode_f8(SmallFloat f, uint8_t bits) {
  int exponent = (bits >> f.mantissa_bits) & ((1 << f.exponent_bits) - 1);
  int mantissa = bits & ((1 << f.mantissa_bits) - 1);
  double sign = bits & 0x80 ? -1.0 : 1.0;
  if (exponent == (1 << f.exponent_bits) - 1) {
    if (f.has_infinity && mantissa == 0) return sign * std::numeric_limits<double>::infinity();
    if (f.has_infinity || mantissa == (1 << f.mantissa_bits) - 1)
      return std::numeric_limits<double>::quiet_NaN();
  }
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - f.bias - f.mantissa_bits);
  return sign * std::ldexp((1 << f.mantissa_bits) + mantissa, exponent - f.bias - f.mantissa_bits);
}

uint8_t encode_f8(SmallFloat f, double value) {
  auto nan = uint8_t((1 << (f.exponent_bits + f.mantissa_bits)) - 1);
  uint8_t sign = std::signbit(value) ? 0x80 : 0;
  double size = std::abs(value);
  if (std::isnan(value)) return nan | sign;
  auto infinity = uint8_t(f.has_infinity ? ((1 << f.exponent_bits) - 1) << f.mantissa_bits : nan);
  int exponent =
      size == 0 ? 1 - f.bias : std::max(1 - f.bias, std::isinf(size) ? 99 : std::ilogb(size));
  if (exponent > f.bias + 1) return infinity | sign;
  auto units = int(std::nearbyint(std::ldexp(size, f.mantissa_bits - exponent)));
  int code = ((exponent + f.bias - 1) << f.mantissa_bits) + units;
  return uint8_t(std::min<int>(code, infinity)) | sign;
}

template <class T>
T saturate(double value) {
  if (std::isnan(value)) return 0;
  if (value <= double(std::numeric_limits<T>::min())) return std::numeric_limits<T>::min();
  if (value >= double(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
  return T(value);
}

}  // namespace

float f16_to_float(uint16_t bits) {
  return float(std::bit_cast<_Float16>(bits));
}
float bf16_to_float(uint16_t bits) {
  return std::bit_cast<float>(uint32_t{bits} << 16);
}
uint16_t float_to_f16(float value) {
  return std::bit_cast<uint16_t>(_Float16(value));
}
uint16_t float_to_bf16(float value) {
  auto bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return uint16_t((bits >> 16) | 0x40);
  return uint16_t((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

double load_double(DType dtype, const std::byte* at) {
  switch (dtype) {
    case DType::f64:
      return read<double>(at);
    case DType::f32:
      return read<float>(at);
    case DType::f16:
      return f16_to_float(read<uint16_t>(at));
    case DType::bf16:
      return bf16_to_float(read<uint16_t>(at));
    case DType::f8e4m3:
      return decode_f8(kE4m3, read<uint8_t>(at));
    case DType::f8e5m2:
      return decode_f8(kE5m2, read<uint8_t>(at));
    case DType::i64:
      return double(read<int64_t>(at));
    case DType::i32:
      return read<int32_t>(at);
    case DType::i16:
      return read<int16_t>(at);
    case DType::i8:
      return read<int8_t>(at);
    case DType::u64:
      return double(read<uint64_t>(at));
    case DType::u32:
      return read<uint32_t>(at);
    case DType::u16:
      return read<uint16_t>(at);
    case DType::u8:
    case DType::boolean:
      return read<uint8_t>(at);
  }
  CG_ASSERT(false);
}

void store_double(DType dtype, double value, std::byte* at) {
  switch (dtype) {
    case DType::f64:
      return write(at, value);
    case DType::f32:
      return write(at, float(value));
    case DType::f16:
      return write(at, _Float16(value));
    case DType::bf16:
      return write(at, float_to_bf16(float(value)));
    case DType::f8e4m3:
      return write(at, encode_f8(kE4m3, value));
    case DType::f8e5m2:
      return write(at, encode_f8(kE5m2, value));
    case DType::i64:
      return write(at, saturate<int64_t>(value));
    case DType::i32:
      return write(at, saturate<int32_t>(value));
    case DType::i16:
      return write(at, saturate<int16_t>(value));
    case DType::i8:
      return write(at, saturate<int8_t>(value));
    case DType::u64:
      return write(at, saturate<uint64_t>(value));
    case DType::u32:
      return write(at, saturate<uint32_t>(value));
    case DType::u16:
      return write(at, saturate<uint16_t>(value));
    case DType::u8:
      return write(at, saturate<uint8_t>(value));
    case DType::boolean:
      return write(at, uint8_t(value != 0));
  }
  CG_ASSERT(false);
}

void to_double(DType dtype, std::span<const std::byte> from, std::span<double> to) {
  size_t step = size_of(dtype);
  CG_ASSERT(from.size() == to.size() * step);
  if (dtype == DType::f32) {  // fast path without the switch
    for (size_t i = 0; i < to.size(); ++i) to[i] = read<float>(from.data() + i * 4);
    return;
  }
  for (size_t i = 0; i < to.size(); ++i) to[i] = load_double(dtype, from.data() + i * step);
}

void from_double(DType dtype, std::span<const double> from, std::span<std::byte> to) {
  size_t step = size_of(dtype);
  CG_ASSERT(to.size() == from.size() * step);
  for (size_t i = 0; i < from.size(); ++i) store_double(dtype, from[i], to.data() + i * step);
}

double keep_mantissa(double value, int bits) {
  if (!std::isfinite(value) || value == 0) return value;
  int exponent = 0;
  double fraction = std::frexp(value, &exponent);  // [0.5, 1)
  return std::ldexp(std::nearbyint(std::ldexp(fraction, bits + 1)), exponent - bits - 1);
}

double round_to(DType dtype, double value) {
  std::byte bytes[8];
  store_double(dtype, value, bytes);
  return load_double(dtype, bytes);
}

double smallest_subnormal(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return std::numeric_limits<double>::denorm_min();
    case DType::f16:
      return 0x1p-24;
    case DType::f8e4m3:
      return 0x1p-9;
    case DType::f8e5m2:
      return 0x1p-16;
    case DType::bf16:
      return 0x1p-133;
    default:
      return std::numeric_limits<float>::denorm_min();
  }
}

double flush_error(DType dtype) {
  const bool wide = dtype == DType::f64 || dtype == DType::f32 || dtype == DType::bf16;
  return wide ? smallest_normal(dtype) : smallest_subnormal(dtype);
}

double smallest_normal(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return std::numeric_limits<double>::min();
    case DType::f16:
      return 0x1p-14;
    case DType::f8e4m3:
      return 0x1p-6;
    case DType::f8e5m2:
      return 0x1p-14;
    default:
      return std::numeric_limits<float>::min();  // bf16 has f32's exponent range
  }
}

double largest_finite(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return std::numeric_limits<double>::max();
    case DType::bf16:
      return 0x1.fep127;
    case DType::f16:
      return 65504;
    case DType::f8e4m3:
      return 448;
    case DType::f8e5m2:
      return 57344;
    default:
      return std::numeric_limits<float>::max();
  }
}

double half_ulp(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return 0x1p-53;
    case DType::f16:
      return 0x1p-11;
    case DType::bf16:
      return 0x1p-8;
    case DType::f8e4m3:
      return 0x1p-4;
    case DType::f8e5m2:
      return 0x1p-3;
    default:
      return 0x1p-24;
  }
}

}  // namespace cutegen
