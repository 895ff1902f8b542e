// SPDX-License-Identifier: Apache-2.0
#include "device/map_rules.h"

namespace cutegen::device {

Result<ptx::TensorMap> checked_map(const MapFields& fields, uint64_t address,
                                   const std::string& where) {
  ptx::TensorMap map;
  map.type = ptx::TensorType(fields.type), map.rank = fields.rank;
  map.address = address, map.swizzle = uint8_t(fields.swizzle), map.im2col = fields.im2col;
  for (size_t i = 0; i < map.lower.size(); ++i)
    map.lower[i] = fields.lower[i], map.upper[i] = fields.upper[i];
  for (size_t i = 0; i < fields.rank; ++i) {
    map.sizes[i] = fields.sizes[i], map.box[i] = fields.box[i];
    map.steps[i] = fields.steps[i];
    if (i > 0) map.strides[i] = fields.pitches[i];
  }
  if (const auto wrong = ptx::wrong_field(map)) {
    return user_error("a tensor map breaks a rule of TMA: " + *wrong, where,
                      "addresses and strides must be multiples of 16 bytes, a box at most 256 a "
                      "mode, its first mode within the swizzle");
  }
  return map;
}

}  // namespace cutegen::device
