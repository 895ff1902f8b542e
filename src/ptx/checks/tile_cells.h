// SPDX-License-Identifier: Apache-2.0
// TileCells: remembers the different cells of the operands of wgmma. A cell records the last write
// to one granule of shared memory (shared_races.h).
//
// Contract: the four warps of a warpgroup read the same operand B, one after another. The first
// warp collects the cells of the operand's chunks, and the other three warps only check the
// collected cells. An entry is valid while its version equals the version of shared memory's cells.
//
// Example: TileCells::Entry& e = tiles.find(tile); if (!e.valid(tile, version)) collect(e);
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "ptx/ops/wgmma_descriptor.h"

namespace cutegen::ptx {

class TileCells {
 public:
  struct Entry {
    SharedTile of;
    uint64_t version = 0;
    // The warpgroup and the label of the last read that SharedRaces has recorded for the tile's
    // chunks.
    int group = -1;
    uint32_t label = 0;
    size_t count = 0;
    std::array<uint64_t, 16> cells;

    bool valid(const SharedTile& tile, uint64_t now) const { return version == now && of == tile; }
    void start(const SharedTile& tile) { of = tile, version = 0, count = 0, group = -1; }
    // Returns false if there are too many different cells.
    bool add(uint64_t cell) {
      for (size_t i = 0; i < count; ++i)
        if (cells[i] == cell) return true;
      if (count == cells.size()) return false;
      cells[count++] = cell;
      return true;
    }
  };
  Entry& find(const SharedTile& tile) {
    if (entries_.empty()) entries_.resize(kEntries);
    const uint32_t start = tile.d.start >> 4;
    return entries_[(start ^ start >> 6 ^ uint32_t(tile.first)) % kEntries];
  }

 private:
  static constexpr size_t kEntries = 64;
  std::vector<Entry> entries_;
};

}  // namespace cutegen::ptx
