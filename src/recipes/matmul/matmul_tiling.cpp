// SPDX-License-Identifier: Apache-2.0
#include "recipes/matmul/matmul_tiling.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "recipes/matmul/matmul_maps.h"

namespace cutegen::recipes {
namespace {

// If warpgroups take turns, no other work hides the end of the last tile. The time of this end, in
// steps along k.
constexpr double kLastEpilogue = 160;
constexpr double kWgmmaRate = 3e12;  // multiplications of an SM in a second
constexpr int64_t kMostFewRows = 256;
constexpr int64_t kMostOfGroups = 64;             // rows, if two products share a tile
constexpr int64_t kMostParts = int64_t{1} << 28;  // elements of all parts of a split product

// Estimates the cost of a split, in multiplications of the busiest SM. The kernels write and read 8
// bytes for each element of each part. The launch of a second kernel counts only for wgmma, because
// wgmma's times are short.
double cost_of_parts(const Contraction& c, const Tiling& t) {
  if (t.split == 1) return 0;
  const bool wgmma = t.engine == MatmulEngine::wgmma;
  const double parts = double(c.size(c.m) * c.size(c.n) * c.batches() * t.split);
  return parts * 8 * (wgmma ? 60 : 7) / kSms + (wgmma ? 6e6 : 0);
}

// Estimates the time of the product, in multiplications of the busiest SM.
double cost(const Contraction& c, const Tiling& t) {
  const int64_t ctas = tiles(c, t.tile_m, t.tile_n) * t.split;
  const int64_t rounds = ceil_div(ctas, kSms * t.resident) * t.resident;
  const double depth = double(ceil_div(c.size(c.k), t.split)) + t.start;
  const double steps = double(rounds) * depth + (t.ping_pong ? kLastEpilogue : 0);
  return double(t.tile_m * t.tile_n) * steps / t.speed + cost_of_parts(c, t);
}

// Estimates the time of one product with at most kMostFewRows rows, which reads its second factor
// from DRAM, in multiplications of the busiest SM. The numbers fit 22 programs on an H200
// (docs/measurements/wgmma_halves.md has most of them).
double cost_of_few_rows(const Contraction& c, const Tiling& t) {
  constexpr double kStart = 3.5e-6, kDram = 3.4e12, kL2 = 2.5e13, kOfSm = 8e10;
  constexpr double kOfStage = 1.1e-10;  // a deeper stage arrives later, per byte
  constexpr double kLastRound = 6e-6;   // if few CTAs have tiles in the last round
  const double depth = double(c.size(c.k) * c.batches()), rows = double(c.size(c.m));
  const double columns = 2 * double(c.size(c.n)) * depth;
  const double again =
      columns / double(t.tile_n) * rows + columns * double(ceil_div(c.size(c.m), t.tile_m) - 1);
  const double ctas = double(tiles(c, t.tile_m, t.tile_n) * t.split);
  const double late = std::max(0.0, double(ceil_div(int64_t(ctas), kSms) * kSms) / ctas - 1.1);
  const double spread = columns / kDram + again / kL2 +
                        kOfStage * double(t.tile_m + t.tile_n) * 128 +
                        (ctas > kSms ? kLastRound * late : 0);
  const double of_sm = (columns + again) / (std::min(ctas, double(kSms)) * kOfSm);
  const double seconds = kStart + std::max(spread, of_sm);
  return std::max(seconds * kWgmmaRate + cost_of_parts(c, t), cost(c, t));
}

std::vector<Tiling> float_tilings(const Contraction& c) {
  // If the loads transpose both operands, 256 threads are faster than 128 threads with twice the
  // results each; otherwise they are slower.
  const bool transposes = c.a.depth.move == Move::next && c.b.depth.move == Move::next;
  std::vector<Tiling> all{
      {.tile_m = 64, .tile_n = 64, .threads = 256, .resident = 2, .speed = 0.7, .start = 64},
      {.tile_m = 64, .tile_n = 64, .threads = 128, .resident = 4, .speed = 0.85, .start = 64}};
  all.push_back(transposes ? Tiling{.tile_m = 128,
                                    .tile_n = 128,
                                    .threads = 256,
                                    .resident = 2,
                                    .speed = 1.02,
                                    .start = 64}
                           : Tiling{.tile_m = 128,
                                    .tile_n = 128,
                                    .threads = 128,
                                    .resident = 2,
                                    .speed = 0.97,
                                    .start = 64});
  // If the result is a triangle, larger tiles compute more zeros.
  if (!c.zero_outside)
    all.push_back({.tile_m = 256, .tile_n = 128, .threads = 256, .speed = 1, .start = 128});
  if (c.groups() > 1) all.clear();  // the CUDA cores compute one product in a tile
  if (!wgmma_applies(c)) return all;
  const bool scalar = c.a.depth.move != Move::next && c.b.depth.move != Move::next;
  // One product instead of three: the loads then limit the speed. Measured at 4096^3 on an H200.
  const double faster = products_of(c) == 1 ? 1.2 : 1;
  const auto add = [&](Tiling t) {
    t.speed *= faster;
    t.engine = MatmulEngine::wgmma_fp32;
    all.push_back(t);
  };
  add({.tile_m = 128, .tile_n = 128, .threads = 512, .speed = scalar ? 2.1 : 2.5, .start = 100});
  if (turned(c))
    add({.tile_m = 64, .tile_n = 128, .threads = 512, .speed = 1.9, .start = 100});
  else
    add({.tile_m = 128, .tile_n = 64, .threads = 512, .speed = 1.85, .start = 100});
  add({.tile_m = 64, .tile_n = 64, .threads = 384, .speed = 1.25, .start = 60});
  // Three products share 96 columns. The speed is a guess between the measured ones.
  if (c.groups() == 3)
    add({.tile_m = 128, .tile_n = 96, .threads = 512, .speed = 2.1, .start = 100});
  return all;
}

std::vector<Tiling> wgmma_tilings(const Contraction& c) {
  std::vector<Tiling> all{
      {.tile_m = 128, .tile_n = 256, .threads = 384, .speed = 1, .stages = 4},
      {.tile_m = 256, .tile_n = 128, .threads = 384, .speed = 1.03, .stages = 4},
      {.tile_m = 192, .tile_n = 192, .threads = 512, .speed = 1.03, .stages = 4},
      {.tile_m = 128, .tile_n = 192, .threads = 384, .speed = 0.97, .stages = 5},
      {.tile_m = 128, .tile_n = 128, .threads = 384, .speed = 0.8, .stages = 6},
      {.tile_m = 128, .tile_n = 64, .threads = 384, .speed = 0.55, .stages = 8},
      {.tile_m = 64, .tile_n = 128, .threads = 256, .speed = 0.55, .stages = 8},
      {.tile_m = 64, .tile_n = 64, .threads = 256, .speed = 0.42, .stages = 12}};
  for (Tiling& t : all) {
    t.start = 200;
    t.engine = MatmulEngine::wgmma;
  }
  // Products that share a tile. With 4 rows on an H200, this tiling took 71 us, tiles of 128 x 128
  // took 74 us, and tiles of 128 x 256 without ping-pong took 83 us.
  if (c.groups() == 2 && c.size(c.m) <= kMostOfGroups)
    return {{.tile_m = 64,
             .tile_n = 256,
             .threads = 256,
             .speed = 1,
             .start = 40,
             .engine = MatmulEngine::wgmma,
             .stages = 4,
             .ping_pong = true}};
  // While one warpgroup writes its tile, the other multiplies.
  if (!c.zero_outside)
    all.push_back({.tile_m = 128,
                   .tile_n = 128,
                   .threads = 256,
                   .speed = 0.98,
                   .start = 40,
                   .engine = MatmulEngine::wgmma,
                   .stages = 6,
                   .ping_pong = true});
  return all;
}

}  // namespace

int64_t tiles(const Contraction& c, int64_t tile_m, int64_t tile_n) {
  int64_t across = 0;
  for (const Contraction* part : parts_of(c))
    across += ceil_div(part->size(part->n), tile_n / c.groups());
  return ceil_div(c.size(c.m), tile_m) * across * c.batches();
}

bool holds_groups(const Contraction& c, int64_t tile_n) {
  const int64_t width = tile_n / c.groups();
  if (tile_n % c.groups() != 0) return false;
  if (bytes_of_element(c) == 4)
    return c.groups() == 1 || (width % 32 == 0 && (tile_n != 96 || along_depth(c.b)));
  return width % (along_depth(c.b) ? 32 : 64) == 0;
}

bool may_split(const Contraction& c, int64_t split) {
  return split == 1 || (!c.joined() && c.size(c.k) / split >= 256 &&
                        c.size(c.m) * c.size(c.n) * c.batches() * split <= kMostParts);
}

bool wgmma_applies(const Contraction& c) {
  return c.hopper;
}

Tiling best_tiling(const Contraction& c) {
  const bool wgmma = wgmma_applies(c) && multiplies_elements(c);
  std::vector<Tiling> all = wgmma ? wgmma_tilings(c) : float_tilings(c);
  const bool few = wgmma && c.size(c.m) <= kMostFewRows && c.groups() == 1;
  std::erase_if(all, [&](const Tiling& t) { return !holds_groups(c, t.tile_n); });
  const auto cost_of = [&](const Tiling& t) { return few ? cost_of_few_rows(c, t) : cost(c, t); };
  Tiling best = all[0];
  for (Tiling t : all)
    for (t.split = 1; t.split <= (t.ping_pong ? 1 : 128) && may_split(c, t.split); t.split *= 2)
      if (cost_of(t) < cost_of(best)) best = t;
  return best;
}

double seconds_of(const Contraction& c) {
  const bool wgmma = wgmma_applies(c) && multiplies_elements(c);
  const double rate = !wgmma ? 4e11 : bytes_of_element(c) == 2 ? kWgmmaRate : kWgmmaRate / 2;
  return cost(c, best_tiling(c)) / rate;
}

}  // namespace cutegen::recipes
