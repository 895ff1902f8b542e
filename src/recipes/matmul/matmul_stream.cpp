// SPDX-License-Identifier: Apache-2.0
#include "recipes/matmul/matmul_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "recipes/matmul/matmul_maps.h"
#include "recipes/matmul/matmul_tiling.h"
#include "recipes/text/kernel_text.h"

namespace cutegen::recipes {
namespace {

constexpr int64_t kThreads = 256;
constexpr int64_t kMostOfTiles = int64_t{64} * 1024;  // bytes of A in shared memory
constexpr int64_t kMostRows = kMostPackedRows;

// The numbers of CTAs that may share the depth of a tile. Up to 8 are a cluster on Hopper, which
// adds their parts.
std::vector<int64_t> splits_of(const Contraction& c) {
  std::vector<int64_t> splits;
  for (int64_t split : {1, 2, 4, 8, 16})
    if (may_split(c, split)) splits.push_back(split);
  return splits;
}

// The warps of a CTA that share the depth.
int64_t deep_of(int64_t tile_n) {
  return kThreads / 32 / std::max<int64_t>(1, tile_n / 32);
}

std::vector<const WeightGrid*> grids_of(const Contraction& c) {
  std::vector<const WeightGrid*> grids;
  if (!c.b.packed) return grids;
  for (const auto* grid : {&c.b.packed->scales, &c.b.packed->zeros})
    if (*grid) grids.push_back(&**grid);
  return grids;
}

std::string grid_text(const Contraction& c, const std::optional<WeightGrid>& grid) {
  if (!grid) return "cutegen::NoGrid{}";
  return fmt::format("cutegen::grid<{}, {}>({}, {})", grid->rows, grid->depth,
                     c.finish.names.at(grid->tensor),
                     grid->depth == 0 ? "1" : fmt::format("k_size / {}", grid->depth));
}

bool has_own_zero(const PackedWeights& packed) {
  const bool small = packed.zero >= 0 && packed.zero < 16 && packed.zero == int(packed.zero);
  return packed.nibbles && small && !packed.zeros;
}

std::string zeros_text(const Contraction& c) {
  const PackedWeights& packed = *c.b.packed;
  if (packed.zeros) return grid_text(c, packed.zeros);
  if (packed.zero == 0 || has_own_zero(packed)) return "cutegen::NoGrid{}";
  return fmt::format("cutegen::one_value({}f)", fmt::format("{:#}", float(packed.zero)));
}

std::string weight_type(const Contraction& c) {
  if (!c.b.packed || !c.b.packed->nibbles) return type_of(c.b.operand);
  const PackedWeights& packed = *c.b.packed;
  return fmt::format("cutegen::Nibbles<{}, {}>", has_own_zero(packed) ? int(packed.zero) : 0,
                     packed.high_first);
}

}  // namespace

int64_t stream_segment(const Contraction& c) {
  if (c.b.packed && c.b.packed->nibbles) return 32;
  return 16 / int64_t(size_of(c.b.operand.dtype));
}

bool streams(const Contraction& c) {
  if (bytes_of_element(c) != 2 || c.joined() || c.zero_outside || c.batch_axes.size() > 1 ||
      c.n < 0 || c.size(c.m) > kMostRows || !along_depth(c.b))
    return false;
  if (!c.b.packed) return size_of(c.b.operand.dtype) == 2;
  // All weights of a segment must share one scale and one zero.
  for (const WeightGrid* grid : grids_of(c))
    if (grid->depth % stream_segment(c) != 0) return false;
  return true;
}

std::vector<RecipeParameter> stream_parameters(const Contraction& c) {
  std::vector<int64_t> splits = splits_of(c);
  const int64_t wanted = stream_safe(c).at("split").get<int64_t>();
  std::stable_sort(splits.begin(), splits.end(), [&](int64_t a, int64_t b) {
    auto far = [&](int64_t s) { return std::max(s, wanted) / std::min(s, wanted); };
    return far(a) < far(b);
  });
  return {{.name = "tile_n",
           .meaning = "columns of the result that a CTA computes",
           .legal = {64, 32, 128, 16}},
          {.name = "split", .meaning = "CTAs that share the depth of one tile", .legal = splits},
          {.name = "tile_m",
           .meaning = "rows of the result that a CTA computes",
           .legal = {16, 8, 32, 64}},
          {.name = "vector", .meaning = "neighbouring elements in one access", .legal = {8, 1}}};
}

Json with_stream_shape(const Contraction& c, Json params) {
  const int64_t round = 4 * stream_segment(c) * deep_of(int_param(params, "tile_n"));
  // If two such tiles fit, a tile has two rounds of all warps, so that the weights of two rounds
  // are in flight.
  const bool two = 2 * 2 * round * 2 * int_param(params, "tile_m") <= kMostOfTiles;
  params["tile_k"] = (two ? 2 : 1) * round;
  params["threads"] = kThreads;
  params["stages"] = 1;
  return params;
}

int64_t stream_shared(const Contraction& c, const Json& given) {
  const Json params = with_stream_shape(c, given);
  const int64_t m = int_param(params, "tile_m"), n = int_param(params, "tile_n");
  const int64_t elements = m * int_param(params, "tile_k");  // of a tile of the first factor
  const int64_t bytes =
      std::max(int64_t{elements <= 8192 ? 8 : 4} * elements, 4 * deep_of(n) * m * (n + 4));
  return ceil_div(bytes, 128) * 128;
}

bool stream_legal(const Contraction& c, const Json& params) {
  const int64_t m = int_param(params, "tile_m"), n = int_param(params, "tile_n");
  const bool fits = (m == 8 || m == 16 || m == 32 || m == 64) && n % 16 == 0 && n >= 16 &&
                    n <= 128 && (n == 16 || n % 32 == 0) &&
                    kThreads / 32 % std::max<int64_t>(1, n / 32) == 0;
  return streams(c) && fits && stream_shared(c, params) <= int64_t{99} * 1024;
}

// The rates fit times on an H200: 8 and 16 rows, 4096 to 14336 columns, 16-bit and 8-bit weights.
// The times of clusters fit 8 rows, 6144 columns and a depth of 4096, with 2 to 8 CTAs.
double stream_seconds(const Contraction& c, const Json& params) {
  constexpr double kDram = 3.1e12, kRows = 2.4e12, kL2 = 5.5e12, kCombine = 2e-6, kCluster = 0.5e-6,
                   kWave = 2e-6;
  const int64_t m = int_param(params, "tile_m"), n = int_param(params, "tile_n"),
                split = int_param(params, "split");
  const double depth = double(c.size(c.k)), columns = double(c.size(c.n)),
               batches = double(c.batches());
  const double weights = batches * columns * depth * 16 / double(stream_segment(c));
  const int64_t tiles_m = ceil_div(c.size(c.m), m), tiles_n = ceil_div(c.size(c.n), n);
  // All CTAs together copy these bytes of the first factor to shared memory.
  const double rows = batches * double(tiles_n * c.size(c.m)) * depth * 2;
  const double ctas = double(tiles_m * tiles_n * split) * batches;
  const double waves = double(ceil_div(int64_t(ctas), 2 * kSms));
  const double rounds = std::max(1.0, waves * 2 * kSms / ctas);
  // With fewer than 1.5 CTAs per SM, reads do not reach the full rate.
  const double idle = 1 + 0.6 * std::max(0.0, 1.5 * kSms / ctas - 1);
  // The last CTA of a tile may have less of the depth than the others.
  const int64_t tiles_k = ceil_div(c.size(c.k), int_param(params, "tile_k"));
  const double uneven = double(ceil_div(tiles_k, split) * split) / double(tiles_k);
  double seconds =
      uneven * (std::hypot(weights / kDram, rows / kRows) + double(tiles_m - 1) * weights / kL2) *
      std::max(1 + 0.25 * (std::min(rounds, 2.0) - 1), idle);
  if (sums_in_cluster(c, params))
    seconds += kCluster * double(split) + kWave * (waves - 1);
  else if (split > 1)
    seconds += kCombine + 8 * double(split) * double(c.size(c.m)) * columns * batches / kDram;
  return seconds;
}

Json stream_safe(const Contraction& c) {
  const int64_t rows = c.size(c.m);
  const int64_t tile_m = rows <= 8 ? 8 : rows <= 16 ? 16 : rows <= 32 ? 32 : 64;
  Json best;
  for (int64_t tile_n : {64, 32, 128, 16})
    for (int64_t split : splits_of(c)) {
      Json params{{"vector", 8},    {"tile_m", tile_m}, {"tile_n", tile_n}, {"tile_k", 0},
                  {"threads", 256}, {"stages", 1},      {"split", split},   {"stream", 1}};
      params = with_stream_shape(c, std::move(params));
      if (!stream_legal(c, params)) continue;
      if (best.is_null() || stream_seconds(c, params) < stream_seconds(c, best))
        best = std::move(params);
    }
  CG_ASSERT(!best.is_null());
  return best;
}

std::string stream_type(const Contraction& c, const Json& params, const Label& label) {
  return fmt::format(
      "cutegen::StreamGemm<{}, {}, {},\n"
      "                                 kTileM, kTileN, kTileK, kThreads, {}, {}>",
      element_type(c, params), type_of(c.a.operand), weight_type(c), label("VECTOR_A"),
      label("VECTOR_B"));
}

void stream_text(const Contraction& c, std::map<std::string, std::string>& t) {
  t["engine"] = "stream";
  t["resident"] = "constexpr int kResident = kTileM > 16 ? 1 : 2;  // CTAs that an SM should hold";
  t["align"] = "__align__(128) ";
  t["run"] = fmt::format(
      "  gemm.run(rows, columns, tile, first, last, storage, {},\n"
      "           {});",
      c.b.packed ? grid_text(c, c.b.packed->scales) : "cutegen::NoGrid{}",
      c.b.packed ? zeros_text(c) : "cutegen::NoGrid{}");
}

std::vector<Operand> stream_operands(const Contraction& c) {
  std::vector<Operand> operands;
  for (const WeightGrid* grid : grids_of(c))
    operands.push_back({.tensor = grid->tensor, .dtype = grid->dtype, .axes = {}});
  return operands;
}

std::vector<std::string> stream_requirements(const Contraction& c) {
  const auto blocks = [&](int axis, int64_t block) {
    return block == 0   ? std::string("1")
           : block == 1 ? "(" + c.extent(axis) + ")"
                        : fmt::format("(({}) / {})", c.extent(axis), block);
  };
  std::vector<std::string> list;
  for (const WeightGrid* grid : grids_of(c)) {
    list.push_back(fmt::format("size({}) == {}*{}", c.finish.names.at(grid->tensor),
                               blocks(c.n, grid->rows), blocks(c.k, grid->depth)));
    if (grid->depth > 1) list.push_back(fmt::format("({}) % {} == 0", c.extent(c.k), grid->depth));
  }
  return list;
}

}  // namespace cutegen::recipes
