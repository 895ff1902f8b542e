// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/tensor_map.h"

#include "device/map_rules.h"

namespace cutegen::device::cuda {
namespace {

constexpr int kNoInterleave = 0, kPromoteTo128Bytes = 2, kZeroOutside = 0;

}  // namespace

Result<TensorMap> encode_map(const Driver& driver, std::span<const std::byte> description,
                             Address address, const std::string& where) {
  CG_TRY(MapFields f, map_fields(description, where));
  CG_CHECK(checked_map(f, address, where));
  const uint32_t steps[kMostMapRank] = {1, 1, 1, 1, 1};
  TensorMap map{};
  Status s = driver.encode_tiled(&map, f.type, f.rank, reinterpret_cast<void*>(address),
                                 f.sizes.data(), f.pitches.data() + 1, f.box.data(), steps,
                                 kNoInterleave, f.swizzle, kPromoteTo128Bytes, kZeroOutside);
  if (s == kOk) return map;
  return user_error(
      "the GPU refuses this tensor map: " + driver.text(s), where,
      "compare the map's dims, strides and box with the rules of cuTensorMapEncodeTiled");
}

}  // namespace cutegen::device::cuda
