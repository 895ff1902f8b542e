// SPDX-License-Identifier: Apache-2.0
#include "recipes/windows/window_rows.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "recipes/fuse/extents.h"
#include "recipes/graph/reshape.h"
#include "recipes/nest/channel_values.h"
#include "recipes/nest/windowed.h"
#include "recipes/windows/window_text.h"

namespace cutegen::recipes {
namespace {

constexpr int64_t kTileRows = 128, kThreadsOfRows = 384;
constexpr int64_t kMostSharedRows = int64_t{227} << 10;
constexpr int64_t kMostRowStages = 8, kFewestStages = 4;
constexpr int64_t kMostStride = 8;       // the driver's limit for steps between pixels
constexpr int64_t kFewestChannels = 24;  // fewer input channels would leave most of a step empty
// Products per result for which the copy of floats pays. Measured on an H200: 576 and 2,240
// products take 0.6 to 0.98 of the other kernel's time, 192 take 1.03 to 2.5.
constexpr int64_t kFewestOfFloats = 512;
// More values per channel make the work after the convolution too long: with six, the kernel takes
// 1.2 times the other kernel's time.
constexpr size_t kMostValuesOfFloats = 2;

bool halves(const Fused& fused) {
  return size_of(fused.window->input.dtype) == 2;
}

// Input channels of a step of 16-bit operands, and of a step of floats.
constexpr int64_t kDepth = 64, kWideDepth = 32;

// Whether a value that half precision does not represent makes the program multiply floats.
bool watched(const Fused& fused) {
  return !halves(fused);
}

int64_t input_channels(const Fused& fused) {
  return fused.window->input.shape[1];
}

// The padding behind the last element of an axis.
int64_t padding_behind(const Window& window, size_t axis) {
  return window.padding[axis] + (window.behind.empty() ? 0 : window.behind[axis]);
}

// Whether the driver accepts the corners and offsets of im2col mode: it has fewer bits for them if
// a map has more axes.
bool fits_map(const Window& window) {
  const int64_t most = window.rank() == 1 ? 32767 : window.rank() == 2 ? 127 : 15;
  for (size_t i = 0; i < window.rank(); ++i) {
    const int64_t reach = (window.kernel[i] - 1) * window.dilation[i];
    if (window.padding[i] > most || reach - padding_behind(window, i) > most ||
        padding_behind(window, i) - reach > most || reach > 2 * most ||
        window.stride[i] > kMostStride)
      return false;
  }
  return true;
}

int64_t rows_of(const Fused& fused) {
  int64_t rows = fused.axes[0].size;
  for (size_t i = 2; i < fused.axes.size(); ++i) rows *= fused.axes[i].size;
  return rows;
}

int64_t steps_of(const Fused& fused) {
  return product(fused.window->window.kernel) * ceil_div(input_channels(fused), kDepth);
}

// Shared memory of a CTA that keeps the weights of `kept` steps, or of all stages.
int64_t shared_of(const Fused& fused, int64_t tile_n, int64_t stages, int64_t kept) {
  const auto values = int64_t(channel_values(fused).size());
  const int64_t pitch = values <= 2 ? values : ceil_div(values, 4) * 4;
  const int64_t tiles = stages * kTileRows + (kept > 0 ? kept : stages) * tile_n;
  const int64_t base = ceil_div(tiles * 128 + stages * 16 + 16, 1024) * 1024;
  return base + ceil_div(pitch == 0 ? 8 : 2 * 4 * pitch * tile_n, 1024) * 1024;
}

int64_t stages_of(const Fused& fused, int64_t tile_n, int64_t kept) {
  int64_t stages = kMostRowStages;
  while (stages > 2 && shared_of(fused, tile_n, stages, kept) > kMostSharedRows) --stages;
  return stages;
}

// Whether a CTA can keep all weights.
bool can_keep(const Fused& fused, int64_t tile_n) {
  const int64_t kept = steps_of(fused);
  return fused.axes[1].size <= tile_n &&
         shared_of(fused, tile_n, kFewestStages, kept) <= kMostSharedRows;
}

// The steps whose weights a CTA keeps.
int64_t kept_of(const Fused& fused, const Json& params) {
  return int_param(params, "rows_keep") != 0 ? steps_of(fused) : 0;
}

// Estimates in seconds. The rates, in products per second, are rough values for an H200.
double rows_seconds(const Fused& fused, int64_t tile_n) {
  const WindowLeaf& leaf = *fused.window;
  const int64_t steps = product(leaf.window.kernel) * ceil_div(input_channels(fused), kDepth),
                tiles = ceil_div(rows_of(fused), kTileRows) * ceil_div(fused.axes[1].size, tile_n),
                rounds = ceil_div(tiles, kSms);
  // Narrow tiles read more of the input per product.
  const double speed = 320e12 * (tile_n >= 128 ? 1 : tile_n >= 64 ? 0.7 : 0.4);
  const double products =
      double(rounds * kSms) * double(kTileRows * tile_n * kDepth) * double(steps);
  // The copy, and launches of kernels that return at once.
  const double turned = (watched(fused) ? 8e-6 : 3e-6) + double(product(leaf.input.shape)) *
                                                             double(size_of(leaf.input.dtype) + 2) /
                                                             4e12;
  return products / speed + turned;
}

// The same for the kernel of window_implicit.h, with tiles of about 256 positions.
double implicit_seconds(const Fused& fused) {
  const int64_t out = fused.axes[1].size, tile_n = std::min<int64_t>(128, out),
                rounds = ceil_div(ceil_div(rows_of(fused), 256) * ceil_div(out, tile_n), kSms);
  const double products = double(rounds * kSms) * double(256 * tile_n * input_channels(fused)) *
                          double(product(fused.window->window.kernel));
  return products / (halves(fused) ? 170e12 : 125e12);
}

int64_t best_tile(const Fused& fused) {
  int64_t best = 128;
  for (int64_t tile_n : {96, 64, 32})
    if (rows_seconds(fused, tile_n) < rows_seconds(fused, best)) best = tile_n;
  return best;
}

// Chooses the numbers of the geometry that a small kernel takes.
Json numbers_of(const Fused& fused, const std::vector<std::string>& words) {
  Json args = Json::array();
  for (const std::string& wanted : words)
    for (const auto& [word, expression] : geometry(fused))
      if (word == wanted) args.push_back({{"i64", expression}});
  return args;
}

// The launches of the program: sizes, tensor maps and steps, as plan expressions.
class RowsPlan {
 public:
  RowsPlan(const Fused& fused, const Json& params, const Label& label)
      : fused_(fused),
        label_(label),
        leaf_(*fused.window),
        window_(leaf_.window),
        tile_n_(int_param(params, "rows_n")),
        kept_(kept_of(fused, params)),
        stages_(stages_of(fused, tile_n_, kept_)) {}

 protected:
  std::string size(size_t axis) const { return size_text(fused_, leaf_.input, axis); }
  std::string step(size_t axis) const { return stride_text(fused_, leaf_.input, axis); }

  // The input's positions, as a plan expression.
  std::string positions() const {
    std::string text;
    for (size_t i = 0; i < window_.rank(); ++i)
      text += fmt::format("{}({})", i ? "*" : "", size(i + 2));
    return text;
  }

  // The width of the turning kernel's loads: several positions if they are contiguous and aligned.
  std::string vector_rule() const {
    const int64_t vector = 16 / int64_t(size_of(leaf_.input.dtype));
    std::string rest = fmt::format("({})%{}+({})%{}+({})%{}", step(0), vector, step(1), vector,
                                   positions(), vector);
    std::string distance = "1";
    for (size_t i = window_.rank() + 1; i >= 2; --i) {
      rest += fmt::format("+(({}) == {} ? 0 : 1)", step(i), distance);
      distance = distance == "1" ? "(" + size(i) + ")" : fmt::format("{}*({})", distance, size(i));
    }
    if (const std::string start = start_text(fused_, leaf_.input); start != "0")
      rest += fmt::format("+({})%{}", start, vector);
    return fmt::format("{} == 0 ? {} : 1", rest, vector);
  }

  void symbols(ProgramPart& part) const {
    std::string rows = size(0);
    for (size_t i = 2; i < fused_.axes.size(); ++i) rows += "*(" + fused_.axes[i].extent + ")";
    const std::string out = out_of_group_text(fused_), in = in_of_group_text(fused_);
    part.symbols[label_("rows")] = rows;
    part.symbols[label_("elements")] = fmt::format("{}*({})", label_("rows"), out);
    part.symbols[label_("tiles")] =
        fmt::format("ceil_div({},{})*ceil_div({},{})", label_("rows"), kTileRows, out, tile_n_);
    part.symbols[label_("pitch")] = fmt::format("ceil_div({},8)*8", in);
    operands(part, "", kDepth, leaf_.input.dtype == DType::bf16 ? "bf16" : "f16");
    if (watched(fused_)) {
      operands(part, "wide_", kWideDepth, "f32");
      part.symbols[label_("packs")] = packs();
      part.scratch.push_back({{"name", label_("flags")},
                              {"dtype", "i32"},
                              {"shape", {fmt::format("1+{}", label_("packs"))}}});
    }
    for (const std::string& bound :
         {label_("elements"), label_("rows"), last_of_image(fused_), positions()})
      part.requirements.push_back(bound + " <= 2000000000");
    for (size_t i = 0; i < window_.rank(); ++i)
      part.requirements.push_back(fmt::format("{} <= {}", kernel(i), window_.kernel[i]));
    part.symbols[label_("vector")] = vector_rule();
    part.defines[label_("VECTOR")] = label_("vector");
    part.requirements.push_back(fmt::format("{} <= 65535", size(0)));
    if (kept_ > 0) {
      part.requirements.push_back(fmt::format("{} <= {}", out_of_group_text(fused_), tile_n_));
      part.requirements.push_back(fmt::format("{} <= {}", label_("depth"), kept_ * kDepth));
    }
  }

  // Adds the scratch memory for operands of a type. The words begin with `prefix`.
  void operands(ProgramPart& part, const std::string& prefix, int64_t depth,
                const std::string& dtype) const {
    const std::string out = out_of_group_text(fused_), in = in_of_group_text(fused_);
    std::string all = fmt::format("ceil_div({},{})*{}", in, depth, depth);
    for (size_t i = 0; i < window_.rank(); ++i) all += "*(" + kernel(i) + ")";
    part.symbols[label_(prefix + "depth")] = all;
    part.scratch.push_back({{"name", label_(prefix + "packed")},
                            {"dtype", dtype},
                            {"shape", {fmt::format("max({},1)", out), label_(prefix + "depth")}}});
    part.scratch.push_back({{"name", label_(prefix + "turned")},
                            {"dtype", dtype},
                            {"shape",
                             {fmt::format("max({},1)", size(0)),
                              fmt::format("max({},1)", positions()), label_("pitch")}}});
  }

  // Bytes of shared memory that the kernel needs with either type of operands.
  int64_t shared() const {
    return std::max(shared_of(fused_, tile_n_, stages_, kept_),
                    shared_of(fused_, tile_n_, stages_of(fused_, tile_n_, 0), 0));
  }

  // CTAs of the kernel that packs the weights.
  std::string packs() const {
    return fmt::format("min(ceil_div(({})*{},1024),{})", out_of_group_text(fused_), label_("depth"),
                       2 * kSms);
  }

  // The size of an axis of the kernel, as a plan expression.
  std::string kernel(size_t axis) const { return size_text(fused_, leaf_.weight, axis + 2); }

  void maps(ProgramPart& part) const {
    auto some = [](const std::string& size) { return fmt::format("max({},1)", size); };
    Json dims = Json::array({some(label_("pitch"))}), strides = Json::array({"1"}),
         lower = Json::array(), upper = Json::array(), between = Json::array();
    std::string distance = label_("pitch");
    for (size_t i = window_.rank(); i-- > 0;) {  // the last axis comes first
      dims.push_back(some(size(i + 2)));
      strides.push_back(distance);
      distance += fmt::format("*({})", size(i + 2));
      lower.push_back(fmt::format("0-{}", window_.padding[i]));
      upper.push_back(fmt::format("{}-(({})-1)*{}", padding_behind(window_, i), kernel(i),
                                  window_.dilation[i]));
      between.push_back(std::to_string(window_.stride[i]));
    }
    dims.push_back(some(size(0)));
    strides.push_back(distance);
    const Json im2col = {{"lower", lower}, {"upper", upper}, {"steps", between}};
    const std::string suffix = label_.number.empty() ? "" : "_" + label_.number;
    for (const std::string& prefix : prefixes()) {
      part.tensor_maps[label_("map_" + prefix + "input")] = {
          {"tensor", label_(prefix + "turned")},
          {"spec", "cg_map_" + prefix + "input" + suffix},
          {"dims", dims},
          {"strides", strides},
          {"im2col", im2col}};
      part.tensor_maps[label_("map_" + prefix + "weights")] = {
          {"tensor", label_(prefix + "packed")},
          {"spec", "cg_map_" + prefix + "weights" + suffix},
          {"dims", {label_(prefix + "depth"), some(out_of_group_text(fused_))}},
          {"strides", {"1", label_(prefix + "depth")}}};
    }
  }

  // The words of each type of operands begin with these.
  std::vector<std::string> prefixes() const {
    return watched(fused_) ? std::vector<std::string>{"", "wide_"} : std::vector<std::string>{""};
  }

  void steps(ProgramPart& part, const Json& args) const {
    const std::string when = label_("elements") + " > 0";
    auto tensor = [&](const std::string& word) { return Json{{"tensor", label_(word)}}; };
    const Json flag_count = {{"i64", "1+" + label_("packs")}};
    Json pack = Json::array({{{"tensor", fused_.names.at(leaf_.weight.tensor)}}, tensor("packed")});
    if (watched(fused_)) pack.push_back(tensor("wide_packed")), pack.push_back(tensor("flags"));
    for (const Json& number :
         numbers_of(fused_, {"in_of_group", "out_of_group", "kernel0", "kernel1", "kernel2",
                             "weight_o", "weight_i", "weight0", "weight1", "weight2"}))
      pack.push_back(number);
    part.steps.push_back({{"id", label_("pack")},
                          {"kernel", label_("pack")},
                          {"when", when},
                          {"grid", {packs(), 1, 1}},
                          {"block", {256, 1, 1}},
                          {"args", pack}});
    const Json input = {{"tensor", fused_.names.at(leaf_.input.tensor)}};
    const Json numbers = numbers_of(
        fused_, {"in_n", "in_c", "in0", "in1", "in2", "in_s0", "in_s1", "in_s2", "in_of_group"});
    Json turn = Json::array({input, tensor("turned")});
    if (watched(fused_)) turn.push_back(tensor("flags"));
    turn.insert(turn.end(), numbers.begin(), numbers.end());
    turn.push_back({{"i64", label_("pitch")}});
    const std::string tiles =
        fmt::format("ceil_div({},64)*ceil_div({},64)", label_("pitch"), positions());
    part.steps.push_back({{"id", label_("turn")},
                          {"kernel", label_("turn")},
                          {"when", when},
                          {"grid", {tiles, size(0), 1}},
                          {"block", {256, 1, 1}},
                          {"args", turn}});
    if (watched(fused_)) {
      Json wide = Json::array(
          {input, tensor("wide_turned"), tensor("flags"), flag_count, {{"i64", size(0)}}});
      wide.insert(wide.end(), numbers.begin(), numbers.end());
      wide.push_back({{"i64", label_("pitch")}});
      part.steps.push_back(
          {{"id", label_("turn_wide")},
           {"kernel", label_("turn_wide")},
           {"when", when},
           {"grid", {fmt::format("min({}*({}),{})", tiles, size(0), 4 * kSms), 1, 1}},
           {"block", {256, 1, 1}},
           {"args", wide}});
    }
    part.steps.push_back({{"id", label_("window")},
                          {"kernel", label_("window")},
                          {"when", when},
                          {"grid", {fmt::format("min({},{})", label_("tiles"), kSms), 1, 1}},
                          {"block", {kThreadsOfRows, 1, 1}},
                          {"shared_bytes", shared()},
                          {"args", args}});
  }

  const Fused& fused_;
  const Label& label_;
  const WindowLeaf& leaf_;
  const Window& window_;
  int64_t tile_n_, kept_, stages_;
};

class RowsWriter : RowsPlan {
 public:
  RowsWriter(const Task& task, const Fused& fused, const Json& params, const Label& label)
      : RowsPlan(fused, params, label), task_(task) {}

  ProgramPart write() {
    ProgramPart part;
    part.hopper = true;
    part.file = label_("kernel") + ".cu";
    Tail tail(fused_, Tail::By::place);
    auto t = names();
    t["compute"] = tail.compute();
    t["channels"] = indent(tail.channels("tile.n"), 6);
    t["write"] = indent(write_text(tail, "tile", false), 6);
    for (const auto& [word, value] : tail.offsets()) {
      t["offsets"] += ", " + word;
      t["places"] += ",\n                     " + value;
    }
    t["offsets"].erase(0, 2);
    for (const auto& [word, value] : tail.constants()) {
      const std::string define = label_("STRIDE_" + word);
      t["constants"] += fmt::format("      constexpr int64_t {} = {};\n", word, define);
      part.defines[define] = value;
    }
    Json args = Json::array({{{"map", label_("map_input")}}, {{"map", label_("map_weights")}}});
    if (watched(fused_)) {
      for (const char* word : {"map_wide_input", "map_wide_weights"})
        args.push_back({{"map", label_(word)}});
      args.push_back({{"tensor", label_("flags")}});
      args.push_back({{"i64", "1+" + label_("packs")}});
    }
    t["params"] = tail.declare(args);
    Numbers numbers = tail.numbers();
    const Numbers more = geometry(fused_);
    numbers.insert(numbers.end(), more.begin(), more.end());
    t["sizes"] = add_numbers(args, numbers) + size_declarations(fused_);
    add_sizes(args, fused_);
    t["turn_kernel"] = turn_text(t, "rows_turn");
    if (watched(fused_)) t["turn_kernel"] += turn_text(t, "rows_turn_wide");
    part.source = fill("kernels/windows/rows.cu", t);
    for (const std::string& demand : tail.requirements()) part.requirements.push_back(demand);
    for (const std::string& demand : fixed_sizes(fused_)) part.requirements.push_back(demand);
    symbols(part);
    maps(part);
    steps(part, args);
    return part;
  }

 private:
  std::map<std::string, std::string> names() const {
    std::map<std::string, std::string> t;
    t["title"] = title(task_, fused_);
    t["name"] = label_("window"), t["pack"] = label_("pack"), t["turn"] = label_("turn");
    t["geometry"] = label_("Geometry"), t["engine"] = label_("Engine");
    t["wide_geometry"] = label_("WideGeometry"), t["wide_engine"] = label_("WideEngine");
    t["turn_wide"] = label_("turn_wide");
    t["input"] = fused_.names.at(leaf_.input.tensor), t["input_type"] = type_of(leaf_.input);
    t["weight"] = fused_.names.at(leaf_.weight.tensor), t["weight_type"] = type_of(leaf_.weight);
    t["packed_type"] = t["element"] = watched(fused_) ? "half_t" : type_of(leaf_.input);
    t["tile_n"] = std::to_string(tile_n_), t["stages"] = std::to_string(stages_);
    t["rank"] = std::to_string(window_.rank());
    t["channel_values"] = std::to_string(channel_values(fused_).size());
    t["shared"] = std::to_string(shared());
    t["kept"] = std::to_string(kept_);
    t["vector"] = label_("VECTOR");
    for (size_t i = 0; i < 3; ++i) {
      const std::string axis = std::to_string(i);
      t["stride" + axis] = std::to_string(padded(window_.stride, i, 1));
      t["padding" + axis] = std::to_string(padded(window_.padding, i, 0));
      t["dilation" + axis] = std::to_string(padded(window_.dilation, i, 1));
    }
    t["geometries"] = fragment("kernels/windows/rows_geometry.cu", t);
    t["maps"] = map_constants("", kDepth, 16);
    t["watched"] = watched(fused_) ? "true" : "false";
    t["wide_params"] = t["pack_params"] = t["flags_param"] = t["turn_report"] = "";
    t["pack_body"] = pack_call(t, "", "");
    t["run"] = run_call(t, "", 2);
    if (watched(fused_)) watch(t);
    return t;
  }

  // The texts for values that half precision does not represent.
  void watch(std::map<std::string, std::string>& t) const {
    auto wide = t;
    wide["geometry"] = t["wide_geometry"], wide["engine"] = t["wide_engine"];
    wide["element"] = "tfloat32_t";
    wide["kept"] = "0", wide["stages"] = std::to_string(stages_of(fused_, tile_n_, 0));
    t["geometries"] += fragment("kernels/windows/rows_geometry.cu", wide);
    t["maps"] += map_constants("wide_", kWideDepth, 32);
    t["wide_params"] =
        "\n       const __grid_constant__ TmaDescriptor map_wide_input,"
        "\n       const __grid_constant__ TmaDescriptor map_wide_weights,"
        "\n       const int* __restrict__ flags, int64_t flag_count,";
    t["pack_params"] = " float* __restrict__ wide_packed, int* __restrict__ flags,";
    t["flags_param"] = " int* __restrict__ flags,";
    t["turn_report"] = "\n  if (!fits) atomicOr(flags, 1);";
    t["pack_body"] = "  const bool fits = " + pack_call(t, "", "").substr(2) +
                     pack_call(t, "wide_", "\n") +
                     "\n  const int set = __syncthreads_or(!fits);"
                     "\n  if (threadIdx.x == 0) flags[1 + blockIdx.x] = set;"
                     "\n  if (threadIdx.x == 0 && blockIdx.x == 0) flags[0] = 0;";
    t["run"] = "  if (cutegen::any_flag(flags, flag_count)) {\n" + run_call(t, "wide_", 4) +
               "\n  } else {\n" + run_call(t, "", 4) + "\n  }";
  }

  std::string pack_call(const std::map<std::string, std::string>& t, const std::string& prefix,
                        const std::string& before) const {
    return fmt::format(
        "{}  cutegen::pack_weights<{}, {}>(kernel, int(in_of_group), out_of_group, read, "
        "{}packed);",
        before, t.at(prefix + "engine"), prefix.empty() && watched(fused_) ? "true" : "false",
        prefix);
  }

  static std::string run_call(const std::map<std::string, std::string>& t,
                              const std::string& prefix, int spaces) {
    return indent(fmt::format("convolve({}{{}}, map_{}input, map_{}weights);",
                              t.at(prefix + "engine"), prefix, prefix),
                  spaces);
  }

  // cutegen::tma_spec: version, rank, box[5], mode[5], bits of an element, swizzle of 128 bytes.
  std::string map_constants(const std::string& prefix, int64_t depth, int bits) const {
    std::string modes, boxes;
    for (size_t i = 0; i < 5; ++i) {
      modes += fmt::format("{}, ", i < window_.rank() + 2 ? i : 0);
      boxes += fmt::format("{}, ", i == 0                   ? depth
                                   : i == 1                 ? kTileRows
                                   : i < window_.rank() + 2 ? 1
                                                            : 0);
    }
    const std::string suffix = label_.number.empty() ? "" : "_" + label_.number;
    return fmt::format(
        "extern \"C\" __device__ const unsigned cg_map_{7}input{0}[15] = {{1, {1}, {2}{3}{4}, 3, "
        "4}};\n"
        "extern \"C\" __device__ const unsigned cg_map_{7}weights{0}[15] = "
        "{{1, 2, {5}, {6}, 0, 0, 0, 0, 1, 0, 0, 0, {4}, 3, 4}};\n",
        suffix, window_.rank() + 2, boxes, modes, bits, depth, tile_n_, prefix);
  }

  std::string turn_text(const std::map<std::string, std::string>& t,
                        const std::string& file) const {
    const std::string text = fill("kernels/windows/" + file + ".cu", t);
    return text.substr(text.find("\n\n") + 1);  // without the template's heading
  }

  const Task& task_;
};

}  // namespace

bool rows_apply(const Fused& fused) {
  const WindowLeaf& leaf = *fused.window;
  const Window& w = leaf.window;
  return leaf.wgmma == 1 && w.kind == WindowKind::convolution && w.groups == 1 &&
         !fused.reduces() && input_channels(fused) >= kFewestChannels && fits_map(w);
}

bool rows_faster(const Fused& fused) {
  const int64_t channels = input_channels(fused);
  const bool pays = channels % kDepth == 0 &&
                    channels * product(fused.window->window.kernel) >= kFewestOfFloats &&
                    channel_values(fused).size() <= kMostValuesOfFloats;
  return (halves(fused) || pays) && rows_seconds(fused, best_tile(fused)) < implicit_seconds(fused);
}

Json rows_safe(const Fused& fused) {
  const int64_t tile_n = best_tile(fused);
  // Measured on an H200: the kernel takes 0.93 to 1.03 of the time with tiles of 128 channels, 1.05
  // with 64.
  return {{"rows_n", tile_n}, {"rows_keep", tile_n == 128 && can_keep(fused, tile_n) ? 1 : 0}};
}

bool rows_legal(const Fused& fused, const Json& params) {
  const int64_t tile_n = int_param(params, "rows_n");
  const int64_t kept = kept_of(fused, params), stages = stages_of(fused, tile_n, kept);
  return rows_apply(fused) && stages >= 3 && (kept == 0 || can_keep(fused, tile_n)) &&
         shared_of(fused, tile_n, stages, kept) <= kMostSharedRows;
}

std::vector<RecipeParameter> rows_parameters(const Fused& fused) {
  std::vector<int64_t> widths{best_tile(fused)};
  for (int64_t width : {128, 96, 64, 32})
    if (width != widths[0]) widths.push_back(width);
  return {
      {.name = "by_rows",
       .meaning = "1: make the input channels-last and multiply its rows of channels",
       .legal = {1, 0}},
      {.name = "rows_n", .meaning = "output channels of a tile, if by_rows is 1", .legal = widths},
      {.name = "rows_keep",
       .meaning = "1: weights stay in shared memory, if by_rows is 1",
       .legal = {1, 0}}};
}

ProgramPart rows_part(const Task& task, const Fused& fused, const Json& params,
                      const Label& label) {
  return RowsWriter(task, fused, params, label).write();
}

}  // namespace cutegen::recipes
