// SPDX-License-Identifier: Apache-2.0
// Chooses how a kernel computes a product: the engine (the instructions that multiply), the size of
// a tile, and the number of CTAs that share the depth of a tile.
//
// Contract: best_tiling() chooses the tiling with the shortest time in a cost model of an H200,
// which uses measured speeds (docs/measurements/simt_products.md, wgmma_products.md). A search
// starts with this tiling and tries neighbouring parameters.
//
// Example: const Tiling best = best_tiling(c); params["tile_m"] = best.tile_m;
#pragma once

#include "recipes/matmul/matmul_kernel.h"
#include "recipes/nest/contraction.h"
#include "recipes/text/parameter.h"

namespace cutegen::recipes {

// A tiling of a product. `resident` is the number of CTAs on an SM. `speed` is the inner loop's
// speed on an H200, divided by the speed of a reference tile in the same math mode. `start` is the
// time of a CTA's prologue and epilogue, in steps along k. This time is longer if the SM has no
// second CTA that hides the prologue and epilogue. For CUDA cores, `start` is a guess. With
// `ping_pong`, two warpgroups compute tiles of this size alternately.
struct Tiling {
  int64_t tile_m, tile_n, threads, resident = 1;
  double speed, start;
  MatmulEngine engine = MatmulEngine::simt;
  int64_t stages = 3, split = 1;
  bool ping_pong = false;
};

int64_t tiles(const Contraction& c, int64_t tile_m, int64_t tile_n);
// Returns whether one wgmma tile can hold the columns of all products that `finish` (the work after
// the products) reads at the same position.
bool holds_groups(const Contraction& c, int64_t tile_n);
bool may_split(const Contraction& c, int64_t split);
// Returns whether wgmma can compute the product.
bool wgmma_applies(const Contraction& c);
Tiling best_tiling(const Contraction& c);
// Returns the cost model's time in seconds for the best tiling, without the launch.
double seconds_of(const Contraction& c);

}  // namespace cutegen::recipes
