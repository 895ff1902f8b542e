// SPDX-License-Identifier: Apache-2.0
#include "recipes/windows/window.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "recipes/fuse/extents.h"
#include "recipes/nest/windowed.h"
#include "recipes/windows/resample.h"
#include "recipes/windows/window_grouped.h"
#include "recipes/windows/window_implicit.h"
#include "recipes/windows/window_rows.h"
#include "recipes/windows/window_strips.h"
#include "recipes/windows/window_text.h"

namespace cutegen::recipes {
namespace {

constexpr int64_t kUnrolled = 32;         // positions of a pooling window that a kernel unrolls
constexpr int64_t kSmallKernel = 8;       // test shapes leave smaller kernels as they are
constexpr int64_t kLongLine = 256;        // inputs in a row of a tile
constexpr int64_t kLongest = 2048;        // inputs in a row of a tile that has only one row
constexpr int64_t kMostReads = 256;       // inputs that a thread reads of a tile
constexpr int64_t kTileBytes = 24 << 10;  // bytes of a tile, so that several CTAs fit an SM
constexpr int64_t kMostBytes = 40 << 10;  // bytes of static shared memory
// Sums that a thread holds before it reduces along the lines.
constexpr int64_t kMostSums = 64;
// Input rows for which a kernel of lines has code of its own.
constexpr int64_t kMostRows = 64;
constexpr int64_t kLineSums = 5120;  // sums of a team in shared memory, by default
constexpr int64_t kMostTeam = 256;
constexpr int64_t kManyThreads = int64_t{1} << 20;  // several times the threads that a GPU holds

bool is_depthwise(const WindowLeaf& leaf) {
  const Window& w = leaf.window;
  return w.kind == WindowKind::convolution && leaf.weight.shape[1] == 1 &&
         std::all_of(w.kernel.begin(), w.kernel.end(), [](int64_t k) { return k < kSmallKernel; });
}

// Whether each window reads only its own channel, with a kernel of constant size.
bool may_tile(const Fused& fused) {
  return fused.window->window.pools() || is_depthwise(*fused.window);
}

// The inputs along one axis that `results` windows read.
int64_t reach(const Window& window, size_t axis, int64_t results) {
  return (results - 1) * padded(window.stride, axis, 1) +
         (padded(window.kernel, axis, 1) - 1) * padded(window.dilation, axis, 1) + 1;
}

// The results of a tile along the axis before the last; 0 if no such tile fits shared memory.
int64_t tall_of(const Fused& fused, int64_t columns, int64_t rows, int64_t threads) {
  const Window& window = fused.window->window;
  if (rows > 1 && window.rank() == 1) return 0;
  if (reach(window, 1, rows) * padded(window.kernel, 2, 1) > kMostReads) return 0;
  auto bytes = [&](int64_t tall) { return 4 * reach(window, 1, tall) * reach(window, 2, columns); };
  const int64_t out1 = window.rank() == 1 ? 1 : fused.axes[window.rank()].size;
  int64_t teams = std::max<int64_t>(1, threads / columns);
  while (teams > 1 && (bytes(teams * rows) > kTileBytes || (teams - 1) * rows >= out1)) teams /= 2;
  return bytes(teams * rows) <= kMostBytes ? teams * rows : 0;
}

// Elements that a thread of a kernel of lines loads at once.
int64_t line_vector(const Fused& fused) {
  return 16 / int64_t(size_of(fused.window->input.dtype));
}

// The elements of a line in shared memory for `columns` results.
int64_t line_length(const Fused& fused, int64_t columns, int64_t team = 1) {
  const int64_t vector = line_vector(fused), all = ceil_div(columns, team) * team;
  const int64_t results = 8 * all <= 9 * columns ? all : columns;
  return (reach(fused.window->window, 2, results) + 2 * vector - 2) / vector * vector;
}

// Whether a window ends at the plane where another begins.
bool shares_planes(const Window& window) {
  if (window.rank() < 3 || window.kernel[0] < 2) return false;
  return (window.kernel[0] - 1) * window.dilation[0] % window.stride[0] == 0;
}

// The distance between such windows, in results.
int64_t planes_apart(const Window& window) {
  return (window.kernel[0] - 1) * window.dilation[0] / window.stride[0];
}

int64_t planes_of(const Json& params) {
  return params.value("planes", int64_t{1});
}

// Threads that share the lines of a kernel of lines; 0: the kernel is of another kind.
int64_t team_of(const Json& params) {
  return params.value("team", int64_t{0});
}

bool lines_legal(const Fused& fused, const Json& params) {
  const Window& window = fused.window->window;
  const int64_t team = team_of(params), columns = int_param(params, "columns"),
                rows = int_param(params, "rows"), threads = int_param(params, "threads");
  if (!window.pools() || columns < 1 || threads % team != 0) return false;
  if (planes_of(params) > 1 &&
      (!shares_planes(window) || 2 * rows * line_vector(fused) > kMostSums))
    return false;
  if (rows > 1 && (window.rank() == 1 || reach(window, 1, rows) > kMostRows)) return false;
  return rows * line_vector(fused) <= kMostSums &&
         4 * threads / team * rows * line_length(fused, columns, team) <= kMostBytes;
}

// The default: enough loads in flight, and lines as long as the image or as shared memory allows.
Json lines_safe(const Fused& fused) {
  const Window& w = fused.window->window;
  const int64_t vector = line_vector(fused), out2 = fused.axes.back().size,
                out1 = w.rank() == 1 ? 1 : fused.axes[w.rank()].size,
                in2 = fused.window->input.shape.back();
  int64_t rows = 1;
  // If windows share rows, a thread reads these rows once for several results. Small windows that
  // share no rows need several rows of results for enough loads in flight.
  const int64_t reads = padded(w.kernel, 0, 1) * padded(w.kernel, 1, 1);
  const bool shares = reach(w, 1, 1) > padded(w.stride, 1, 1);
  auto fits = [&](int64_t more) {
    return w.rank() > 1 && more * vector <= kMostSums / (shares_planes(w) ? 4 : 2) &&
           reach(w, 1, more) <= kMostRows && more < 2 * out1;
  };
  while (fits(2 * rows) && (shares || rows * reads < 8)) rows *= 2;
  int64_t parts = 1, columns = out2;
  while (columns > 1 && rows * line_length(fused, columns) > kLineSums)
    columns = ceil_div(out2, ++parts);
  const int64_t vectors = ceil_div(std::min(line_length(fused, columns), in2), vector);
  int64_t team = 8;
  while (team < kMostTeam && 4 * team < 3 * vectors) team *= 2;
  if (parts > 1 && columns > team) columns = columns / team * team;  // whole turns of the team
  int64_t threads = std::max<int64_t>(team, 128);
  while (threads > team &&
         4 * threads / team * rows * line_length(fused, columns, team) > kTileBytes)
    threads /= 2;
  // More results that share planes read them less often, as long as enough teams remain.
  int64_t planes = 1;
  if (shares_planes(w)) {
    const int64_t apart = planes_apart(w), out0 = fused.axes[2].size;
    const int64_t lines =
        fused.axes[0].size * fused.axes[1].size * ceil_div(out1, rows) * parts * team;
    while (planes < 8 && apart * planes < out0 &&
           lines * apart * ceil_div(out0, apart * 2 * planes) >= kManyThreads)
      planes *= 2;
  }
  return {{"team", team},
          {"columns", columns},
          {"rows", rows},
          {"planes", planes},
          {"threads", threads}};
}

// Whether an average divides by the same number everywhere.
bool has_whole_windows(const Window& window) {
  const bool unpadded = std::all_of(window.padding.begin(), window.padding.end(),
                                    [](int64_t padding) { return padding == 0; });
  return !window.ceil && (window.include_pad || unpadded);
}

// Writes what only pooling has: how a window starts, collects and divides.
void pool_text(const Window& window, std::map<std::string, std::string>& t) {
  const bool average = window.kind == WindowKind::average;
  int64_t positions = 1;
  for (int64_t size : window.kernel) positions *= size;
  const bool small = positions <= kUnrolled;
  t["unroll"] = small ? "      CUTE_UNROLL" : "#pragma unroll 1";
  t["initial"] = average ? "0.0f" : "-INFINITY";
  t["accumulate"] = average ? "window += value;" : "window = cutegen::maximum(value, window);";
  if (!average)
    t["divide"] = "";
  else if (window.divisor != 0)
    t["divide"] = fmt::format("    window /= {}.0f;\n", window.divisor);
  else if (has_whole_windows(window))
    t["divide"] = "    window *= 1.0f / (kKernel0 * kKernel1 * kKernel2);\n";
  else if (!window.include_pad)
    t["divide"] = "    window /= float(count);\n";
  else
    t["divide"] =
        "    // The padding counts, but not what a window has beyond it.\n"
        "    const int64_t whole = min(int64_t(kKernel0), in0 + kPadding0 - start0) *\n"
        "                          min(int64_t(kKernel1), in1 + kPadding1 - start1) *\n"
        "                          min(int64_t(kKernel2), in2 + kPadding2 - start2);\n"
        "    constexpr int kWhole = kKernel0 * kKernel1 * kKernel2;\n"
        "    window = whole == kWhole ? window * (1.0f / kWhole) : window / float(whole);\n";
}

// Writes the division of an average. If padding does not count, the divisor is the number of the
// window's positions inside the input.
std::string divide_text(const Window& window, const std::string& divide, int depth) {
  if (window.kind != WindowKind::average) return "";
  std::string text = divide;
  const std::string starts =
      "    const int start1 = int(p1) * kStride1 - kPadding1,\n"
      "              start2 = int(p2) * kStride2 - kPadding2;\n";
  if (window.divisor == 0 && !has_whole_windows(window)) {
    std::string counts;
    for (int i = 0; i < 3 && !window.include_pad; ++i)
      counts += fmt::format("{1}(min(start{0} + kKernel{0}, int(in{0})) - max(start{0}, 0))", i,
                            i ? " * " : "    const int count = ");
    text = starts + counts + (counts.empty() ? "" : ";\n") + divide;
  }
  return indent(text, depth - 4) + "\n";
}

void tile_pools(const Window& window, std::map<std::string, std::string>& t) {
  t["what"] = "pooling";
  t["channels"] = "channels";
  t["input_channel"] = "channel";
  t["channel_loop"] = t["load_taps"] = "";
  t["collect"] = "__device__ __forceinline__ void collect(float& window, float value) {\n  " +
                 t["accumulate"] + "\n}\n";
  t["use_row"] = "        float part = " + t["initial"] +
                 ";\n"
                 "        CUTE_UNROLL\n"
                 "        for (int k2 = 0; k2 < kKernel2; ++k2)\n"
                 "          collect(part, from[i * kWidth + k2 * kDilation2]);\n"
                 "        CUTE_UNROLL\n"
                 "        for (int r = 0; r < kRows; ++r)\n"
                 "          if (kernel_row(i, r) >= 0) collect(sums[t][r], part);";
  t["divide"] = divide_text(window, t["divide"], 6);
}

void tile_channels(const std::string& weight, std::map<std::string, std::string>& t) {
  t["what"] = "a convolution of few channels";
  t["channels"] = "(groups * out_of_group)";
  t["initial"] = "0.0f";
  t["collect"] = t["divide"] = "";
  t["channel_loop"] = "  for (int c = 0; c < int(in_of_group); ++c)";
  t["input_channel"] = "(channel / out_of_group * in_of_group + c)";
  t["load_taps"] = fmt::format(
      "    float taps[kKernel1][kKernel2];\n"
      "    CUTE_UNROLL\n"
      "    for (int k1 = 0; k1 < kKernel1; ++k1)\n"
      "      CUTE_UNROLL\n"
      "      for (int k2 = 0; k2 < kKernel2; ++k2)\n"
      "        taps[k1][k2] = cutegen::convert<float>(\n"
      "            {}[channel * weight_o + c * weight_i + k0 * weight0 + k1 * weight1 +\n"
      "              k2 * weight2]);",
      weight);
  t["use_row"] =
      "        float values[kKernel2];\n"
      "        CUTE_UNROLL\n"
      "        for (int k2 = 0; k2 < kKernel2; ++k2)\n"
      "          values[k2] = from[i * kWidth + k2 * kDilation2];\n"
      "        CUTE_UNROLL\n"
      "        for (int r = 0; r < kRows; ++r)\n"
      "          if (kernel_row(i, r) >= 0)\n"
      "            CUTE_UNROLL\n"
      "            for (int k2 = 0; k2 < kKernel2; ++k2)\n"
      "              sums[t][r] += taps[kernel_row(i, r)][k2] * values[k2];";
}

class WindowWriter {
 public:
  WindowWriter(const Task& task, const Fused& fused, const Json& params, const Label& label)
      : task_(task),
        fused_(fused),
        params_(params),
        label_(label),
        leaf_(*fused.window),
        window_(leaf_.window) {}

  ProgramPart write() {
    ProgramPart part;
    Tail tail(fused_, tiled() ? Tail::By::channel : Tail::By::element);
    part.file = label_("kernel") + ".cu";
    std::map<std::string, std::string> t;
    t["title"] = title(task_, fused_);
    t["name"] = label_("window");
    t["of_channel"] = indent(tail.of_channel(), 2);
    t["threads"] = params_.at("threads").dump();
    t["pixels"] = params_.value("pixels", Json(1)).dump();
    t["rows"] = params_.value("rows", Json(1)).dump();
    t["constants"] = constants(window_, window_.pools() || tiled());
    t["compute"] = tail.compute();
    t["finish"] = indent(tail.finish(), by_lines() ? 10 : window_.pools() && !tiled() ? 4 : 6);
    t["input"] = fused_.names.at(leaf_.input.tensor);
    t["input_type"] = type_of(leaf_.input);
    t["params"] = tail.declare(args_);
    Numbers numbers = tail.numbers();
    const Numbers more = geometry(fused_);
    numbers.insert(numbers.end(), more.begin(), more.end());
    t["sizes"] = add_numbers(args_, numbers) + size_declarations(fused_);
    add_sizes(args_, fused_);
    if (window_.pools()) pool_text(window_, t);
    if (tiled()) tile_text(t);
    if (by_lines()) lines_text(t, part);
    if (!window_.pools() && !tiled()) convolution_text(t);
    part.source = fill(by_lines()        ? "kernels/windows/lines.cu"
                       : tiled()         ? "kernels/windows/tiled.cu"
                       : window_.pools() ? "kernels/windows/pooling.cu"
                                         : "kernels/windows/convolution.cu",
                       t);
    plan(part);
    for (const std::string& demand : fixed_sizes(fused_)) part.requirements.push_back(demand);
    return part;
  }

 private:
  bool by_lines() const { return team_of(params_) > 0; }
  bool tiled() const {
    return may_tile(fused_) && !by_lines() && params_.at("columns").get<int64_t>() > 0;
  }

  int64_t tall() const {
    return tall_of(fused_, params_.at("columns").get<int64_t>(), params_.at("rows").get<int64_t>(),
                   params_.at("threads").get<int64_t>());
  }

  void tile_text(std::map<std::string, std::string>& t) const {
    t["columns"] = params_.at("columns").dump();
    t["tall"] = std::to_string(tall());
    if (window_.pools())
      tile_pools(window_, t);
    else
      tile_channels(fused_.names.at(leaf_.weight.tensor), t);
  }

  void lines_text(std::map<std::string, std::string>& t, ProgramPart& part) const {
    t["team"] = params_.at("team").dump();
    t["planes"] = std::to_string(planes_of(params_));
    t["columns"] = params_.at("columns").dump();
    t["macro"] = label_("VECTOR");
    t["steps"] = label_("STEPS");
    t["divide"] = divide_text(window_, t["divide"], 10);
    part.symbols[label_("vector")] = vector_rule();
    part.symbols[label_("steps")] = fmt::format(
        "ceil_div(max(1,min({},{})),{}*{})",
        line_length(fused_, int_param(params_, "columns"), team_of(params_)),
        size_text(fused_, leaf_.input, window_.rank() + 1), team_of(params_), label_("vector"));
    part.defines[label_("VECTOR")] = label_("vector");
    part.defines[label_("STEPS")] = label_("steps");
  }

  // The width of a load: whole vectors if all lines of the input consist of aligned ones.
  std::string vector_rule() const {
    const Operand& in = leaf_.input;
    const size_t last = window_.rank() + 1;
    const int64_t vector = line_vector(fused_);
    std::string rest = fmt::format("({})%{}", size_text(fused_, in, last), vector);
    if (const std::string step = stride_text(fused_, in, last); step != "1")
      rest += fmt::format("+(({}) == 1 ? 0 : 1)", step);
    for (size_t i = 0; i < last; ++i)
      rest += fmt::format("+({})%{}", stride_text(fused_, in, i), vector);
    return fmt::format("{} == 0 ? {} : 1", rest, vector);
  }

  // Teams of all results.
  std::string teams() const {
    const size_t rank = window_.rank();
    std::string count = extent(0) + "*" + extent(1);
    if (rank == 3) {
      const int64_t planes = planes_of(params_), apart = planes > 1 ? planes_apart(window_) : 1;
      count += fmt::format("*{}*ceil_div({},{})", apart, extent(2), apart * planes);
    }
    if (rank > 1) count += fmt::format("*ceil_div({},{})", extent(rank), params_.at("rows").dump());
    return count + fmt::format("*ceil_div({},{})", extent(rank + 1), params_.at("columns").dump());
  }

  // One CTA for each tile of each image, channel and plane.
  std::string tiles() const {
    const size_t rank = window_.rank();
    std::string grid = extent(0) + "*" + extent(1);
    if (rank == 3) grid += "*" + extent(2);
    if (rank > 1) grid += fmt::format("*ceil_div({},{})", extent(rank), tall());
    return grid + fmt::format("*ceil_div({},{})", extent(rank + 1), params_.at("columns").dump());
  }

  // Unrolled code holds for this kernel size only.
  void require_kernel(ProgramPart& part) const {
    for (size_t i = 0; i < window_.rank(); ++i)
      part.requirements.push_back(
          fmt::format("{} == {}", size_text(fused_, leaf_.weight, i + 2), window_.kernel[i]));
  }

  void convolution_text(std::map<std::string, std::string>& t) const {
    t["channels"] = params_.value("channels", Json(1)).dump();
    if (may_tile(fused_)) t["pixels"] = t["rows"];
    t["transposed"] = window_.kind == WindowKind::transposed ? "true" : "false";
    t["weight"] = fused_.names.at(leaf_.weight.tensor);
  }

  std::string extent(size_t axis) const { return "(" + fused_.axes[axis].extent + ")"; }

  void plan(ProgramPart& part) {
    const std::string n = label_("n"), image = label_("image");
    std::string pixels;
    for (size_t i = 2; i < fused_.axes.size(); ++i) pixels += "*" + extent(i);
    part.symbols[image] = pixels.substr(1);
    part.symbols[n] = extent(0) + (window_.pools() ? "*" + extent(1) : "") + "*" + image;
    const auto threads = params_.at("threads").get<int64_t>();
    const int64_t items = params_.value(may_tile(fused_) ? "rows" : "pixels", int64_t{1});
    std::string grid = tiled() ? tiles() : fmt::format("ceil_div({},{})", n, threads * items);
    if (by_lines()) {
      part.symbols[label_("teams")] = teams();
      part.requirements.push_back(label_("teams") + " <= 2000000000");
      grid = fmt::format("ceil_div({},{})", label_("teams"), threads / team_of(params_));
    }
    // Places inside an image are 32-bit numbers.
    part.requirements.push_back(image + " <= 2000000000");
    part.requirements.push_back(last_of_image(fused_) + " <= 2000000000");
    if (tiled() && !window_.pools()) require_kernel(part);
    if (!window_.pools() && !tiled()) {
      grid += fmt::format("*({0})*ceil_div({1},{2})", groups_text(fused_),
                          out_of_group_text(fused_), params_.value("channels", int64_t{1}));
    }
    part.steps.push_back({{"id", label_("window")},
                          {"kernel", label_("window")},
                          {"when", n + " > 0"},
                          {"grid", {grid, 1, 1}},
                          {"block", {threads, 1, 1}},
                          {"args", args_}});
  }

  const Task& task_;
  const Fused& fused_;
  const Json& params_;
  const Label& label_;
  const WindowLeaf& leaf_;
  const Window& window_;
  Json args_ = Json::array();
};

}  // namespace

namespace {

// Results of a tile along the last axis: about as many as there are, from at most kLongLine inputs.
int64_t columns_of(const Fused& fused) {
  const Window& window = fused.window->window;
  const int64_t most = (window.rank() == 1 ? kLongest : kLongLine) / window.stride.back();
  int64_t columns = 8;
  while (columns * 2 <= most && columns < fused.axes.back().size) columns *= 2;
  return columns;
}

// The safe choice: the largest tile whose inputs leave room for other CTAs.
Json tile_safe(const Fused& fused) {
  constexpr int64_t kThreads = 128;
  const Window& w = fused.window->window;
  if (w.pools())
    if (Json params = lines_safe(fused); lines_legal(fused, params)) return params;
  bool apart = w.pools();
  int64_t places = 1;
  for (size_t i = 0; i < w.rank(); ++i)
    apart = apart && w.stride[i] >= w.kernel[i], places *= w.kernel[i];
  // No two windows share an input, so a tile saves nothing. An H100 averages 11 x 11 elements in 20
  // ms if a thread computes one result, and in 7.2 ms if it computes eight.
  constexpr int64_t kLargeWindow = 32;
  if (apart && places > kLargeWindow) return {{"columns", 0}, {"rows", 8}, {"threads", 256}};
  if (apart) return {{"columns", 0}, {"rows", 1}, {"threads", kThreads}};
  const size_t rank = fused.window->window.rank();
  for (int64_t columns = columns_of(fused); columns >= 8; columns /= 2)
    for (int64_t rows : {16, 8, 4, 2, 1}) {
      if (rank > 1 && rows > 1 && rows >= 2 * fused.axes[rank].size) continue;
      const int64_t tall = tall_of(fused, columns, rows, kThreads);
      if (tall > 0 && 4 * reach(w, 1, tall) * reach(w, 2, columns) <= kTileBytes)
        return {{"columns", columns}, {"rows", rows}, {"threads", kThreads}};
    }
  return {{"columns", 0}, {"rows", 1}, {"threads", kThreads}};
}

bool resamples(const Fused& fused) {
  return fused.window->window.kind == WindowKind::resample;
}

// Whether the tensor cores compute the window as a product of rows.
bool by_rows(const Json& params) {
  return params.value("by_rows", 0) == 1;
}

// Whether the tensor cores compute the window.
bool multiplies(const Json& params) {
  return params.value("wgmma", 0) == 1;
}

// The safe choice for the kernel in which a thread reads its windows from global memory.
Json direct_safe(const Fused& fused) {
  int64_t channels = 1;
  for (int64_t c : {4, 8, 16})
    if (out_of_group(fused) > c / 2) channels = c;
  return {{"channels", channels}, {"pixels", 2}, {"threads", 128}};
}

// Adds the choice of the kernel by rows.
void put_rows(const Fused& fused, Json& params) {
  if (!rows_apply(fused)) return;
  params.update(rows_safe(fused));
  params["by_rows"] = rows_legal(fused, params) && rows_faster(fused) ? 1 : 0;
}

std::vector<RecipeParameter> tensor_core_parameters(const Fused& fused) {
  std::vector<RecipeParameter> all;
  if (rows_apply(fused)) all = rows_parameters(fused);
  const std::vector<RecipeParameter> implicit = implicit_parameters(fused);
  all.insert(all.end(), implicit.begin(), implicit.end());
  return all;
}

std::vector<RecipeParameter> tile_parameters(const Fused& fused) {
  const Json safe = tile_safe(fused);
  const auto best = safe.at("columns").get<int64_t>();
  std::vector<int64_t> columns{0, 64, 128};
  if (best > 1) columns = {best, best * 2, ceil_div(best, 2), 0};
  std::vector<RecipeParameter> list{
      {.name = "columns",
       .meaning =
           "results of a tile along the last axis; 0: no tile, each thread reads its own windows",
       .legal = columns},
      {.name = "rows",
       .meaning = "results of a thread, below one another",
       .legal = {16, 8, 4, 2, 1}},
      {.name = "threads", .meaning = "threads of a CTA", .legal = {128, 256}}};
  if (const int64_t team = team_of(safe)) {
    std::vector<int64_t> teams{team};
    for (int64_t other : {2 * team, team / 2})
      if (other >= 8 && other <= kMostTeam) teams.push_back(other);
    teams.push_back(0);
    if (shares_planes(fused.window->window))
      list.push_back({.name = "planes",
                      .meaning = "results of a team along the first of three axes",
                      .legal = {8, 4, 2, 1}});
    list.push_back({.name = "team",
                    .meaning = "threads that share lines of the input; 0: another kernel",
                    .legal = teams});
  }
  return list;
}

}  // namespace

bool window_legal(const Fused& fused, const Json& params) {
  if (resamples(fused)) return true;
  if (by_groups(params)) return grouped_apply(fused);
  if (by_strips(params)) return strips_legal(fused, params);
  if (by_rows(params)) return rows_legal(fused, params);
  if (multiplies(params)) return fused.window->wgmma > 0 && implicit_legal(fused, params);
  if (!may_tile(fused)) return true;
  if (team_of(params) > 0) return lines_legal(fused, params);
  const auto columns = params.at("columns").get<int64_t>();
  return columns == 0 || tall_of(fused, columns, params.at("rows").get<int64_t>(),
                                 params.at("threads").get<int64_t>()) > 0;
}

std::vector<RecipeParameter> window_parameters(const Fused& fused) {
  if (resamples(fused)) return resample_parameters(fused);
  if (fused.reduces()) return tensor_core_parameters(fused);
  std::vector<RecipeParameter> all;
  if (grouped_apply(fused))
    all.push_back({.name = "by_groups",
                   .meaning = "1: multiply groups of few channels on the tensor cores",
                   .legal = {1, 0}});
  if (strips_apply(fused)) {
    const std::vector<RecipeParameter> strips = strips_parameters(fused);
    all.insert(all.end(), strips.begin(), strips.end());
  }
  if (may_tile(fused)) {
    const std::vector<RecipeParameter> tiles = tile_parameters(fused);
    all.insert(all.end(), tiles.begin(), tiles.end());
    return all;
  }
  std::vector<RecipeParameter> list{
      {.name = "pixels", .meaning = "results of a thread along the image", .legal = {4, 2, 1}},
      {.name = "threads", .meaning = "threads of a CTA", .legal = {128, 256}}};
  std::vector<int64_t> channels{1};
  for (int64_t c : {4, 8, 16, 32})
    if (out_of_group(fused) > c / 2) channels.insert(channels.begin(), c);
  list.insert(list.begin(),
              {.name = "channels", .meaning = "output channels of a thread", .legal = channels});
  if (fused.window->wgmma > 0) {
    const std::vector<RecipeParameter> first = tensor_core_parameters(fused);
    all.insert(all.end(), first.begin(), first.end());
    all.push_back({.name = "wgmma",
                   .meaning = "1: multiply on Hopper's tensor cores, in the task's math mode",
                   .legal = {1, 0}});
  }
  all.insert(all.end(), list.begin(), list.end());
  return all;
}

Json window_safe(const Fused& fused) {
  if (resamples(fused)) return resample_safe(fused);
  if (fused.reduces()) {
    Json params = implicit_safe(fused);
    params["wgmma"] = 1;
    put_rows(fused, params);
    return params;
  }
  Json params = may_tile(fused) ? tile_safe(fused) : direct_safe(fused);
  if (grouped_apply(fused)) params["by_groups"] = grouped_faster(fused) ? 1 : 0;
  if (strips_apply(fused)) params.update(strips_safe(fused));
  if (may_tile(fused)) return params;
  if (fused.window->wgmma > 0) {
    params.update(implicit_safe(fused));
    params["wgmma"] = implicit_legal(fused, params) ? 1 : 0;
    put_rows(fused, params);
  }
  return params;
}

ProgramPart window_part(const Task& task, const Fused& fused, const Json& params,
                        const Label& label) {
  if (resamples(fused)) return resample_part(task, fused, params, label);
  if (by_groups(params)) return grouped_part(task, fused, label);
  if (by_strips(params)) return strips_part(task, fused, params, label);
  if (by_rows(params)) return rows_part(task, fused, params, label);
  if (multiplies(params)) return implicit_part(task, fused, params, label);
  return WindowWriter(task, fused, params, label).write();
}

}  // namespace cutegen::recipes
