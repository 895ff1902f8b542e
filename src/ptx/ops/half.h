// SPDX-License-Identifier: Apache-2.0
// 16-bit floats for code outside the handlers.
//
// Contract: rounding to nearest even in one step from double; a NaN becomes 0x7fff.
// Example: uint16_t one = to_half(1.0);  // 0x3c00
#pragma once

#include <cstdint>

namespace cutegen::ptx {

[[nodiscard]] uint16_t to_half(double value);
[[nodiscard]] uint16_t to_bfloat(double value);
[[nodiscard]] float half_value(uint16_t bits);
[[nodiscard]] float bfloat_value(uint16_t bits);

}  // namespace cutegen::ptx
