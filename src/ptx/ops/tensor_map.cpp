// SPDX-License-Identifier: Apache-2.0
#include "ptx/ops/tensor_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace cutegen::ptx {
namespace {

constexpr uint64_t kMagic = 0x70616d2d6e657463;
constexpr uint64_t kMostSize = uint64_t{1} << 32, kMostStride = uint64_t{1} << 40;
constexpr uint32_t kMostBox = 256, kMostStep = 8;

// The bytes that encode() returns.
struct Stored {
  uint64_t magic = kMagic, address = 0;
  uint64_t strides[kMostTensorRank - 1] = {};
  uint32_t sizes[kMostTensorRank] = {};  // minus 1
  uint16_t box[kMostTensorRank] = {};
  uint8_t steps[kMostTensorRank] = {};
  uint8_t type = 0, rank = 0, interleave = 0, swizzle = 0, fill = 0;
  uint8_t unused[8] = {};
  uint64_t check = 0;
};
static_assert(offsetof(Stored, check) == 96 && sizeof(Stored) <= kTensorMapBytes);

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

std::optional<std::string> wrong_box(const TensorMap& m) {
  for (size_t i = 0; i < m.rank; ++i) {
    if (m.box[i] < 1 || m.box[i] > kMostBox)
      return fmt::format("box[{}] is {} (1 to {})", i, m.box[i], kMostBox);
    if (m.steps[i] < 1 || m.steps[i] > kMostStep)
      return fmt::format("element_strides[{}] is {} (1 to {})", i, m.steps[i], kMostStep);
  }
  const uint32_t row = m.row_bytes(), width = 16u << m.swizzle;
  if (m.interleave == 0 && row % 16 != 0)
    return fmt::format("box[0] has {} bytes: it must be a multiple of 16", row);
  if (m.interleave == 0 && m.swizzle > 0 && row > width)
    return fmt::format("box[0] has {} bytes, more than the {} of the swizzle", row, width);
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
  return wrong_box(m);
}

std::array<std::byte, kTensorMapBytes> encode(const TensorMap& m) {
  Stored s;
  s.address = m.address, s.type = uint8_t(m.type), s.rank = uint8_t(m.rank);
  s.interleave = m.interleave, s.swizzle = m.swizzle, s.fill = m.fill_nan;
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
  m.interleave = s.interleave, m.swizzle = s.swizzle, m.fill_nan = s.fill;
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

std::vector<TensorRow> rows_of(const TensorMap& m, const TensorPlace& place, bool to_tensor) {
  std::vector<TensorRow> out;
  out.reserve(m.rows());
  std::array<uint32_t, kMostTensorRank> index{};
  for (uint64_t n = m.rows(), k = 0; k < n; ++k) {
    Position p{place[0]};
    for (size_t i = 1; i < m.rank; ++i) p[i] = int64_t{place[i]} + int64_t{index[i]} * m.steps[i];
    out.push_back(row_at(m, p, k * m.pitch()));
    if (to_tensor) out.back().to = (out.back().to + 15) / 16 * 16;
    for (size_t i = 1; i < m.rank; ++i) {
      if (++index[i] < (m.box[i] + m.steps[i] - 1) / m.steps[i]) break;
      index[i] = 0;
    }
  }
  return out;
}

}  // namespace cutegen::ptx
