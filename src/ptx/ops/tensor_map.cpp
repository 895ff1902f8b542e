// SPDX-License-Identifier: Apache-2.0
#include "ptx/ops/tensor_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace cutegen::ptx {
namespace {

constexpr uint64_t kMagic = 0x70616d2d6e657463;
constexpr uint64_t kMostSize = uint64_t{1} << 32, kMostStride = uint64_t{1} << 40;
constexpr uint32_t kMostBox = 256, kMostPixels = 1024, kMostStep = 8;

// The bytes that encode() returns.
struct Stored {
  uint64_t magic = kMagic, address = 0;
  uint64_t strides[kMostTensorRank - 1] = {};
  uint32_t sizes[kMostTensorRank] = {};  // minus 1
  uint16_t box[kMostTensorRank] = {};
  uint8_t steps[kMostTensorRank] = {};
  uint8_t type = 0, rank = 0, interleave = 0, swizzle = 0, fill = 0, im2col = 0;
  uint8_t unused[3] = {};
  int16_t lower[kMostSpatialRank] = {}, upper[kMostSpatialRank] = {};
  uint64_t check = 0;
};
static_assert(offsetof(Stored, check) == 104 && sizeof(Stored) <= kTensorMapBytes);

uint64_t check_of(const Stored& s) {
  uint64_t hash = 0xcbf29ce484222325;
  const auto* bytes = reinterpret_cast<const unsigned char*>(&s);
  for (size_t i = 0; i < offsetof(Stored, check); ++i) hash = (hash ^ bytes[i]) * 0x100000001b3;
  return hash;
}

std::optional<std::string> wrong_tensor(const TensorMap& m) {
  const uint64_t unit = m.interleave == 2 ? 32 : 16;
  if (m.address % unit != 0)
    return fmt::format("the address {:#x} must be a multiple of {}", m.address, unit);
  for (size_t i = 0; i < m.rank; ++i) {
    if (m.sizes[i] < 1 || m.sizes[i] > kMostSize)
      return fmt::format("dims[{}] is {} (1 to 2^32)", i, m.sizes[i]);
    if (i == 0) continue;
    if (m.strides[i] % unit != 0 || m.strides[i] >= kMostStride)
      return fmt::format("strides[{}] is {} bytes: it must be a multiple of {} below 2^40", i,
                         m.strides[i], unit);
  }
  return std::nullopt;
}

// Returns what is wrong with the size of a row in shared memory.
std::optional<std::string> wrong_row(const TensorMap& m) {
  const uint32_t row = m.row_bytes(), width = 16u << m.swizzle;
  const char* name = m.im2col ? "channels_per_pixel" : "box[0]";
  if (m.interleave == 0 && row % 16 != 0)
    return fmt::format("{} has {} bytes: it must be a multiple of 16", name, row);
  if (m.interleave == 0 && m.swizzle > 0 && row > width)
    return fmt::format("{} has {} bytes, more than the {} of the swizzle", name, row, width);
  return std::nullopt;
}

std::optional<std::string> wrong_steps(const TensorMap& m) {
  for (size_t i = 0; i < m.rank; ++i) {
    if (m.steps[i] < 1 || m.steps[i] > kMostStep)
      return fmt::format("element_strides[{}] is {} (1 to {})", i, m.steps[i], kMostStep);
  }
  return std::nullopt;
}

std::optional<std::string> wrong_tile(const TensorMap& m) {
  for (size_t i = 0; i < m.rank; ++i) {
    if (m.box[i] < 1 || m.box[i] > kMostBox)
      return fmt::format("box[{}] is {} (1 to {})", i, m.box[i], kMostBox);
  }
  return std::nullopt;
}

std::optional<std::string> wrong_corner(const char* name, size_t i, int32_t corner,
                                        uint32_t spatial) {
  static constexpr int32_t kMost[] = {32767, 127, 15};
  const int32_t most = kMost[spatial - 1];
  if (corner >= -most - 1 && corner <= most) return std::nullopt;
  return fmt::format("{}[{}] is {} ({} to {} with {} spatial dims)", name, i, corner, -most - 1,
                     most, spatial);
}

std::optional<std::string> wrong_pixels(const TensorMap& m) {
  if (m.rank < 3) return fmt::format("im2col mode with a rank of {} (3 to 5)", m.rank);
  if (m.box[0] < 1 || m.box[0] > kMostBox)
    return fmt::format("channels_per_pixel is {} (1 to {})", m.box[0], kMostBox);
  if (m.box[1] < 1 || m.box[1] > kMostPixels)
    return fmt::format("pixels_per_column is {} (1 to {})", m.box[1], kMostPixels);
  for (size_t i = 1; i + 1 < m.rank; ++i) {
    if (auto wrong = wrong_corner("lower", i - 1, m.lower[i - 1], m.rank - 2)) return wrong;
    if (auto wrong = wrong_corner("upper", i - 1, m.upper[i - 1], m.rank - 2)) return wrong;
    const PixelRange range = pixels_along(m, i);
    if (range.first > range.last)
      return fmt::format(
          "the bounding box is empty: along dims[{}], lower is {} and the last pixel {}", i,
          range.first, range.last);
  }
  return std::nullopt;
}

// Sets the bytes of a row that are inside the tensor.
void clip(const TensorMap& m, int64_t first, TensorRow& row) {
  const int64_t size = m.element(), width = int64_t(m.row_bytes()) / size,
                begin = std::clamp<int64_t>(-first, 0, width),
                end = std::clamp<int64_t>(int64_t(m.sizes[0]) - first, begin, width);
  row.from = uint32_t(begin * size), row.to = uint32_t(end * size);
  row.global += uint64_t((first + begin) * size);
}

bool inside(const TensorMap& m, size_t i, int64_t at) {
  return at >= 0 && uint64_t(at) < m.sizes[i];
}

using Position = std::array<int64_t, kMostTensorRank>;

// The row whose first element is at `p`.
TensorRow row_at(const TensorMap& m, const Position& p, uint64_t shared) {
  TensorRow row{.shared = shared, .global = m.address, .from = 0, .to = 0};
  bool all = true;
  for (size_t i = 1; i < m.rank; ++i) {
    all = all && inside(m, i, p[i]);
    row.global += uint64_t(p[i]) * m.strides[i];
  }
  if (all) clip(m, p[0], row);
  return row;
}

}  // namespace

uint32_t TensorMap::element() const {
  static constexpr uint8_t bytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
  static_assert(std::size(bytes) == size_t(TensorType::count_));
  return bytes[size_t(type)];
}

uint32_t TensorMap::row_bytes() const {
  return box[0] * element();
}

uint32_t TensorMap::pitch() const {
  return swizzle == 0 ? row_bytes() : std::max(row_bytes(), 16u << swizzle);
}

uint64_t TensorMap::rows() const {
  if (im2col) return box[1];
  uint64_t n = 1;
  for (size_t i = 1; i < rank; ++i) n *= (box[i] + steps[i] - 1) / steps[i];
  return n;
}

std::optional<std::string> wrong_field(const TensorMap& m) {
  if (m.type >= TensorType::count_) return fmt::format("the data type {}", int(m.type));
  if (m.rank < 1 || m.rank > kMostTensorRank) return fmt::format("rank is {} (1 to 5)", m.rank);
  if (m.interleave > 2) return fmt::format("the interleave {}", m.interleave);
  if (m.swizzle > 3) return fmt::format("the swizzle {}", m.swizzle);
  if (m.interleave > 0 && m.rank < 3)
    return fmt::format("an interleaved layout of rank {} (3 to 5)", m.rank);
  if (m.interleave == 2 && m.swizzle != 1)
    return "an interleaved layout of 32 bytes needs a swizzle of 32 bytes";
  const bool is_float = m.type >= TensorType::f16;
  if (m.fill_nan && !is_float) return "only floats can be filled with NaN";
  if (auto wrong = wrong_tensor(m)) return wrong;
  if (auto wrong = m.im2col ? wrong_pixels(m) : wrong_tile(m)) return wrong;
  if (auto wrong = wrong_steps(m)) return wrong;
  return wrong_row(m);
}

std::array<std::byte, kTensorMapBytes> encode(const TensorMap& m) {
  Stored s;
  s.address = m.address, s.type = uint8_t(m.type), s.rank = uint8_t(m.rank);
  s.interleave = m.interleave, s.swizzle = m.swizzle, s.fill = m.fill_nan, s.im2col = m.im2col;
  for (size_t i = 0; i < kMostSpatialRank; ++i)
    s.lower[i] = int16_t(m.lower[i]), s.upper[i] = int16_t(m.upper[i]);
  for (size_t i = 0; i < kMostTensorRank; ++i) {
    s.sizes[i] = uint32_t(m.sizes[i] - 1), s.box[i] = uint16_t(m.box[i]);
    s.steps[i] = uint8_t(m.steps[i]);
    if (i > 0) s.strides[i - 1] = m.strides[i];
  }
  s.check = check_of(s);
  std::array<std::byte, kTensorMapBytes> out{};
  std::memcpy(out.data(), &s, sizeof s);
  return out;
}

std::optional<TensorMap> decode_tensor_map(std::span<const std::byte, kTensorMapBytes> bytes) {
  Stored s;
  std::memcpy(&s, bytes.data(), sizeof s);
  if (s.magic != kMagic || s.check != check_of(s)) return std::nullopt;
  TensorMap m;
  m.address = s.address, m.type = TensorType(s.type), m.rank = s.rank;
  m.interleave = s.interleave, m.swizzle = s.swizzle, m.fill_nan = s.fill, m.im2col = s.im2col;
  for (size_t i = 0; i < kMostSpatialRank; ++i) m.lower[i] = s.lower[i], m.upper[i] = s.upper[i];
  for (size_t i = 0; i < kMostTensorRank; ++i) {
    m.sizes[i] = uint64_t{s.sizes[i]} + 1, m.box[i] = s.box[i], m.steps[i] = s.steps[i];
    if (i > 0) m.strides[i] = s.strides[i - 1];
  }
  return wrong_field(m) ? std::nullopt : std::optional(m);
}

std::optional<AtomicType> atomic_type_of(TensorType type) {
  switch (type) {
    case TensorType::u32:
      return AtomicType::u32;
    case TensorType::s32:
      return AtomicType::s32;
    case TensorType::u64:
      return AtomicType::u64;
    case TensorType::s64:
      return AtomicType::s64;
    case TensorType::f16:
      return AtomicType::f16;
    case TensorType::bf16:
      return AtomicType::bf16;
    case TensorType::f32:
      return AtomicType::f32_flushed;
    case TensorType::f64:
      return AtomicType::f64;
    default:
      return std::nullopt;
  }
}

PixelRange pixels_along(const TensorMap& m, size_t i) {
  return {.first = m.lower[i - 1], .last = int64_t(m.sizes[i]) - 1 + m.upper[i - 1]};
}

namespace {

// Moves to the next pixel of an image's bounding box, or to the next image.
void advance_pixel(const TensorMap& m, Position& p) {
  for (size_t i = 1; i + 1 < m.rank; ++i) {
    const PixelRange range = pixels_along(m, i);
    if ((p[i] += m.steps[i]) <= range.last) return;
    p[i] = range.first;
  }
  ++p[m.rank - 1];
}

std::vector<TensorRow> pixel_rows(const TensorMap& m, const TensorPlace& place,
                                  const TensorOffsets& offsets) {
  std::vector<TensorRow> out;
  out.reserve(m.rows());
  Position p{};
  for (size_t i = 0; i < m.rank; ++i) p[i] = place[i];
  for (uint64_t k = 0; k < m.rows(); ++k, advance_pixel(m, p)) {
    Position read = p;
    for (size_t i = 1; i + 1 < m.rank; ++i) read[i] += offsets[i - 1];
    out.push_back(row_at(m, read, k * m.pitch()));
  }
  return out;
}

std::vector<TensorRow> tile_rows(const TensorMap& m, const TensorPlace& place) {
  std::vector<TensorRow> out;
  out.reserve(m.rows());
  std::array<uint32_t, kMostTensorRank> index{};
  for (uint64_t n = m.rows(), k = 0; k < n; ++k) {
    Position p{place[0]};
    for (size_t i = 1; i < m.rank; ++i) p[i] = int64_t{place[i]} + int64_t{index[i]} * m.steps[i];
    out.push_back(row_at(m, p, k * m.pitch()));
    for (size_t i = 1; i < m.rank; ++i) {
      if (++index[i] < (m.box[i] + m.steps[i] - 1) / m.steps[i]) break;
      index[i] = 0;
    }
  }
  return out;
}

}  // namespace

std::vector<TensorRow> rows_of(const TensorMap& m, const TensorPlace& place, bool to_tensor,
                               const TensorOffsets& offsets) {
  std::vector<TensorRow> out = m.im2col ? pixel_rows(m, place, offsets) : tile_rows(m, place);
  if (to_tensor)
    for (TensorRow& row : out) row.to = (row.to + 15) / 16 * 16;
  return out;
}

}  // namespace cutegen::ptx
