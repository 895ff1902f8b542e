// SPDX-License-Identifier: Apache-2.0
// Converts 16-bit floats, for code other than instruction handlers (ptx/handlers).
//
// Contract: to_half() and to_bfloat() round to nearest even in one step, and convert every NaN to
// 0x7fff.
//
// Example: uint16_t one = to_half(1.0);  // 0x3c00
#pragma once

#include <cstdint>

namespace cutegen::ptx {

uint16_t to_half(double value);
uint16_t to_bfloat(double value);
float half_value(uint16_t bits);
float bfloat_value(uint16_t bits);

}  // namespace cutegen::ptx
