// SPDX-License-Identifier: Apache-2.0
#include "ptx/ops/half.h"

#include "ptx/ops/formats.h"

namespace cutegen::ptx {

uint16_t to_half(double value) {
  return half_rn(to_odd(value));
}
uint16_t to_bfloat(double value) {
  return bfloat_rn(to_odd(value));
}
float half_value(uint16_t bits) {
  return from_half(bits);
}
float bfloat_value(uint16_t bits) {
  return from_bfloat(bits);
}

}  // namespace cutegen::ptx
