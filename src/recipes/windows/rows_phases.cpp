// SPDX-License-Identifier: Apache-2.0
#include "recipes/windows/rows_phases.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/text.h"
#include "recipes/graph/reshape.h"
#include "recipes/windows/window_text.h"

namespace cutegen::recipes {
namespace {

// The phase on each axis, from the number of a phase that has tiles.
std::vector<std::string> phase_texts(const std::string& phase, const Phases& of) {
  return {fmt::format("{} / {} % {}", phase, of[1] * of[2], of[0]),
          fmt::format("{} / {} % {}", phase, of[2], of[1]), fmt::format("{} % {}", phase, of[2])};
}

// The function that reads a weight. Filter taps of a transposed convolution are reversed.
std::string read_weight(const std::string& weight, WindowKind kind) {
  const char* at =
      kind == WindowKind::transposed
          ? "in * weight_o + out * weight_i + (kernel0 - 1 - k0) * weight0 +\n"
            "                      (kernel1 - 1 - k1) * weight1 + (kernel2 - 1 - k2) * weight2"
          : "out * weight_o + in * weight_i + k0 * weight0 + k1 * weight1 + k2 * weight2";
  return fmt::format(
      "  auto read = [&](int64_t out, int64_t in, int k0, int k1, int k2) {{\n"
      "    return {}[{}];\n  }};",
      weight, at);
}

// The same for phases: filter tap k of a phase has weight phase + padding + stride * (front - k),
// where `front` is the padding of the window.
std::string read_weight_of_phase(const std::map<std::string, std::string>& t, const Fused& fused,
                                 int64_t tile_n) {
  const Window &w = fused.window->window, window = rows_window(fused);
  const Phases phases = rows_phases(fused);
  const int64_t spread = rows_spread(fused), channels = tile_n / spread;
  std::vector<std::string> phase = phase_texts("phase", tile_phases(fused));
  if (spread > 1) phase[2] = fmt::format("column / {}", channels);
  std::string places, has;
  for (size_t i = 0; i < 3; ++i) {
    const int64_t front = padded(w.padding, i, 0) + phases[i] * padded(window.padding, i, 0);
    places +=
        fmt::format("    const int t{0} = {1}{2} - {3} * k{0};\n", i,
                    phases[i] == 1 ? "" : fmt::format("int({}) + ", phase[i]), front, phases[i]);
    has += fmt::format(" && t{0} >= 0 && t{0} < {1}", i, padded(w.kernel, i, 1));
  }
  return fmt::format(
      "  // A filter has number ((phase * tiles + tile) * {0} + phase of the last axis) * {1} + "
      "channel.\n"
      "  auto read = [&](int64_t filter, int64_t in, int k0, int k1, int k2) {{\n"
      "    const int64_t tiles = ceil_div(out_of_group, {1}), column = filter % {2}, tile = filter "
      "/ {2};\n"
      "    [[maybe_unused]] const int64_t phase = tile / tiles;\n"
      "    const int64_t out = tile % tiles * {1} + column % {1};\n{3}"
      "    return out < out_of_group{4}\n"
      "               ? {5}[in * weight_o + out * weight_i + t0 * weight0 + t1 * weight1 +\n"
      "                        t2 * weight2]\n"
      "               : {6}(0);\n  }};",
      spread, channels, tile_n, places, has, t.at("weight"), t.at("weight_type"));
}

// The members of the geometry: the numbers of phases, and the filter taps of each.
std::string phases_text(const Fused& fused, const std::string& pairs) {
  const int64_t count = count_of(tile_phases(fused));
  std::string text = fmt::format(
      "  static constexpr int kPhases = {}, kSpread = {};\n"
      "  static constexpr bool kPairs = {};  // store two neighbouring results at once",
      count, rows_spread(fused), pairs);
  if (count == 1) return text;
  text +=
      "\n  // Bit i is set if the phase has filter tap i.\n"
      "  static CUTE_DEVICE uint32_t taps(int phase) {\n    return ";
  for (int64_t f = 0; f + 1 < count; ++f)
    text += fmt::format("phase == {} ? {:#x}u : ", f, phase_taps(fused, f));
  return text + fmt::format("{:#x}u;\n  }}", phase_taps(fused, count - 1));
}

}  // namespace

Window rows_window(const Fused& fused) {
  Window w = fused.window->window;
  if (w.kind != WindowKind::transposed) return w;
  for (size_t i = 0; i < w.rank(); ++i) {
    const int64_t reach = (w.kernel[i] - 1) * w.dilation[i], stride = w.stride[i];
    if (w.padding[i] > reach || w.kernel[i] < stride || (stride > 1 && w.dilation[i] > 1))
      return fused.window->window;
    if (stride == 1) {
      const bool extended = !w.output_padding.empty() && w.output_padding[i] != 0;
      if (extended) return fused.window->window;
      w.padding[i] = reach - w.padding[i];
      continue;
    }
    // The result at position q * stride + f takes weight k from input q + (f + padding - k) /
    // stride.
    int64_t first = 0, last = 0;
    for (int64_t f = 0; f < stride; ++f)
      for (int64_t k = (f + w.padding[i]) % stride; k < w.kernel[i]; k += stride) {
        first = std::min(first, (f + w.padding[i] - k) / stride);
        last = std::max(last, (f + w.padding[i] - k) / stride);
      }
    w.kernel[i] = last - first + 1, w.stride[i] = 1, w.padding[i] = -first;
  }
  w.output_padding.clear();
  w.kind = WindowKind::convolution;
  return w;
}

Phases rows_phases(const Fused& fused) {
  const Window& w = fused.window->window;
  Phases phases = {1, 1, 1};
  if (w.kind != WindowKind::transposed || rows_window(fused).kind != WindowKind::convolution)
    return phases;
  for (size_t i = 0; i < w.rank(); ++i) phases[3 - w.rank() + i] = w.stride[i];
  return phases;
}

bool rows_in_pairs(const Fused& fused) {
  return fused.window->wgmma == 3;
}

int64_t most_columns(const Fused& fused) {
  return rows_in_pairs(fused) ? 64 : 128;
}

int64_t rows_spread(const Fused& fused) {
  const int64_t phases = rows_phases(fused)[2], channels = most_columns(fused) / phases / 32 * 32;
  return fused.reduces() && fused.axes[1].size > channels ? 1 : phases;
}

Phases tile_phases(const Fused& fused) {
  const Phases all = rows_phases(fused);
  return {all[0], all[1], all[2] / rows_spread(fused)};
}

int64_t count_of(const Phases& phases) {
  return phases[0] * phases[1] * phases[2];
}

uint32_t phase_taps(const Fused& fused, int64_t phase) {
  const Window &w = fused.window->window, window = rows_window(fused);
  const Phases phases = tile_phases(fused);
  const int64_t of[3] = {phase / (phases[1] * phases[2]), phase / phases[2] % phases[1],
                         phase % phases[2]};
  const int64_t taps = product(window.kernel);
  // A tile with all phases of the last axis has all filter taps of this axis.
  const bool spreads = rows_spread(fused) > 1;
  uint32_t bits = 0;
  for (int64_t tap = 0; tap < taps; ++tap) {
    bool has = true;
    int64_t rest = spreads ? tap / window.kernel.back() : tap;
    for (size_t i = spreads ? w.rank() - 1 : w.rank(); i-- > 0; rest /= window.kernel[i]) {
      const int64_t k = of[3 - w.rank() + i] + w.padding[i] +
                        w.stride[i] * (window.padding[i] - rest % window.kernel[i]);
      has &= k >= 0 && k < w.kernel[i];
    }
    if (has) bits |= uint32_t{1} << tap;
  }
  return bits;
}

void put_phase_texts(std::map<std::string, std::string>& t, const Fused& fused, int64_t tile_n,
                     const std::string& pairs) {
  const Phases of = rows_phases(fused);
  const Window window = rows_window(fused);
  const bool phased = count_of(of) > 1;
  std::vector<std::string> out, kernel;
  const int64_t spread = rows_spread(fused), count = count_of(tile_phases(fused));
  std::vector<std::string> phase = phase_texts("tile.phase", tile_phases(fused));
  if (spread > 1) phase[2] = "own / 128";
  t["within"] = "";
  for (size_t i = 0; i < 3; ++i) {
    const std::string size = fmt::format("int(out{})", i);
    out.push_back(of[i] == 1 ? size : fmt::format("ceil_div({}, {})", size, of[i]));
    kernel.push_back(phased ? std::to_string(padded(window.kernel, i, 1))
                            : fmt::format("int(kernel{})", i));
    const bool spreads = of[i] > 1;
    t[fmt::format("spread{}", i)] = spreads ? fmt::format(" * {} + {}", of[i], phase[i]) : "";
    if (spreads) t["within"] += fmt::format(" && p{0} < int(out{0})", i);
  }
  t["out"] = join(out, ", "), t["kernel"] = join(kernel, ", ");
  t["filters"] = phased ? fmt::format("ceil_div(out_of_group, {}) * {}", tile_n / spread, tile_n)
                        : "out_of_group";
  t["all_filters"] = (count > 1 ? fmt::format("{} * ", count) : "") + t["filters"];
  t["read_weight"] = phased ? read_weight_of_phase(t, fused, tile_n)
                            : read_weight(t.at("weight"), fused.window->window.kind);
  t["phases"] = phases_text(fused, pairs);
}

}  // namespace cutegen::recipes
