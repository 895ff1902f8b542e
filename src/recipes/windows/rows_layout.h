// SPDX-License-Identifier: Apache-2.0
// RowsLayout: the tiles and the shared memory of a convolution that is a product of positions and
// filters, in the types that cutegen/conv_rows.cuh and cutegen/conv_patches.cuh use.
//
// Contract: rows_layout() reads the parameters rows_n, rows_keep, rows_patch and rows_across.
// `wide` is the layout for 32-bit operands. If `across` is not 0, the kernel loads the input of
// each tile (the tile's patch) once for all filter taps. fits() returns whether the layout fits in
// shared memory and within TMA's limits.
//
// Example: if (rows_layout(fused, params, false).fits()) ...
#pragma once

#include "recipes/text/parameter.h"
#include "recipes/text/program_part.h"
#include "recipes/windows/rows_phases.h"

namespace cutegen::recipes {

// Input channels of a step of 16-bit operands, and of a step of floats.
constexpr int64_t kRowsDepth = 64, kWideRowsDepth = 32;

struct RowsLayout {
  int64_t rank = 2;
  Phases phases = {1, 1, 1};           // of a transposed convolution, on each axis
  int64_t spread = 1;                  // phases of the last axis that a tile has
  int64_t tile_m = 128, tile_n = 128;  // positions and columns of a tile
  int64_t parts = 1;                   // of an operand; 2: pairs of half-precision numbers
  bool joined = false;                 // both parts lie in the same line
  // Positions of a block along the last axis. 1: a tile joins lines; 0: no patches.
  int64_t across = 0;
  int64_t strip = 1;  // columns of the image that a tile has, if it joins lines
  // Distance from the first filter tap to the last, on the last two axes.
  int64_t reach[2] = {0, 0};
  int64_t kept = 0;                 // steps whose weights stay in shared memory
  int64_t stages = 0, patches = 0;  // buffers for steps and for patches
  int64_t values = 0;               // floats for each channel
  int64_t rows = 0;                 // reductions over the channels
  int64_t slice = 0;                // channels whose results are in shared memory at a time

  int64_t channels() const { return tile_n / spread; }               // output channels of a tile
  int64_t tile_phases() const { return count_of(phases) / spread; }  // with tiles of their own
  int64_t loads() const { return joined ? 1 : parts; }  // of a patch, and of a step of weights
  bool patched() const { return across > 0; }
  bool joins_lines() const { return across == 1; }
  int64_t height() const;  // of a tile, in positions
  int64_t width() const;
  int64_t lines() const;  // of a patch
  int64_t columns() const { return width() + reach[1]; }
  int64_t shared() const;  // bytes
  bool fits() const;
  // Returns the number of tiles of positions of a phase, as an expression of the launch plan. `out`
  // has the sizes of the phase's three axes, and `rows` is the number of positions.
  std::string tiles(const std::string& images, const std::vector<std::string>& out,
                    const std::string& rows) const;
  // Returns the number of tiles of positions, for all phases that have tiles, at the shape in the
  // task file.
  int64_t tiles(const Fused& fused) const;
};

int64_t rows_steps(const Fused& fused);
int64_t rows_channels(const Fused& fused);  // input channels
// The number of filter taps along the first of three axes. Each of these taps has its own patch.
int64_t planes_of_taps(const Fused& fused);
// Whether the operands have 16 bits in memory.
bool multiplies_halves(const Fused& fused);
RowsLayout rows_layout(const Fused& fused, const Json& params, bool wide);

}  // namespace cutegen::recipes
