// SPDX-License-Identifier: Apache-2.0
// The choice of a product's tile: which engine, how large a tile, and how many CTAs share its
// depth.
//
// Contract: best_tiling() minimises a model of the time on an H200. The model uses measured speeds
// (docs/measurements/simt_products.md, wgmma_products.md). The search then tries neighbouring
// parameters.
//
// Example: const Tiling best = best_tiling(c); params["tile_m"] = best.tile_m;
#pragma once

#include "recipes/matmul/matmul_kernel.h"
#include "recipes/nest/contraction.h"
#include "recipes/text/parameter.h"

namespace cutegen::recipes {

// Tiles of a product. resident: CTAs that an SM holds. speed: the speed of the inner loop on an
// H200, relative to one particular tile of the same math mode. start: the time of a CTA's prologue
// and epilogue, in steps along k. It is longer if no other CTA on the SM hides it. For CUDA cores,
// `start` is a guess. ping_pong: two warpgroups take tiles of this size in turn.
struct Tiling {
  int64_t tile_m, tile_n, threads, resident = 1;
  double speed, start;
  MatmulEngine engine = MatmulEngine::simt;
  int64_t stages = 3, split = 1;
  bool ping_pong = false;
};

int64_t tiles(const Contraction& c, int64_t tile_m, int64_t tile_n);
// Whether one wgmma tile can hold the columns of all products that `finish` reads at the same
// place.
bool holds_groups(const Contraction& c, int64_t tile_n);
bool may_split(const Contraction& c, int64_t split);
// Whether wgmma can compute this product.
bool wgmma_applies(const Contraction& c);
Tiling best_tiling(const Contraction& c);
// The model's time of the best tiling, without the launch.
double seconds_of(const Contraction& c);

}  // namespace cutegen::recipes
