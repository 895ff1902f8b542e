// SPDX-License-Identifier: Apache-2.0
// The driver's arguments for a tensor map, computed from the description in a launch's argument.
//
// Contract: the description consists of int64 words: rank, dims, strides in elements, then the
// words of the module's tma_spec, then those of im2col mode (core/program.h). If the tma_spec names
// a mode beyond the tensor's rank, that is a user error. An unknown swizzle or element size is
// unsupported.
//
// Example: CG_TRY(MapFields f, map_fields(arg.bytes, "step gemm"));
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/json.h"
#include "base/result.h"

namespace cutegen::device {

inline constexpr size_t kMostMapRank = 5;
inline constexpr size_t kSpecWords =
    15;  // version, rank, box[5], mode[5], bits, swizzle_b, swizzle_m

struct MapFields {
  int type = 0;  // the driver's data type for the element's bits
  uint32_t rank = 0;
  std::array<uint64_t, kMostMapRank> sizes{}, pitches{};  // in bytes; pitches[0] is unused
  std::array<uint32_t, kMostMapRank> box{};
  std::array<uint32_t, kMostMapRank> steps{1, 1, 1, 1, 1};
  // In im2col mode, box[0] is channelsPerPixel and box[1] pixelsPerColumn.
  bool im2col = false;
  std::array<int, kMostMapRank - 2> lower{}, upper{};
  int swizzle = 0;  // the driver's number: none, 32, 64, 128 bytes
};

// {"type", "sizes", "pitches" (without the first), "box", "swizzle"}, as in the launches of an
// export. In tile mode only.
Json to_json(const MapFields& fields);

Result<MapFields> map_fields(std::span<const std::byte> description, const std::string& where);

}  // namespace cutegen::device
