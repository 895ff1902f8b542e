// SPDX-License-Identifier: Apache-2.0
// SharedTile: decodes a matrix descriptor of wgmma into the addresses of an operand's 16-byte
// chunks.
//
// Contract: see "Asynchronous Warpgroup Level Matrix Shared Memory Layout" and "Matrix Descriptor
// Format" in the PTX ISA. A tile consists of `rows` rows of A or columns of B, each with 32 bytes
// along k. In K-major layout, chunk 2r + c has half c of row r. In MN-major layout (16-bit types),
// chunk 16g + k has element k of the rows 8g ... 8g+7. The swizzle permutes chunks by the low bits
// of address / 128 - base_offset.
//
// Example: if (auto rule = tile.fault()) report(*rule); tile.chunks(at);
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace cutegen::ptx {

struct MatrixDescriptor {
  uint32_t start = 0, leading = 0, stride = 0;  // bytes
  // Distance from the start of the swizzle pattern, in rows of 128 bytes.
  uint32_t base_offset = 0;
  uint32_t row_bytes = 16;  // width of the swizzle in bytes; 16: no swizzle
  uint64_t reserved = 0;    // descriptor bits that must be zero
  bool operator==(const MatrixDescriptor&) const = default;
};
MatrixDescriptor read_descriptor(uint64_t bits);

struct SharedTile {
  MatrixDescriptor d;
  bool mn_major = false;
  int first = 0, rows = 0;  // rows [first, first + rows) of the matrix; `first` is a multiple of 16

  // Names the first field that breaks a rule, and the rule. Returns nullopt if no field breaks a
  // rule.
  std::optional<std::string> fault() const;
  // Writes the addresses of the tile's 2 * rows chunks to `at`.
  void chunks(uint32_t* at) const;
  bool operator==(const SharedTile&) const = default;

 private:
  uint32_t chunk(uint32_t raw) const;
  std::optional<std::string> wrong_offset(const char* name, uint32_t bytes, bool used) const;
};

// Copies the tile's chunks from shared memory into `rows` slices of 32 bytes, each contiguous along
// k.
void pack_slices(const SharedTile& tile, const uint32_t* at, const std::byte* shared,
                 std::byte* slices);

}  // namespace cutegen::ptx
