// SPDX-License-Identifier: Apache-2.0
// Computes the arguments of cuTensorMapEncodeTiled or cuTensorMapEncodeIm2col from the description
// of a tensor map in a launch argument.
//
// Contract: the description consists of int64 words: rank, sizes, strides in elements, then the
// words of the module's constant `tma_spec`, then the words for im2col mode (core/program.h). If
// the `tma_spec` names a dimension that the tensor does not have, the result is a user error. An
// unknown swizzle or element size gives an `unsupported` error.
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
// The words of a `tma_spec`: version, rank, box[5], mode[5], bits, swizzle_b, swizzle_m.
inline constexpr size_t kSpecWords = 15;

struct MapFields {
  int type = 0;  // a CUtensorMapDataType with as many bits as the element
  uint32_t rank = 0;
  std::array<uint64_t, kMostMapRank> sizes{}, pitches{};  // pitches in bytes; pitches[0] is unused
  std::array<uint32_t, kMostMapRank> box{};
  std::array<uint32_t, kMostMapRank> steps{1, 1, 1, 1, 1};
  // In im2col mode, box[0] is the driver's channelsPerPixel and box[1] is pixelsPerColumn.
  bool im2col = false;
  std::array<int, kMostMapRank - 2> lower{}, upper{};
  int swizzle = 0;  // CUtensorMapSwizzle: none, 32, 64 or 128 bytes
};

// Returns {"type", "sizes", "pitches" (without pitches[0]), "box", "swizzle"}, the form in which
// exported programs store tensor maps. A map in im2col mode also has {"im2col": {"lower", "upper",
// "steps"}}, where "steps" has an entry for every axis.
Json to_json(const MapFields& fields);

Result<MapFields> map_fields(std::span<const std::byte> description, const std::string& where);

}  // namespace cutegen::device
