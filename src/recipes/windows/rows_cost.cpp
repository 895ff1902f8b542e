// SPDX-License-Identifier: Apache-2.0
#include "recipes/windows/rows_cost.h"

#include <algorithm>
#include <bit>
#include <set>
#include <vector>

#include "recipes/fuse/extents.h"
#include "recipes/graph/reshape.h"
#include "recipes/nest/channel_values.h"
#include "recipes/nest/windowed.h"
#include "recipes/windows/rows_layout.h"
#include "recipes/windows/rows_phases.h"
#include "recipes/windows/window_text.h"

namespace cutegen::recipes {
namespace {

// The instructions of the work after the convolution that a kernel executes for each result.
std::set<int> finish_insts(const Fused& fused) {
  const std::vector<int> once = channel_values(fused);
  std::set<int> found;
  std::vector<int> open;
  open.reserve(fused.outputs.size());
  for (const FusedOutput& output : fused.outputs) open.push_back(output.inst);
  while (!open.empty()) {
    const int inst = open.back();
    open.pop_back();
    if (std::find(once.begin(), once.end(), inst) != once.end() || !found.insert(inst).second)
      continue;
    const std::vector<int>& inputs = fused.insts[size_t(inst)].inputs;
    open.insert(open.end(), inputs.begin(), inputs.end());
  }
  return found;
}

// Cycles that the work after the convolution takes for a channel of a tile: `base` for the store,
// and `residual` for each tensor that has an element for each result.
double finish_cycles(const Fused& fused, double base, double residual) {
  double cycles = base;
  for (const int at : finish_insts(fused)) {
    const Inst& inst = fused.insts[size_t(at)];
    if (inst.kind == InstKind::leaf) {
      const std::vector<int>& axes = fused.inputs[size_t(inst.operand)].axes;
      if (at != fused.window->inst && !axes.empty() && axes.back() > 1) cycles += residual;
    } else {
      cycles += 10;
    }
  }
  return cycles;
}

constexpr double kClock = 1.9e9, kFixed = 6e-6;  // Hz; seconds of a launch
constexpr double kTileCycles = 3000;             // of a tile, besides its elements

// Whether an output has an element for each channel.
bool stores_channels(const Fused& fused) {
  return std::any_of(fused.outputs.begin(), fused.outputs.end(), [&](const FusedOutput& output) {
    return recipes::varies(fused, output.operand);
  });
}

// A factor for the work after the convolution. With blocks of 8 x 8, a warp stores runs of eight
// positions. If these are not whole sectors of 32 bytes, the kernel is slower: 2.4 times on an
// H200, for task 4 of KernelBench's level 2. If tiles join lines, a run may begin anywhere.
double store_factor(const Fused& fused, const RowsLayout& l) {
  // Without all phases of the last axis, a warp stores every second element or fewer.
  if (l.phases[2] > l.spread && stores_channels(fused)) return 6;
  if (l.joins_lines() && l.phases[2] == 1 && !fused.reduces()) return 2;
  if (!l.patched() || l.across != 8) return 1;
  return fused.axes.back().size % 8 != 0 ? 2.5 : multiplies_halves(fused) ? 1.1 : 1;
}

// The share of the window's filter taps that a tile has. In a transposed convolution, this is the
// average over the phases that have tiles.
double share_of_taps(const Fused& fused) {
  const int64_t phases = count_of(tile_phases(fused));
  if (count_of(rows_phases(fused)) == 1) return 1;
  int64_t taps = 0;
  for (int64_t f = 0; f < phases; ++f) taps += std::popcount(phase_taps(fused, f));
  return double(taps) / double(phases * product(rows_window(fused).kernel));
}

// The share of the tensor cores' rate that a kernel reaches, measured on an H200. Narrow tiles are
// bound by reads of shared memory.
double share_of_rate(const RowsLayout& l) {
  if (l.parts == 1) return l.tile_n >= 96 ? 0.8 : l.tile_n >= 64 ? 0.7 : 0.45;
  if (l.tile_n < 64) return l.tile_m == 128 ? 0.5 : 0.65;
  return l.tile_m == 128 && l.joined ? 0.7 : 0.8;
}

// Cycles that pass between the tiles of consumers that take turns, with pairs: the tensor cores
// wait for the last sums of a tile.
double cycles_of_turn(const RowsLayout& l) {
  return l.parts > 1 && l.tile_m == 128 ? 68 * double(l.tile_n) : 0;
}

int64_t rows_of(const Fused& fused) {
  int64_t rows = fused.axes[0].size;
  for (size_t i = 2; i < fused.axes.size(); ++i) rows *= fused.axes[i].size;
  return rows;
}

// The columns of a tile of the kernel of window_implicit.h.
int64_t columns_of_tile(const Fused& fused, int64_t out) {
  return rows_in_pairs(fused) ? std::min<int64_t>(128, ceil_div(out, 32) * 32)
                              : std::min<int64_t>(128, out);
}

}  // namespace

double rows_seconds(const Fused& fused, const Json& params) {
  const WindowLeaf& leaf = *fused.window;
  const RowsLayout l = rows_layout(fused, params, false);
  const int64_t tiles = l.tiles(fused) * ceil_div(fused.axes[1].size, l.channels()),
                rounds = ceil_div(tiles, kSms);
  // A tile has the filter taps of its phase, on average.
  const double share = share_of_taps(fused), steps = double(rows_steps(fused)) * share;
  const int64_t taps_of_patch = product(rows_window(fused).kernel) / planes_of_taps(fused);
  const double taps = l.patched() ? double(taps_of_patch) * share : 1.0;
  const double lines = l.patched() ? double(l.lines() * l.columns()) : double(l.tile_m);
  const double loaded =
      128 * steps * double(l.loads()) * (lines / taps + double(l.kept > 0 ? 0 : l.tile_n));
  const double rate = 2048 * share_of_rate(l);
  const double products = double(l.tile_m * l.tile_n * kRowsDepth * fused.window->wgmma) * steps;
  const double multiplied = products / rate / (l.joined ? 2 : 1) + cycles_of_turn(l);
  // A thread stores a pair of results of two phases at once.
  const double base = l.spread == 2 ? 30 : multiplies_halves(fused) ? 60 : 100;
  const double finished =
      kTileCycles + finish_cycles(fused, base, 80) * double(l.tile_n) * store_factor(fused, l);
  // Consumers that take turns overlap the work after the convolution with multiplications.
  const double cycles = l.tile_m == 128
                            ? std::max({loaded / 36, multiplied, (multiplied + finished) / 2})
                            : std::max(loaded / 36, multiplied + finished);
  const double copied =
      double(product(leaf.input.shape)) * double(size_of(leaf.input.dtype) + 2 * l.parts) / 3.7e12;
  return 2 * kFixed + (multiplies_halves(fused) ? 0 : kFixed) + copied +
         double(rounds) * cycles / kClock;
}

// Assumes tiles of about 256 positions.
double implicit_seconds(const Fused& fused) {
  const int64_t out = fused.axes[1].size, tile_n = columns_of_tile(fused, out),
                channels = rows_channels(fused),
                rounds = ceil_div(ceil_div(rows_of(fused), 256) * ceil_div(out, tile_n), kSms);
  const int64_t phases = count_of(rows_phases(fused));
  // Narrow tiles of three products are bound by reads of shared memory.
  const double share = !rows_in_pairs(fused) || tile_n > 64 ? 0.75 : tile_n > 32 ? 0.62 : 0.43;
  const double multiplied =
      double(256 * tile_n * channels * product(fused.window->window.kernel) * fused.window->wgmma) /
      double(phases) / (multiplies_halves(fused) ? 2048 : 1024) / share;
  const double copied =
      double(ceil_div(channels, 64)) * (multiplies_halves(fused) ? 15e3 : 30e3) / double(phases);
  const double finished =
      finish_cycles(fused, multiplies_halves(fused) ? 130 : 100, 230) * double(tile_n);
  const double cycles = std::max(copied, multiplied + finished);
  return 2 * kFixed + double(rounds) * cycles * 1.1 / kClock;
}

}  // namespace cutegen::recipes
