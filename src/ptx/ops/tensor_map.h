// SPDX-License-Identifier: Apache-2.0
// TensorMap: the descriptor of a tensor copy (TMA), the rules for its fields, and the rows that a
// copy moves.
//
// Contract: the fields correspond to the arguments of cuTensorMapEncodeTiled and
// cuTensorMapEncodeIm2col in the CUDA driver API. wrong_field() says which of the driver's rules a
// map breaks. encode() returns 128 opaque bytes. decode_tensor_map() refuses bytes that do not come
// from encode(). The layout in shared memory is the same as on an H200: each row of a swizzled box
// takes a whole swizzle span, and the swizzle permutes addresses in shared memory.
//
// Example: if (auto wrong = wrong_field(map)) return user_error(*wrong); bytes = encode(map);
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ptx/ops/atomic.h"

namespace cutegen::ptx {

inline constexpr size_t kTensorMapBytes = 128, kMostTensorRank = 5, kMostSpatialRank = 3;

// Numbered as CUtensorMapDataType.
enum class TensorType : uint8_t {
  u8,
  u16,
  u32,
  s32,
  u64,
  s64,
  f16,
  f32,
  f64,
  bf16,
  f32_flushed,
  tf32,
  tf32_flushed,
  count_
};

struct TensorMap {
  TensorType type = TensorType::u8;
  uint32_t rank = 1;
  uint64_t address = 0;
  std::array<uint64_t, kMostTensorRank> sizes{1, 1, 1, 1, 1}, strides{};  // strides[0] is unused
  std::array<uint32_t, kMostTensorRank> box{1, 1, 1, 1, 1}, steps{1, 1, 1, 1, 1};
  uint8_t interleave = 0, swizzle = 0;  // 0: none; swizzle 1, 2, 3: spans of 32, 64, 128 bytes
  bool fill_nan = false;                // elements outside the tensor are NaN, not zero
  // In im2col mode, the dimensions are C, W, H, D, N, or fewer of W, H, D. A copy has box[1] pixels
  // of box[0] channels. The pixels lie in a bounding box from `lower` to the image's last pixel
  // plus `upper`. The copy traverses the bounding box with strides `steps`, then continues in the
  // next image.
  bool im2col = false;
  std::array<int32_t, kMostSpatialRank> lower{}, upper{};  // W first

  uint32_t element() const;    // bytes
  uint32_t row_bytes() const;  // bytes of one row of the box
  uint32_t pitch() const;      // distance between rows in shared memory
  uint64_t rows() const;
  uint64_t bytes() const { return rows() * row_bytes(); }  // bytes that an mbarrier counts
  uint64_t span() const { return rows() * pitch(); }       // in shared memory
};

std::optional<std::string> wrong_field(const TensorMap& map);
std::array<std::byte, kTensorMapBytes> encode(const TensorMap& map);
std::optional<TensorMap> decode_tensor_map(std::span<const std::byte, kTensorMapBytes> bytes);
// Returns the atomic type for reductions into a tensor of type `type`, or nullopt if TMA has no
// reductions for `type`.
std::optional<AtomicType> atomic_type_of(TensorType type);

// The coordinates at which a tensor copy begins. In im2col mode, the copy adds the TensorOffsets of
// a filter tap to the coordinates of each pixel.
using TensorPlace = std::array<int32_t, kMostTensorRank>;
using TensorOffsets = std::array<uint16_t, kMostSpatialRank>;

// One row of a tensor copy's box. The bytes [from, to) of the row are inside the tensor, and byte
// `from` has the global address `global`.
struct TensorRow {
  uint64_t shared = 0;  // offset in shared memory, before the swizzle
  uint64_t global = 0;
  uint32_t from = 0, to = 0;
};

// Returns all rows of the copy, in the order of shared memory. wrong_field() must have accepted the
// map. A copy from shared memory to the tensor writes whole units of 16 bytes, even if a unit
// extends beyond the last element of a row.
std::vector<TensorRow> rows_of(const TensorMap& map, const TensorPlace& place, bool to_tensor,
                               const TensorOffsets& offsets = {});

// The first and last coordinate at which a copy in im2col mode may begin, in dimension i (1 for W).
struct PixelRange {
  int64_t first = 0, last = -1;
};
PixelRange pixels_along(const TensorMap& map, size_t i);

// Returns the address of a 16-byte chunk after the swizzle.
inline uint64_t swizzled(uint64_t at, uint8_t swizzle) {
  const uint64_t mask = (uint64_t{1} << swizzle) - 1;
  return at ^ ((at >> 7 & mask) << 4);
}

}  // namespace cutegen::ptx
