// SPDX-License-Identifier: Apache-2.0
#include "device/fill.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "ptx/ops/half.h"

namespace cutegen::device {
namespace {

template <class T>
Result<void> repeat(std::span<std::byte> bytes, T value) {
  for (size_t i = 0; i + sizeof(T) <= bytes.size(); i += sizeof(T))
    std::memcpy(bytes.data() + i, &value, sizeof(T));
  return {};
}

template <class T>
Result<void> repeat_integer(std::span<std::byte> bytes, DType dtype, double value) {
  const double above = std::ldexp(1.0, std::numeric_limits<T>::digits);
  if (!(value >= double(std::numeric_limits<T>::min()) && value < above) ||
      value != std::floor(value)) {
    return user_error(fmt::format("{} cannot be a value of {}", value, to_string(dtype)), "fill",
                      "give a value that fits");
  }
  return repeat(bytes, T(value));
}

}  // namespace

Result<void> fill_bytes(std::span<std::byte> bytes, DType dtype, double value) {
  if (bytes.empty()) return {};
  if (value == 0 && !std::signbit(value)) {
    std::memset(bytes.data(), 0, bytes.size());
    return {};
  }
  switch (dtype) {
    case DType::f64:
      return repeat(bytes, value);
    case DType::f32:
      return repeat(bytes, float(value));
    case DType::f16:
      return repeat(bytes, ptx::to_half(value));
    case DType::bf16:
      return repeat(bytes, ptx::to_bfloat(value));
    case DType::i64:
      return repeat_integer<int64_t>(bytes, dtype, value);
    case DType::i32:
      return repeat_integer<int32_t>(bytes, dtype, value);
    case DType::i16:
      return repeat_integer<int16_t>(bytes, dtype, value);
    case DType::i8:
      return repeat_integer<int8_t>(bytes, dtype, value);
    case DType::u64:
      return repeat_integer<uint64_t>(bytes, dtype, value);
    case DType::u32:
      return repeat_integer<uint32_t>(bytes, dtype, value);
    case DType::u16:
      return repeat_integer<uint16_t>(bytes, dtype, value);
    case DType::u8:
      return repeat_integer<uint8_t>(bytes, dtype, value);
    case DType::boolean:
      return repeat(bytes, uint8_t(1));
    default:
      return unsupported_error(fmt::format("fill of {} with {}", to_string(dtype), value), "fill");
  }
}

}  // namespace cutegen::device
