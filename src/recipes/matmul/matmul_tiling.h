// SPDX-License-Identifier: Apache-2.0
// Chooses how a kernel computes a product: the engine (the instructions that multiply), the size of
// a tile, and the number of CTAs that share the depth of a tile.
//
// Contract: best_tiling() chooses the tiling with the shortest time in a cost model of an H200. The
// model uses measured speeds (docs/measurements/simt_products.md, wgmma_products.md). The search
// starts from this tiling and tries neighbouring parameters.
//
// Example: const Tiling best = best_tiling(c); params["tile_m"] = best.tile_m;
#pragma once

#include "recipes/matmul/matmul_kernel.h"
#include "recipes/nest/contraction.h"
#include "recipes/text/parameter.h"

namespace cutegen::recipes {

// A tiling of a product. `resident` is the number of CTAs on an SM. `speed` is the speed of the
// inner loop on an H200, relative to one reference tile of the same math mode. `start` is the time
// of a CTA's prologue and epilogue, in steps along k. It is longer if the SM has no other CTA to
// hide it. For CUDA cores, `start` is a guess. With `ping_pong`, two warpgroups compute tiles of
// this size alternately.
struct Tiling {
  int64_t tile_m, tile_n, threads, resident = 1;
  double speed, start;
  MatmulEngine engine = MatmulEngine::simt;
  int64_t stages = 3, split = 1;
  bool ping_pong = false;
};

int64_t tiles(const Contraction& c, int64_t tile_m, int64_t tile_n);
// Whether one wgmma tile can hold the columns of all products that `finish` reads at the same
// position.
bool holds_groups(const Contraction& c, int64_t tile_n);
bool may_split(const Contraction& c, int64_t split);
// Whether wgmma can compute this product.
bool wgmma_applies(const Contraction& c);
Tiling best_tiling(const Contraction& c);
// Returns the time of the best tiling in the cost model, without the launch.
double seconds_of(const Contraction& c);

}  // namespace cutegen::recipes
