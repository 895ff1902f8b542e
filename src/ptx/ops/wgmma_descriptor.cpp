// SPDX-License-Identifier: Apache-2.0
#include "ptx/ops/wgmma_descriptor.h"

#include <fmt/format.h>

#include <cstring>

namespace cutegen::ptx {
namespace {

constexpr uint32_t kGroup = 8;         // rows of a core matrix
constexpr uint32_t kChunk = 16;        // bytes
constexpr uint32_t kCoreMatrix = 128;  // bytes

constexpr uint64_t bits_from(int low, int count) {
  return ((uint64_t{1} << count) - 1) << low;
}
constexpr uint64_t kReserved =
    bits_from(14, 2) | bits_from(30, 2) | bits_from(46, 3) | bits_from(52, 10);

}  // namespace

MatrixDescriptor read_descriptor(uint64_t bits) {
  static constexpr uint32_t row_bytes[] = {16, 128, 64, 32};
  auto encoded = [bits](int low) { return uint32_t(bits >> low & 0x3fff) << 4; };
  MatrixDescriptor d;
  d.start = encoded(0), d.leading = encoded(16), d.stride = encoded(32);
  d.base_offset = uint32_t(bits >> 49 & 7);
  d.row_bytes = row_bytes[bits >> 62];
  d.reserved = bits & kReserved;
  return d;
}

// The address of a chunk, given its address `raw` before the swizzle.
uint32_t SharedTile::chunk(uint32_t raw) const {
  const uint32_t phases = d.row_bytes / kChunk - 1;
  return raw ^ (((raw >> 7) - d.base_offset) & phases) << 4;
}

std::optional<std::string> SharedTile::wrong_offset(const char* name, uint32_t bytes,
                                                    bool used) const {
  if (!used) return std::nullopt;
  const uint32_t pattern = kGroup * d.row_bytes;
  if (bytes >= pattern && bytes % (d.row_bytes == kChunk ? kChunk : pattern) == 0)
    return std::nullopt;
  if (d.row_bytes == kChunk) {
    return fmt::format("{} byte offset {}: core matrices have {} bytes and must not overlap", name,
                       bytes, kCoreMatrix);
  }
  return fmt::format(
      "{} byte offset {}: with a swizzle of {} bytes it must be a multiple of the pattern's {} "
      "bytes, and not 0",
      name, bytes, d.row_bytes, pattern);
}

std::optional<std::string> SharedTile::fault() const {
  if (d.reserved)
    return fmt::format("reserved bits {:#x}: they must be zero (bits 14-15, 30-31, 46-48, 52-61)",
                       d.reserved);
  // A pattern may begin at a multiple of its size, and the tile anywhere in it. Otherwise, the base
  // offset says where the pattern begins.
  const uint32_t row = d.row_bytes, phases = row / kChunk - 1;
  if (d.base_offset != 0 && ((d.start >> 7) & phases) != (d.base_offset & phases)) {
    return fmt::format(
        "start address {:#x} with base offset {}: the base offset must be 0 if the pattern of a "
        "{}-byte swizzle begins at a multiple of {} bytes, otherwise (start >> 7) & {}",
        d.start, d.base_offset, row, kGroup * row, phases);
  }
  const bool swizzled = row != kChunk;
  const bool several_groups = uint32_t(rows) > kGroup;
  if (!mn_major) {
    // An H200 accepts groups of eight rows at any distance in rows, for a swizzle of 128 bytes.
    const bool apart = row == kCoreMatrix && d.stride >= kGroup * row && d.stride % row == 0;
    if (auto bad = wrong_offset("stride", d.stride, several_groups && !apart)) return bad;
    // Without a swizzle, the two halves of a slice may lie anywhere, and even overlap.
    // cutegen/conv_wgmma.cuh relies on this, and an H100 multiplies its cells in tf32.
    if (swizzled || d.leading > 0) return std::nullopt;
    return wrong_offset("leading", d.leading, true);
  }
  const bool several_rows = uint32_t(rows) * 2 > row;
  if (swizzled) {
    if (auto bad = wrong_offset("stride", d.stride, true)) return bad;
    return wrong_offset("leading", d.leading, several_rows);
  }
  if (auto bad = wrong_offset("stride", d.stride, several_groups)) return bad;
  return wrong_offset("leading", d.leading, true);
}

void SharedTile::chunks(uint32_t* at) const {
  const uint32_t row = d.row_bytes;
  if (!mn_major) {
    const uint32_t across = row == kChunk ? d.leading : kChunk;
    for (uint32_t r = uint32_t(first); r < uint32_t(first + rows); ++r) {
      const uint32_t raw = d.start + r / kGroup * d.stride + r % kGroup * row;
      *at++ = chunk(raw), *at++ = chunk(raw + across);
    }
    return;
  }
  // Number of groups of eight rows that lie side by side in the swizzle pattern.
  const uint32_t side_by_side = row / kChunk;
  const bool swizzled = row != kChunk;
  const uint32_t to_groups = swizzled ? d.leading : d.stride,
                 to_ks = swizzled ? d.stride : d.leading;
  for (uint32_t g = uint32_t(first) / kGroup; g < uint32_t(first + rows) / kGroup; ++g) {
    const uint32_t raw = d.start + g / side_by_side * to_groups + g % side_by_side * kChunk;
    for (uint32_t k = 0; k < 16; ++k) *at++ = chunk(raw + k / kGroup * to_ks + k % kGroup * row);
  }
}

void pack_slices(const SharedTile& tile, const uint32_t* at, const std::byte* shared,
                 std::byte* slices) {
  if (!tile.mn_major) {
    for (size_t i = 0; i < 2 * size_t(tile.rows); ++i)
      std::memcpy(slices + kChunk * i, shared + at[i], kChunk);
    return;
  }
  for (int g = 0; g < tile.rows / 8; ++g) {
    uint16_t in[16][8], out[8][16];
    for (int k = 0; k < 16; ++k) std::memcpy(in[k], shared + at[16 * g + k], kChunk);
    for (int r = 0; r < 8; ++r)
      for (int k = 0; k < 16; ++k) out[r][k] = in[k][r];
    std::memcpy(slices + sizeof out * size_t(g), out, sizeof out);
  }
}

}  // namespace cutegen::ptx
