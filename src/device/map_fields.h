// SPDX-License-Identifier: Apache-2.0
// What the driver is told of a tensor map, worked out from the description in a launch's argument.
//
// Contract: the description is int64 words: rank, dims, strides in elements, then the words of the
// module's tma_spec (core/program.h). A mode that is not there is a user error; a swizzle or an
// element that is not known is unsupported.
//
// Example: CG_TRY(MapFields f, map_fields(arg.bytes, "step gemm"));
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"

namespace cutegen {

inline constexpr size_t kMostMapRank = 5;

struct MapFields {
  int type = 0;  // of the driver, by the bits of an element
  uint32_t rank = 0;
  std::array<uint64_t, kMostMapRank> sizes{}, pitches{};  // pitches in bytes; the first is not used
  std::array<uint32_t, kMostMapRank> box{};
  int swizzle = 0;  // of the driver: none, 32, 64, 128 bytes
};

[[nodiscard]] Result<MapFields> map_fields(std::span<const std::byte> description,
                                           const std::string& where);

}  // namespace cutegen
