// SPDX-License-Identifier: Apache-2.0
#include "recipes/windows/window_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "recipes/fuse/extents.h"
#include "recipes/graph/reshape.h"
#include "recipes/nest/channel_values.h"
#include "recipes/nest/windowed.h"
#include "recipes/windows/rows_cost.h"
#include "recipes/windows/rows_layout.h"
#include "recipes/windows/rows_phases.h"
#include "recipes/windows/window_implicit.h"
#include "recipes/windows/window_text.h"

namespace cutegen::recipes {
namespace {

constexpr int64_t kThreadsOfRows = 384;
constexpr int64_t kMostTaps = 9;        // of a patch; the kernel unrolls them unless it uses pairs
constexpr int64_t kMostPhaseTaps = 32;  // of all patches; phases have a bit for each
constexpr int64_t kMostCounted = 2'000'000'000;
constexpr int64_t kCopiers = 16;                       // CTAs per SM that copy the input
constexpr int64_t kTurnedElements = int64_t{64} * 64;  // of a tile of the input that a CTA copies
constexpr int64_t kMostStride = 8;       // the driver's limit for steps between pixels
constexpr int64_t kFewestChannels = 24;  // fewer input channels would leave most of a step empty
// Products per result for which the copy of floats pays. Measured on an H200: 576 and 2,240
// products take 0.6 to 0.98 of the other kernel's time, 192 take 1.03 to 2.5.
constexpr int64_t kFewestOfFloats = 512;

// Whether a value that half precision does not represent makes the kernel multiply floats.
bool watched(const Fused& fused) {
  return !multiplies_halves(fused) && !rows_in_pairs(fused);
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

bool params_legal(const Fused& fused, const Json& params) {
  const RowsLayout l = rows_layout(fused, params, false);
  const Window w = rows_window(fused);
  const bool unit = std::all_of(w.stride.begin(), w.stride.end(), [](int64_t s) { return s == 1; });
  const int64_t taps = product(w.kernel) / planes_of_taps(fused);
  const bool phased = count_of(l.phases) > 1, few = taps <= kMostTaps || l.parts > 1;
  if (phased && (!l.patched() || l.kept > 0 || product(w.kernel) > kMostPhaseTaps)) return false;
  if (l.spread > 1 && (l.slice == 0 || l.tile_n % l.spread != 0 || l.channels() % 32 != 0))
    return false;
  if (fused.reduces() && l.channels() < fused.axes[1].size) return false;
  if (l.tile_n > most_columns(fused)) return false;
  if (l.parts > 1 && (!l.patched() || l.kept > 0)) return false;
  return l.fits() && (!l.patched() || (unit && few)) &&
         (l.kept == 0 || fused.axes[1].size <= l.tile_n) &&
         (!watched(fused) || rows_layout(fused, params, true).fits());
}

// The exponent of the power of two by which the program multiplies weights before it divides them
// into pairs. Weights usually have magnitudes up to 1 / sqrt(products of a result). Multiplied,
// they lie in the middle of the range in which pairs are accurate (cutegen/conv_rows.cuh).
int scale_exponent(const Fused& fused) {
  constexpr int kMiddle = 3;  // 2^3 lies between 2^-9 and 2^15
  const int64_t products = rows_channels(fused) * product(fused.window->window.kernel);
  return int(std::lround(std::log2(double(products)) / 2)) + kMiddle;
}

// The layouts that the kernel supports, the fastest first.
std::vector<Json> layouts(const Fused& fused) {
  std::vector<Json> all;
  for (int64_t patch : {256, 128, 0})
    for (int64_t across : {64, 8, 1})  // of equal estimates, the first is faster
      for (int64_t tile_n : {128, 96, 64, 32})
        for (int64_t keep : {1, 0}) {
          const Json params = {{"rows_n", tile_n},
                               {"rows_keep", keep},
                               {"rows_patch", patch},
                               {"rows_across", across}};
          if ((patch > 0 || across == 8) && params_legal(fused, params)) all.push_back(params);
        }
  std::vector<std::pair<double, size_t>> order;
  order.reserve(all.size());
  for (size_t i = 0; i < all.size(); ++i) order.emplace_back(rows_seconds(fused, all[i]), i);
  std::stable_sort(order.begin(), order.end());
  std::vector<Json> sorted;
  sorted.reserve(all.size());
  for (const auto& [seconds, i] : order) sorted.push_back(all[i]);
  return sorted;
}

// Whether 32-bit indices count the results at the shape in the task file.
bool counts_results(const Fused& fused) {
  double results = 1;
  for (const Axis& axis : fused.axes) results *= double(axis.size);
  return results <= double(kMostCounted);
}

// Whether the other kernel can compute the results if pairs are too inaccurate.
bool computes_the_rest(const Fused& fused) {
  return implicit_legal(fused, implicit_safe(fused));
}

// Chooses the numbers of the geometry that a small kernel takes.
Json numbers_of(const Fused& fused, const std::vector<std::string>& words) {
  Json args = Json::array();
  for (const std::string& wanted : words)
    for (const auto& [word, expression] : geometry(fused))
      if (word == wanted) args.push_back({{"i64", expression}});
  return args;
}

// The sizes of weights and input that the kernel `arrange` needs.
const std::vector<std::string> kWeightSizes{"in_of_group", "out_of_group", "kernel0",  "kernel1",
                                            "kernel2",     "weight_o",     "weight_i", "weight0",
                                            "weight1",     "weight2"},
    kInputSizes{"in_n", "in_c", "in0", "in1", "in2", "in_s0", "in_s1", "in_s2"};

// The sizes of a phase of the result on three axes, as plan expressions.
std::vector<std::string> sizes_of_phase(const Fused& fused) {
  const Phases phases = rows_phases(fused);
  std::vector<std::string> sizes(3, "1");
  for (size_t i = 2; i < fused.axes.size(); ++i) {
    const size_t axis = 3 - fused.axes.size() + i;
    const std::string& extent = fused.axes[i].extent;
    sizes[axis] = phases[axis] == 1 ? extent : fmt::format("ceil_div({},{})", extent, phases[axis]);
  }
  return sizes;
}

// The input's positions, as a plan expression.
std::string positions_of(const Fused& fused) {
  std::string text;
  for (size_t i = 0; i < fused.window->window.rank(); ++i)
    text += fmt::format("{}({})", i ? "*" : "", size_text(fused, fused.window->input, i + 2));
  return text;
}

// The width of the turning kernel's loads: several positions if they are contiguous and aligned.
std::string vector_rule(const Fused& fused) {
  const WindowLeaf& leaf = *fused.window;
  auto step = [&](size_t axis) { return stride_text(fused, leaf.input, axis); };
  std::string distance = "1", apart;
  for (size_t i = leaf.window.rank() + 1; i >= 2; --i) {
    const std::string size = size_text(fused, leaf.input, i);
    apart += fmt::format("{}(({}) == {} ? 0 : 1)", apart.empty() ? "" : "+", step(i), distance);
    distance = distance == "1" ? fmt::format("({})", size) : fmt::format("{}*({})", distance, size);
  }
  std::string rule = "1";
  for (int64_t vector = 2; vector <= 16 / int64_t(size_of(leaf.input.dtype)); vector *= 2) {
    std::string rest = fmt::format("{4}+({0})%{3}+({1})%{3}+({2})%{3}", step(0), step(1),
                                   positions_of(fused), vector, apart);
    if (const std::string start = start_text(fused, leaf.input); start != "0")
      rest += fmt::format("+({})%{}", start, vector);
    rule = fmt::format("{} == 0 ? {} : {}", rest, vector, rule);
  }
  return rule;
}

// The size of an axis of the kernel, as a plan expression.
std::string kernel_size(const Fused& fused, size_t axis) {
  return size_text(fused, fused.window->weight, axis + 2);
}

// The corners and steps of a tensor map in im2col mode. The last axis comes first.
Json im2col_of(const Fused& fused, const Window& window) {
  Json lower = Json::array(), upper = Json::array(), between = Json::array();
  for (size_t i = window.rank(); i-- > 0;) {
    lower.push_back(fmt::format("0-{}", window.padding[i]));
    upper.push_back(fmt::format("{}-(({})-1)*{}", padding_behind(window, i), kernel_size(fused, i),
                                window.dilation[i]));
    between.push_back(std::to_string(window.stride[i]));
  }
  return {{"lower", lower}, {"upper", upper}, {"steps", between}};
}

// The launches of the program: sizes, tensor maps and steps, as plan expressions.
class RowsPlan {
 public:
  RowsPlan(const Fused& fused, const Json& params, const Label& label)
      : fused_(fused),
        label_(label),
        leaf_(*fused.window),
        window_(rows_window(fused)),
        layout_(rows_layout(fused, params, false)),
        wide_(rows_layout(fused, params, true)) {}

 protected:
  std::string size(size_t axis) const { return size_text(fused_, leaf_.input, axis); }
  std::string step(size_t axis) const { return stride_text(fused_, leaf_.input, axis); }

  void symbols(ProgramPart& part) const {
    const std::vector<std::string> sizes = sizes_of_phase(fused_);
    std::string rows = size(0);
    for (size_t i = 3 - window_.rank(); i < 3; ++i) rows += "*(" + sizes[i] + ")";
    const std::string out = out_of_group_text(fused_), in = in_of_group_text(fused_);
    part.symbols[label_("rows")] = rows;
    part.symbols[label_("elements")] = fmt::format("{}*{}", label_("rows"), filters());
    part.symbols[label_("tiles")] =
        fmt::format("{}*ceil_div({},{}){}", layout_.tiles(size(0), sizes, label_("rows")), out,
                    layout_.channels(),
                    layout_.tile_phases() == 1 ? "" : fmt::format("*{}", layout_.tile_phases()));
    part.symbols[label_("pitch")] =
        layout_.joined ? std::to_string(kRowsDepth / 2) : fmt::format("ceil_div({},8)*8", in);
    if (layout_.joined) part.requirements.push_back(fmt::format("{} <= {}", in, kRowsDepth / 2));
    operands(part, "", kRowsDepth, leaf_.input.dtype == DType::bf16 ? "bf16" : "f16");
    if (watched(fused_)) operands(part, "wide_", kWideRowsDepth, "f32");
    if (flagged())
      part.scratch.push_back(
          {{"name", label_("flags")}, {"dtype", "i32"}, {"shape", {label_("arrangers")}}});
    part.symbols[label_("packs")] = packs();
    part.symbols[label_("turns")] =
        fmt::format("({})*ceil_div({},{})*ceil_div({},{})", size(0), label_("pitch"), turned(),
                    positions_of(fused_), kTurnedElements / turned());
    part.symbols[label_("arrangers")] =
        fmt::format("{}+min({},{})", label_("packs"), label_("turns"), kCopiers * kSms);
    for (const std::string& bound :
         {label_("elements"), label_("rows"), last_of_image(fused_), positions_of(fused_)})
      part.requirements.push_back(fmt::format("{} <= {}", bound, kMostCounted));
    for (size_t i = 0; i < window_.rank(); ++i)
      part.requirements.push_back(
          fmt::format("{} {} {}", kernel_size(fused_, i),
                      layout_.patched() ? "==" : "<=", leaf_.window.kernel[i]));
    if (may_pair()) part.defines[label_("PAIRS")] = misaligned_pairs(fused_);
    part.symbols[label_("vector")] = vector_rule(fused_);
    part.defines[label_("VECTOR")] = label_("vector");
    // Weights that stay in shared memory, and reductions, need all channels in one tile.
    if (layout_.kept > 0 || fused_.reduces())
      part.requirements.push_back(fmt::format("{} <= {}", out, layout_.channels()));
    if (layout_.kept > 0)
      part.requirements.push_back(
          fmt::format("{} <= {}", label_("depth"), layout_.kept * kRowsDepth));
  }

  // Adds the scratch memory for operands of a type. The words begin with `prefix`.
  void operands(ProgramPart& part, const std::string& prefix, int64_t depth,
                const std::string& dtype) const {
    std::string all = fmt::format("ceil_div({},{})*{}", in_of_group_text(fused_), depth, depth);
    for (size_t i = 0; i < window_.rank(); ++i)
      all += phased() ? fmt::format("*{}", window_.kernel[i]) : "*(" + kernel_size(fused_, i) + ")";
    part.symbols[label_(prefix + "depth")] = all;
    part.scratch.push_back(
        {{"name", label_(prefix + "packed")},
         {"dtype", dtype},
         {"shape", {fmt::format("max({},1)", filters()), loads_of(label_(prefix + "depth"))}}});
    part.scratch.push_back(
        {{"name", label_(prefix + "turned")},
         {"dtype", dtype},
         {"shape",
          {fmt::format("max({},1)", size(0)), fmt::format("max({},1)", positions_of(fused_)),
           parts_of(label_("pitch"))}}});
  }

  // The size of an axis that holds all parts of an operand, as a plan expression.
  std::string parts_of(const std::string& size) const {
    return layout_.parts == 1 ? size : fmt::format("{}*{}", layout_.parts, size);
  }

  // Channels of a tile of the input that the first kernel copies.
  int64_t turned() const { return layout_.joined ? kRowsDepth / 2 : 64; }

  std::string loads_of(const std::string& size) const {
    return layout_.loads() == 1 ? size : parts_of(size);
  }

  // Whether the first kernel sets a flag if half precision does not represent a value.
  bool flagged() const { return !multiplies_halves(fused_); }

  // Bytes of shared memory that the kernel needs with either type of operands.
  int64_t shared() const {
    return watched(fused_) ? std::max(layout_.shared(), wide_.shared()) : layout_.shared();
  }

  // CTAs of the kernel that packs the weights.
  std::string packs() const {
    return fmt::format("min(ceil_div({}*{},1024),{})", filters(), label_("depth"), 4 * kSms);
  }

  bool phased() const { return count_of(layout_.phases) > 1; }

  // The rows of the packed weights, as a plan expression.
  std::string filters() const {
    const std::string out = out_of_group_text(fused_);
    return phased() ? fmt::format("{}*ceil_div({},{})", layout_.tile_phases() * layout_.tile_n, out,
                                  layout_.channels())
                    : "(" + out + ")";
  }

  // Whether threads hold pairs of neighbouring results and may store them at once.
  bool may_pair() const { return layout_.spread == 2 && layout_.slice > 0 && along_last(fused_); }

  void maps(ProgramPart& part) const {
    auto some = [](const std::string& size) { return fmt::format("max({},1)", size); };
    const std::string pitch = parts_of(label_("pitch"));
    Json dims = Json::array({some(pitch)}), strides = Json::array({"1"});
    std::string distance = pitch;
    for (size_t i = window_.rank(); i-- > 0;) {  // the last axis comes first
      dims.push_back(some(size(i + 2)));
      strides.push_back(distance);
      distance += fmt::format("*({})", size(i + 2));
    }
    dims.push_back(some(size(0)));
    strides.push_back(distance);
    Json input = {{"dims", dims}, {"strides", strides}};
    if (!layout_.patched()) input["im2col"] = im2col_of(fused_, window_);
    const std::string suffix = label_.number.empty() ? "" : "_" + label_.number;
    for (const std::string& prefix : prefixes()) {
      const auto spec = [&](const char* of) {
        return fmt::format("cg_map_{}{}{}", prefix, of, suffix);
      };
      input["tensor"] = label_(prefix + "turned");
      input["spec"] = spec("input");
      part.tensor_maps[label_("map_" + prefix + "input")] = input;
      part.tensor_maps[label_("map_" + prefix + "weights")] = {
          {"tensor", label_(prefix + "packed")},
          {"spec", spec("weights")},
          {"dims", {loads_of(label_(prefix + "depth")), some(filters())}},
          {"strides", {"1", loads_of(label_(prefix + "depth"))}}};
    }
  }

  // The words of each type of operands begin with these.
  std::vector<std::string> prefixes() const {
    return watched(fused_) ? std::vector<std::string>{"", "wide_"} : std::vector<std::string>{""};
  }

  void steps(ProgramPart& part, const Json& args) const {
    const std::string when = label_("elements") + " > 0";
    auto tensor = [&](const std::string& word) { return Json{{"tensor", label_(word)}}; };
    const Json weight = {{"tensor", fused_.names.at(leaf_.weight.tensor)}},
               input = {{"tensor", fused_.names.at(leaf_.input.tensor)}};
    Json sizes = numbers_of(fused_, kWeightSizes);
    for (const Json& number : numbers_of(fused_, kInputSizes)) sizes.push_back(number);
    sizes.push_back({{"i64", label_("pitch")}});
    Json halves = Json::array({weight, tensor("packed"), input, tensor("turned")});
    if (flagged()) halves.push_back(tensor("flags"));
    for (const char* count : {"packs", "turns"}) halves.push_back({{"i64", label_(count)}});
    halves.insert(halves.end(), sizes.begin(), sizes.end());
    part.steps.push_back({{"id", label_("arrange")},
                          {"kernel", label_("arrange")},
                          {"when", when},
                          {"grid", {label_("arrangers"), 1, 1}},
                          {"block", {256, 1, 1}},
                          {"args", halves}});
    if (watched(fused_)) {
      Json wide = Json::array({weight,
                               tensor("wide_packed"),
                               input,
                               tensor("wide_turned"),
                               tensor("flags"),
                               {{"i64", label_("arrangers")}},
                               {{"i64", label_("turns")}}});
      wide.insert(wide.end(), sizes.begin(), sizes.end());
      part.steps.push_back({{"id", label_("arrange_wide")},
                            {"kernel", label_("arrange_wide")},
                            {"when", when},
                            {"grid", {fmt::format("min({},{})", label_("turns"), 4 * kSms), 1, 1}},
                            {"block", {256, 1, 1}},
                            {"pdl", true},
                            {"args", wide}});
    }
    part.steps.push_back({{"id", label_("window")},
                          {"kernel", label_("window")},
                          {"when", when},
                          {"grid", {fmt::format("min({},{})", label_("tiles"), kSms), 1, 1}},
                          {"block", {kThreadsOfRows, 1, 1}},
                          {"shared_bytes", shared()},
                          {"pdl", true},
                          {"args", args}});
  }

  const Fused& fused_;
  const Label& label_;
  const WindowLeaf& leaf_;
  Window window_;
  RowsLayout layout_, wide_;
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
    wait(t);
    t["compute"] = tail.compute();
    t["channels"] = indent(tail.channels("tile.n"), 6);
    const std::string of = "storage, window, batches, tile";
    t["passes"] = indent(tail.passes(of), 6);
    t["write"] = indent(write_text(tail, of, may_pair()), 6);
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
    }
    if (flagged()) {
      args.push_back({{"tensor", label_("flags")}});
      args.push_back({{"i64", label_("arrangers")}});
    }
    t["params"] = tail.declare(args);
    Numbers numbers = tail.numbers();
    const Numbers more = geometry(fused_);
    numbers.insert(numbers.end(), more.begin(), more.end());
    t["sizes"] = add_numbers(args, numbers) + size_declarations(fused_);
    add_sizes(args, fused_);
    if (watched(fused_)) t["arrange_wide"] = wide_text(t);
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
    t["name"] = label_("window"), t["arrange"] = label_("arrange");
    t["arrange_wide_name"] = label_("arrange_wide");
    t["geometry"] = label_("Geometry"), t["engine"] = label_("Engine");
    t["wide_geometry"] = label_("WideGeometry"), t["wide_engine"] = label_("WideEngine");
    t["input"] = fused_.names.at(leaf_.input.tensor), t["input_type"] = type_of(leaf_.input);
    t["weight"] = fused_.names.at(leaf_.weight.tensor), t["weight_type"] = type_of(leaf_.weight);
    t["packed_type"] = t["element"] = flagged() ? "half_t" : type_of(leaf_.input);
    t["shared_element"] = rows_in_pairs(fused_) ? "float" : "Element";
    t["pitch"] = layout_.parts == 1 ? "pitch" : fmt::format("({} * pitch)", layout_.parts);
    t["header"] = layout_.patched() ? "conv_patches" : "conv_rows";
    t["loads"] = layout_.patched() ? "the input of each tile" : "the input of each filter tap";
    t["rank"] = std::to_string(window_.rank()), t["turned"] = std::to_string(turned());
    t["channel_values"] = std::to_string(channel_values(fused_).size());
    t["row_values"] = std::to_string(row_reductions(fused_).size());
    t["shared"] = std::to_string(shared());
    t["vector"] = label_("VECTOR");
    t["turn"] =
        multiplies_halves(fused_) ? "cutegen::TurnedHalves<Element, kVector>"
        : rows_in_pairs(fused_)
            ? fmt::format("cutegen::TurnedPairs<kVector, {}, {}>", type_of(leaf_.input), turned())
            : fmt::format("cutegen::TurnedTile<Element, kVector, Watched, {}>",
                          type_of(leaf_.input));
    for (size_t i = 0; i < 3; ++i) {
      const std::string axis = std::to_string(i);
      t["stride" + axis] = std::to_string(padded(window_.stride, i, 1));
      t["kernel" + axis] = std::to_string(padded(window_.kernel, i, 1));
      t["padding" + axis] = std::to_string(padded(window_.padding, i, 0));
      t["dilation" + axis] = std::to_string(padded(window_.dilation, i, 1));
    }
    put_phase_texts(t, fused_, layout_.tile_n, may_pair() ? label_("PAIRS") + " == 0" : "false");
    t["geometries"] = geometry_text(t, layout_);
    t["maps"] = map_constants("", kRowsDepth, 16);
    t["watched"] = watched(fused_) ? "true" : "false";
    t["wide_params"] = t["flags_param"] = t["arrange_report"] = t["arrange_wide"] = t["leave"] = "";
    t["weight_list"] = join(kWeightSizes, ", ");
    t["input_list"] = join(kInputSizes, ", ") + ", in_of_group, pitch";
    t["arrange_sizes"] = "int64_t " + join(kWeightSizes, ", int64_t ") + ",\n       int64_t " +
                         join(kInputSizes, ", int64_t ") + ", int64_t pitch";
    t["run"] = run_call(t, "", 2);
    if (flagged()) report(t);
    if (watched(fused_)) watch(t);
    return t;
  }

  // All threads read flags. Otherwise, only producers read results of the earlier kernel.
  void wait(std::map<std::string, std::string>& t) const {
    const std::string await = "cutegen::await_previous_step();\n";
    t["await"] = flagged() ? "  " + await : "";
    t["producers_await"] = flagged() ? "" : "      " + await;
  }

  std::string geometry_text(std::map<std::string, std::string> t, const RowsLayout& l) const {
    t["parts"] = std::to_string(l.parts), t["joined"] = l.joined ? "true" : "false";
    t["scale"] = l.parts == 1 ? ""
                              : fmt::format(
                                    "  static constexpr float kScale = 0x1p{}f;  // weights are "
                                    "multiplied by it\n",
                                    scale_exponent(fused_));
    t["tile_m"] = std::to_string(l.tile_m), t["tile_n"] = std::to_string(l.tile_n);
    t["stages"] = std::to_string(l.stages), t["kept"] = std::to_string(l.kept);
    t["slice"] = std::to_string(l.slice);
    t["strip"] = std::to_string(l.strip);
    t["across"] = std::to_string(l.across), t["patches"] = std::to_string(l.patches);
    return fragment(
        l.patched() ? "kernels/windows/patches_geometry.cu" : "kernels/windows/rows_geometry.cu",
        t);
  }

  // The texts for flags.
  void report(std::map<std::string, std::string>& t) const {
    t["flags_param"] = " int* __restrict__ flags,";
    t["arrange_report"] =
        "\n  const int set = __syncthreads_or(!fits);"
        "\n  if (threadIdx.x == 0) flags[blockIdx.x] = set;";
    if (watched(fused_)) return;
    t["wide_params"] = "\n       const int* __restrict__ flags, int64_t flag_count,";
    t["leave"] =
        "  // If pairs are too inaccurate, a later kernel computes the results.\n"
        "  if (cutegen::any_flag(flags, flag_count)) return;\n";
  }

  // The texts for values that half precision does not represent in tf32.
  void watch(std::map<std::string, std::string>& t) const {
    auto wide = t;
    wide["geometry"] = t["wide_geometry"], wide["engine"] = t["wide_engine"];
    wide["element"] = "tfloat32_t";
    t["geometries"] += geometry_text(wide, wide_);
    t["maps"] += map_constants("wide_", kWideRowsDepth, 32);
    t["wide_params"] =
        "\n       const __grid_constant__ TmaDescriptor map_wide_input,"
        "\n       const __grid_constant__ TmaDescriptor map_wide_weights,"
        "\n       const int* __restrict__ flags, int64_t flag_count,";
    t["run"] = "  if (cutegen::any_flag(flags, flag_count)) {\n" + run_call(t, "wide_", 4) +
               "\n  } else {\n" + run_call(t, "", 4) + "\n  }";
  }

  static std::string run_call(const std::map<std::string, std::string>& t,
                              const std::string& prefix, int spaces) {
    return indent(fmt::format("convolve({}{{}}, map_{}input, map_{}weights);",
                              t.at(prefix + "engine"), prefix, prefix),
                  spaces);
  }

  // cutegen::tma_spec: version, rank, box[5], mode[5], bits of an element, swizzle of 128 bytes.
  std::string map_constants(const std::string& prefix, int64_t depth, int bits) const {
    std::vector<int64_t> box{depth, layout_.tile_m};
    if (layout_.patched()) box = {depth, layout_.columns(), layout_.lines()};
    box.resize(window_.rank() + 2, 1);
    if (layout_.patched() && window_.rank() == 1) box[2] = 1;
    std::string modes, boxes;
    for (size_t i = 0; i < 5; ++i) {
      modes += fmt::format("{}, ", i < box.size() ? i : 0);
      boxes += fmt::format("{}, ", i < box.size() ? box[i] : 0);
    }
    const std::string suffix = label_.number.empty() ? "" : "_" + label_.number;
    return fmt::format(
        "extern \"C\" __device__ const unsigned cg_map_{7}input{0}[15] = {{1, {1}, {2}{3}{4}, 3, "
        "4}};\n"
        "extern \"C\" __device__ const unsigned cg_map_{7}weights{0}[15] = "
        "{{1, 2, {5}, {6}, 0, 0, 0, 0, 1, 0, 0, 0, {4}, 3, 4}};\n",
        suffix, window_.rank() + 2, boxes, modes, bits, depth, layout_.tile_n, prefix);
  }

  static std::string wide_text(const std::map<std::string, std::string>& t) {
    const std::string text = fill("kernels/windows/rows_wide.cu", t);
    return text.substr(text.find("\n\n") + 1);  // without the template's heading
  }

  const Task& task_;
};

}  // namespace

bool rows_apply(const Fused& fused) {
  const Window w = rows_window(fused);
  if (fused.window->wgmma == 0 || w.kind != WindowKind::convolution || w.groups != 1 ||
      rows_channels(fused) < kFewestChannels || !fits_map(w) || !counts_results(fused))
    return false;
  return !layouts(fused).empty() && (!rows_in_pairs(fused) || computes_the_rest(fused));
}

bool rows_faster(const Fused& fused) {
  const int64_t channels = rows_channels(fused);
  // The input of a strided transposed convolution is small, so copying it takes less time.
  const int64_t small = count_of(rows_phases(fused)) > 1 && !fused.reduces() ? 2 : 1;
  const bool pays = channels * small % kRowsDepth == 0 &&
                    channels * small * product(fused.window->window.kernel) >= kFewestOfFloats;
  return (!watched(fused) || pays) &&
         rows_seconds(fused, rows_safe(fused)) < implicit_seconds(fused);
}

Json rows_safe(const Fused& fused) {
  return layouts(fused).front();
}

bool rows_legal(const Fused& fused, const Json& params) {
  return rows_apply(fused) && params_legal(fused, params) &&
         (!rows_in_pairs(fused) || implicit_legal(fused, params));
}

std::vector<RecipeParameter> rows_parameters(const Fused& fused) {
  const std::vector<Json> all = layouts(fused);
  // The values of a parameter, in the order of the layouts.
  auto values = [&](const std::string& name) {
    std::vector<int64_t> list;
    for (const Json& params : all)
      if (const auto value = params.at(name).get<int64_t>();
          std::find(list.begin(), list.end(), value) == list.end())
        list.push_back(value);
    return list;
  };
  return {
      {.name = "by_rows",
       .meaning = "1: make the input channels-last and multiply its rows of channels",
       .legal = {1, 0}},
      {.name = "rows_patch",
       .meaning = "positions of a tile whose input stays in shared memory for all filter taps; 0: "
                  "load the input of each tap, if by_rows is 1",
       .legal = values("rows_patch")},
      {.name = "rows_across",
       .meaning = "neighbouring positions of a block of 64, if rows_patch is not 0; 1: tiles join "
                  "lines",
       .legal = values("rows_across")},
      {.name = "rows_n",
       .meaning = "output channels of a tile, if by_rows is 1",
       .legal = values("rows_n")},
      {.name = "rows_keep",
       .meaning = "1: weights stay in shared memory, if by_rows is 1",
       .legal = values("rows_keep")}};
}

ProgramPart rows_part(const Task& task, const Fused& fused, const Json& params,
                      const Label& label) {
  ProgramPart part = RowsWriter(task, fused, params, label).write();
  if (!rows_in_pairs(fused)) return part;
  const Label wide{label.number.empty() ? "wide" : label.number + "_wide"};
  const StepFlags flags{.tensor = label("flags"), .count = label("arrangers")};
  ProgramPart last = implicit_part(task, fused, params, wide, &flags);
  last.earlier.push_back(std::move(part));
  return last;
}

}  // namespace cutegen::recipes
