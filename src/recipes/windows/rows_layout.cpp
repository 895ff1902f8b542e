// SPDX-License-Identifier: Apache-2.0
#include "recipes/windows/rows_layout.h"

#include <fmt/format.h>

#include <algorithm>

#include "recipes/fuse/extents.h"
#include "recipes/graph/reshape.h"
#include "recipes/nest/channel_values.h"
#include "recipes/windows/window_text.h"

namespace cutegen::recipes {
namespace {

constexpr int64_t kMostRowShared = int64_t{227} << 10;
constexpr int64_t kLine = 128;  // bytes of a position's chunk of channels
constexpr int64_t kMostRowStages = 8, kMostRowPatches = 3, kFewestRowStages = 3;
constexpr int64_t kMostBox = 256;      // TMA's limit for an axis of a box
constexpr int64_t kStagedPitch = 132;  // pitch of results in shared memory
constexpr int64_t kMostStrip = 72, kMostJoined = 4;

// Whether no result has contiguous channels.
bool contiguous_positions(const Fused& fused) {
  return std::all_of(fused.outputs.begin(), fused.outputs.end(), [&](const FusedOutput& output) {
    const std::vector<int>& axes = output.operand.axes;
    return axes.empty() || axes.back() != 1;
  });
}

int64_t whole_kib(int64_t bytes) {
  return ceil_div(bytes, 1024) * 1024;
}

// The columns of a strip: the whole width, or a part that is a multiple of 8.
int64_t strip_of(int64_t width) {
  const int64_t strips = ceil_div(width, kMostStrip);
  return strips == 1 ? width : ceil_div(ceil_div(width, strips), 8) * 8;
}

int64_t beside(const RowsLayout& l) {
  return l.rank == 1 ? 2 : l.tile_m == 256 && l.across == 8 ? 2 : 1;
}

}  // namespace

int64_t RowsLayout::lines() const {
  return reach[0] + (joins_lines() ? 1 + ceil_div(tile_m - 1 + reach[1], columns()) : height());
}

int64_t RowsLayout::height() const {
  return tile_m / 64 / beside(*this) * (64 / across);
}

int64_t RowsLayout::width() const {
  return joins_lines() ? strip : beside(*this) * across;
}

int64_t RowsLayout::shared() const {
  const int64_t pitch = values <= 2 ? values : ceil_div(values, 4) * 4;
  const int64_t staged = 8 * std::max<int64_t>(slice, 1) * kStagedPitch;  // of two consumers
  const int64_t reduced = 8 * std::max<int64_t>(rows * 128 * spread, 1);
  const int64_t channels = (pitch == 0 ? 8 : 8 * pitch * tile_n) + staged + reduced;
  const int64_t weights = (kept > 0 ? kept : stages) * loads() * tile_n * kLine;
  if (!patched())
    return whole_kib(stages * tile_m * kLine + weights + stages * 16 + 16) + whole_kib(channels);
  return whole_kib(patches * loads() * whole_kib(lines() * columns() * kLine) + weights + channels +
                   16 + (patches + stages) * 16 + 16);
}

bool RowsLayout::fits() const {
  if (shared() > kMostRowShared || stages < kFewestRowStages) return false;
  if (!patched()) return tile_m == 128;
  return patches >= 2 && lines() <= kMostBox && columns() <= kMostBox &&
         (rank > 1 || (across == 64 && tile_m == 128)) &&
         // A patch of many lines would hardly be smaller than the inputs of all filter taps.
         (!joins_lines() || lines() * columns() <= kMostJoined * tile_m);
}

std::string RowsLayout::tiles(const std::string& images, const std::vector<std::string>& out,
                              const std::string& rows) const {
  if (!patched()) return fmt::format("ceil_div({},{})", rows, tile_m);
  const std::string down = joins_lines()
                               ? fmt::format("ceil_div(({})*{},{})", out[1], columns(), tile_m)
                               : fmt::format("ceil_div({},{})", out[1], height());
  return fmt::format("({})*({})*{}*ceil_div({},{})", images, out[0], down, out[2], width());
}

int64_t RowsLayout::tiles(const Fused& fused) const {
  int64_t out[3] = {1, 1, 1};
  for (size_t i = 2; i < fused.axes.size(); ++i) {
    const size_t axis = 3 - fused.axes.size() + i;
    out[axis] = ceil_div(fused.axes[i].size, phases[axis]);
  }
  const int64_t images = fused.axes[0].size * tile_phases();
  if (!patched()) return ceil_div(images * out[0] * out[1] * out[2], tile_m);
  const int64_t down =
      joins_lines() ? ceil_div(out[1] * columns(), tile_m) : ceil_div(out[1], height());
  return images * out[0] * down * ceil_div(out[2], width());
}

int64_t rows_steps(const Fused& fused) {
  return product(rows_window(fused).kernel) * ceil_div(rows_channels(fused), kRowsDepth);
}

int64_t rows_channels(const Fused& fused) {
  return fused.window->input.shape[1];
}

int64_t planes_of_taps(const Fused& fused) {
  const Window w = rows_window(fused);
  return w.rank() == 3 ? w.kernel[0] : 1;
}

bool multiplies_halves(const Fused& fused) {
  return size_of(fused.window->input.dtype) == 2;
}

RowsLayout rows_layout(const Fused& fused, const Json& params, bool wide) {
  const Window w = rows_window(fused);
  RowsLayout l;
  l.rank = int64_t(w.rank()), l.phases = rows_phases(fused), l.spread = rows_spread(fused);
  l.tile_n = int_param(params, "rows_n");
  l.parts = rows_in_pairs(fused) ? 2 : 1;
  l.joined = l.parts > 1 && rows_channels(fused) <= kRowsDepth / 2;
  l.values = int64_t(channel_values(fused).size());
  l.rows = int64_t(row_reductions(fused).size());
  if (const int64_t patch = params.value("rows_patch", int64_t{0}); patch > 0) {
    l.tile_m = patch, l.across = params.value("rows_across", int64_t{8});
    for (size_t i = 0; i < 2 && i < w.rank(); ++i)
      l.reach[1 - i] = (w.kernel[w.rank() - 1 - i] - 1) * w.dilation[w.rank() - 1 - i];
  }
  if (l.joins_lines()) l.strip = strip_of(ceil_div(fused.axes.back().size, l.phases[2]));
  l.kept = !wide && int_param(params, "rows_keep") != 0 ? rows_steps(fused) : 0;
  if (contiguous_positions(fused)) l.slice = l.spread > 1 ? 8 * l.spread : 16;
  l.stages = kMostRowStages, l.patches = l.patched() ? kMostRowPatches : 0;
  // Weights that stay in shared memory need no further stages.
  if (l.patched() && l.kept > 0) l.stages = kFewestRowStages;
  while (l.shared() > kMostRowShared && l.stages > kFewestRowStages + 1) --l.stages;
  if (l.patched() && l.shared() > kMostRowShared) l.patches = 2;
  if (l.slice > 8 && l.spread == 1 && l.shared() > kMostRowShared) l.slice = 8;
  while (l.shared() > kMostRowShared && l.stages > kFewestRowStages) --l.stages;
  return l;
}

}  // namespace cutegen::recipes
