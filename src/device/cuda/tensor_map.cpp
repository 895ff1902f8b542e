// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/tensor_map.h"

#include <fmt/format.h>

#include "device/map_rules.h"

namespace cutegen::device::cuda {
namespace {

constexpr int kNoInterleave = 0, kPromoteTo128Bytes = 2, kZeroOutside = 0;

}  // namespace

Result<TensorMap> encode_map(const Driver& driver, std::span<const std::byte> description,
                             Address address, const std::string& where) {
  CG_TRY(MapFields f, map_fields(description, where));
  CG_CHECK(checked_map(f, address, where));
  TensorMap map{};
  // The driver takes a number as a pointer. NOLINTNEXTLINE(performance-no-int-to-ptr)
  auto* at = reinterpret_cast<void*>(address);
  const uint64_t *sizes = f.sizes.data(), *pitches = f.pitches.data() + 1;
  const Status s =
      f.im2col ? driver.encode_im2col(&map, f.type, f.rank, at, sizes, pitches, f.lower.data(),
                                      f.upper.data(), f.box[0], f.box[1], f.steps.data(),
                                      kNoInterleave, f.swizzle, kPromoteTo128Bytes, kZeroOutside)
               : driver.encode_tiled(&map, f.type, f.rank, at, sizes, pitches, f.box.data(),
                                     f.steps.data(), kNoInterleave, f.swizzle, kPromoteTo128Bytes,
                                     kZeroOutside);
  if (s == kOk) return map;
  return user_error("the GPU refuses this tensor map: " + driver.text(s), where,
                    fmt::format("compare the map with the rules of cuTensorMapEncode{}",
                                f.im2col ? "Im2col" : "Tiled"));
}

}  // namespace cutegen::device::cuda
