// SPDX-License-Identifier: Apache-2.0
#include "recipes/windows/resample.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "recipes/fuse/extents.h"
#include "recipes/graph/pointwise.h"
#include "recipes/nest/nest.h"
#include "recipes/windows/window_text.h"

namespace cutegen::recipes {
namespace {

// The axes of the kernel: batch, channels, and three more. If the input has fewer, the first of the
// three are missing.
constexpr size_t kAxes = 5;
constexpr std::array<const char*, kAxes> kWords{"_n", "_c", "0", "1", "2"};

// Whether the stage interpolates along the image, with a fixed number of elements for each result.
bool interpolates(const Resampling& how) {
  const auto resizes = [](const AxisMap& map) {
    return map.along == Along::nearest || map.along == Along::exact || map.along == Along::linear ||
           map.along == Along::cubic;
  };
  for (size_t i = 0; i < how.maps.size(); ++i)
    if (how.maps[i].along != Along::keep && (i < 2 || !resizes(how.maps[i]))) return false;
  return how.maps.size() > 2;
}

class ResampleWriter {
 public:
  ResampleWriter(const Fused& fused, const Label& label)
      : fused_(fused), label_(label), leaf_(*fused.window), how_(leaf_.window.resampling) {}

  ProgramPart write(const Task& task, const Json& params) {
    ProgramPart part;
    Tail tail(fused_);
    part.file = label_("kernel") + ".cu";
    std::map<std::string, std::string> t;
    t["title"] = title(task, fused_);
    t["name"] = label_("resample");
    t["last"] = label_("CHANNELS_LAST");
    for (const char* name : {"threads", "rows"}) t[name] = params.at(name).dump();
    t["tall"] = std::to_string(tall(params));
    t["compute"] = tail.compute();
    t["finish"] = indent(tail.finish(), interpolates(how_) ? 8 : 6);
    t["input"] = fused_.names.at(leaf_.input.tensor);
    t["input_type"] = type_of(leaf_.input);
    t["scales"] = "";
    for (size_t i = 0; i < kAxes; ++i) t[std::string("map") + kWords[i]] = map_text(i, t["scales"]);
    t["fill"] = literal(how_.fill);
    t["initial"] = how_.highest ? "-INFINITY" : "0.0f";
    t["accumulate_row"] = how_.highest ? "row = cutegen::maximum(value, row);"
                          : weighs()   ? "row = fmaf(from2.weight(i2), value, row);"
                                       : "row += value;";
    t["accumulate"] = how_.highest ? "window = cutegen::maximum(row, window);"
                      : weighs()
                          ? "window = fmaf(from0.weight(i0) * from1.weight(i1), row, window);"
                          : "window += row;";
    t["divide"] =
        how_.averages
            ? "    window /= float(from0.count()) * float(from1.count()) * float(from2.count());\n"
            : "";
    Json args = Json::array();
    t["params"] = tail.declare(args);
    Numbers numbers = tail.numbers();
    for (const Numbers& more : {geometry(fused_), sizes(params)})
      numbers.insert(numbers.end(), more.begin(), more.end());
    t["sizes"] = add_numbers(args, numbers) + size_declarations(fused_);
    add_sizes(args, fused_);
    part.source =
        fill(interpolates(how_) ? "kernels/windows/resize.cu" : "kernels/windows/resample.cu", t);
    plan(part, params, args);
    return part;
  }

 private:
  // Results of a thread below one another.
  static int64_t tall(const Json& params) { return params.value("tall", int64_t{1}); }

  // The map of one of the kernel's axes; null if the input lacks the axis.
  const AxisMap* map_of(size_t axis) const {
    const size_t missing = kAxes - how_.maps.size();
    if (axis < 2) return &how_.maps[axis];
    return axis - 2 < missing ? nullptr : &how_.maps[axis - missing];
  }

  bool weighs() const {
    return std::any_of(how_.maps.begin(), how_.maps.end(), [](const AxisMap& map) {
      return map.along == Along::linear || map.along == Along::cubic;
    });
  }

  // The type of an axis. Adds the constant that it needs to `scales`.
  std::string map_text(size_t axis, std::string& scales) const {
    const AxisMap* map = map_of(axis);
    if (!map) return "KeptAxis";
    const std::string scale = label_(std::string("Scale") + kWords[axis]);
    const auto scaled = [&](const std::string& text) {
      scales += fmt::format("struct {} {{\n  static constexpr double value = {};\n}};\n", scale,
                            dump_json(Json(map->scale)));
      return text;
    };
    const char* aligned = map->aligned ? "true" : "false";
    switch (map->along) {
      case Along::keep:
        return "KeptAxis";
      case Along::pad:
        return fmt::format("PaddedAxis<{}>", map->before);
      case Along::reflect:
        return fmt::format("ReflectedAxis<{}>", map->before);
      case Along::nearest_edge:
        return fmt::format("EdgeAxis<{}>", map->before);
      case Along::wrap:
        return fmt::format("WrappedAxis<{}>", map->before);
      case Along::flip:
        return "FlippedAxis";
      case Along::nearest:
        return scaled(fmt::format("NearestAxis<{}, false>", scale));
      case Along::exact:
        return scaled(fmt::format("NearestAxis<{}, true>", scale));
      case Along::linear:
        return scaled(fmt::format("LinearAxis<{}, {}>", scale, aligned));
      case Along::cubic:
        return scaled(fmt::format("CubicAxis<{}, {}>", scale, aligned));
      case Along::adaptive:
        return "AdaptiveAxis";
    }
    return "KeptAxis";
  }

  // The result's size along one of the kernel's axes, as a plan expression.
  std::string extent(size_t axis) const {
    const size_t missing = kAxes - how_.maps.size();
    if (axis >= 2 && axis - 2 < missing) return "1";
    return "(" + fused_.axes[axis < 2 ? axis : axis - missing].extent + ")";
  }

  // Groups of as many channels, of all images, as a thread has results.
  std::string groups(const Json& params) const {
    return fmt::format("ceil_div({}*{},{})", extent(0), extent(1), params.at("rows").dump());
  }

  // Threads along one of the axes.
  std::string bands(size_t axis, const Json& params) const {
    return axis == 3 && tall(params) > 1 ? fmt::format("ceil_div({},{})", extent(3), tall(params))
                                         : extent(axis);
  }

  Numbers sizes(const Json& params) const {
    const auto inverse = [](const std::string& size) {
      return fmt::format("4294967295/max(1,{})", size);
    };
    Numbers numbers{
        {"out_n", extent(0)}, {"out_c", extent(1)}, {"inverse_g", inverse(groups(params))}};
    for (size_t i = 1; i < kAxes; ++i)
      numbers.emplace_back(std::string("inverse") + kWords[i], inverse(bands(i, params)));
    return numbers;
  }

  // 1 if the result's channels are neighbours in memory, and its last axis has other strides.
  std::string channels_last() const {
    const Operand& out = fused_.outputs.front().operand;
    if (fused_.axes.size() < 3) return "0";
    return fmt::format("({}) == 1 ? (({}) == 1 ? 0 : 1) : 0", stride_text(fused_, out, 1),
                       stride_text(fused_, out, fused_.axes.size() - 1));
  }

  void plan(ProgramPart& part, const Json& params, const Json& args) const {
    std::string all = extent(0);
    for (size_t i = 1; i < kAxes; ++i) all += "*" + extent(i);
    const std::string n = label_("n");
    part.symbols[n] = all;
    part.defines[label_("CHANNELS_LAST")] = channels_last();
    part.requirements.push_back(n + " <= 2000000000");
    for (const std::string& demand : fixed_sizes(fused_)) part.requirements.push_back(demand);
    for (size_t i = 0; i < kAxes; ++i)
      if (const AxisMap* map = map_of(i); map && map->along != Along::keep)
        part.requirements.push_back(condition(*map, i));
    const auto threads = params.at("threads").get<int64_t>();
    std::string places = groups(params);
    for (size_t i = 2; i < kAxes; ++i) places += "*" + bands(i, params);
    if (interpolates(how_)) part.requirements.push_back(last_of_plane() + " <= 2000000000");
    part.steps.push_back({{"id", label_("resample")},
                          {"kernel", label_("resample")},
                          {"when", n + " > 0"},
                          {"grid", {fmt::format("ceil_div({},{})", places, threads), 1, 1}},
                          {"block", {threads, 1, 1}},
                          {"args", args}});
  }

  // The largest offset of an element within one channel of the input, as a plan expression.
  std::string last_of_plane() const {
    std::string sum = "0";
    for (size_t i = 2; i < how_.maps.size(); ++i)
      sum += fmt::format("+(({})-1)*({})", size_text(fused_, leaf_.input, i),
                         stride_text(fused_, leaf_.input, i));
    return sum;
  }

  // The condition under which the input has the elements that each result reads.
  std::string condition(const AxisMap& map, size_t axis) const {
    const size_t missing = kAxes - how_.maps.size();
    const std::string in = size_text(fused_, leaf_.input, axis < 2 ? axis : axis - missing);
    const int64_t after = map.more - map.before;
    if (map.along == Along::reflect)
      return fmt::format("{} > {}", in, std::max<int64_t>({map.before, after, 0}));
    return in + " >= 1";
  }

  const Fused& fused_;
  const Label& label_;
  const WindowLeaf& leaf_;
  const Resampling& how_;
};

}  // namespace

std::vector<RecipeParameter> resample_parameters(const Fused& fused) {
  std::vector<RecipeParameter> list{
      {.name = "rows", .meaning = "channels of a thread", .legal = {4, 2, 1, 8}},
      {.name = "threads", .meaning = "threads of a CTA", .legal = {256, 128}}};
  if (resample_safe(fused).contains("tall"))
    list.push_back({.name = "tall",
                    .meaning = "results of a thread, below one another",
                    .legal = {4, 8, 2, 1}});
  return list;
}

Json resample_safe(const Fused& fused) {
  const Resampling& how = fused.window->window.resampling;
  // Adaptive pooling has few windows, and long ones.
  Json params{{"rows", how.averages || how.highest ? 1 : 4}, {"threads", 256}};
  if (!interpolates(how)) return params;
  // Threads compute many results together if there are enough threads.
  constexpr int64_t kTall = 4, kManyThreads = int64_t{1} << 17;
  const bool tall = how.maps.size() > 3 && fused.axes[fused.axes.size() - 2].size >= kTall;
  int64_t threads = tall ? 1 : kTall, rows = 8;
  for (const Axis& axis : fused.axes) threads *= axis.size;
  threads /= kTall;
  while (rows > 1 && threads / rows < kManyThreads) rows /= 2;
  params["rows"] = rows;
  // On an H200, 16 x 64 x 64 x 64 elements to twice the size take 37.0 us with 256 threads, 35.7 us
  // with 128.
  if (tall) params["threads"] = 128;
  if (how.maps.size() > 3) params["tall"] = tall ? kTall : 1;
  return params;
}

ProgramPart resample_part(const Task& task, const Fused& fused, const Json& params,
                          const Label& label) {
  return ResampleWriter(fused, label).write(task, params);
}

}  // namespace cutegen::recipes
