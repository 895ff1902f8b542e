// SPDX-License-Identifier: Apache-2.0
#include "recipes/spatial/resamples.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "recipes/graph/pointwise.h"

namespace cutegen::recipes {
namespace {

constexpr int64_t kMostShift = 1 << 20;  // largest padding or shift: places fit in 32 bits
constexpr size_t kMostAxes = 5;
constexpr int64_t kMostOver = 16;  // the denominator of a factor

// The operators whose maps differ only in their kind.
const std::map<std::string, Along>& resampling_kinds() {
  static const std::map<std::string, Along> table{{"constant_pad_nd", Along::pad},
                                                  {"reflection_pad1d", Along::reflect},
                                                  {"reflection_pad2d", Along::reflect},
                                                  {"reflection_pad3d", Along::reflect},
                                                  {"replication_pad1d", Along::nearest_edge},
                                                  {"replication_pad2d", Along::nearest_edge},
                                                  {"replication_pad3d", Along::nearest_edge},
                                                  {"flip", Along::flip},
                                                  {"roll", Along::wrap},
                                                  {"upsample_nearest1d", Along::nearest},
                                                  {"upsample_nearest2d", Along::nearest},
                                                  {"upsample_nearest3d", Along::nearest},
                                                  {"_upsample_nearest_exact1d", Along::exact},
                                                  {"_upsample_nearest_exact2d", Along::exact},
                                                  {"_upsample_nearest_exact3d", Along::exact},
                                                  {"upsample_linear1d", Along::linear},
                                                  {"upsample_bilinear2d", Along::linear},
                                                  {"upsample_trilinear3d", Along::linear},
                                                  {"upsample_bicubic2d", Along::cubic},
                                                  {"adaptive_avg_pool1d", Along::adaptive},
                                                  {"_adaptive_avg_pool2d", Along::adaptive},
                                                  {"_adaptive_avg_pool3d", Along::adaptive},
                                                  {"adaptive_max_pool2d", Along::adaptive},
                                                  {"adaptive_max_pool3d", Along::adaptive}};
  return table;
}

std::optional<std::vector<int64_t>> integers(const Json& json) {
  if (json.is_number_integer()) return std::vector<int64_t>{json.get<int64_t>()};
  if (!json.is_array()) return std::nullopt;
  std::vector<int64_t> list;
  for (const Json& item : json) {
    if (!item.is_number_integer() || std::abs(item.get<int64_t>()) > kMostShift)
      return std::nullopt;
    list.push_back(item.get<int64_t>());
  }
  return list;
}

class ResamplingReader {
 public:
  ResamplingReader(const Graph& graph, const Node& node) : graph_(graph), node_(node) {}

  Result<Resampling> run() {
    const auto name = reference(argument(node_, 0, "self"));
    const Value* input = name ? graph_.find(*name) : nullptr;
    if (!input || input->shape.size() < 2 || input->shape.size() > kMostAxes ||
        node_.outputs.empty() || node_.outputs[0].shape.size() != input->shape.size())
      return refuse("its input does not have two to five axes");
    in_ = input->shape, out_ = node_.outputs[0].shape;
    result_.maps.resize(in_.size());
    const std::string base = base_name(node_.op);
    const Along kind = resampling_kinds().at(base);
    if (kind == Along::flip) return flip();
    if (kind == Along::wrap) return roll();
    if (kind == Along::pad || kind == Along::reflect || kind == Along::nearest_edge)
      return pad(kind);
    if (kind == Along::adaptive) return adaptive(base.find("max") != std::string::npos);
    return resize(kind);
  }

 private:
  Result<Resampling> pad(Along kind) {
    const auto list = integers(argument(node_, 1, "pad"));
    if (!list || list->size() % 2 != 0 || list->size() / 2 > in_.size())
      return refuse("its padding");
    if (kind == Along::pad) {
      const auto fill = number(argument(node_, 2, "value"));
      if (!fill && !argument(node_, 2, "value").is_null()) return refuse("its value");
      result_.fill = fill.value_or(0);
    }
    for (size_t i = 0; i < list->size() / 2; ++i) {
      AxisMap& map = result_.maps[in_.size() - 1 - i];
      const int64_t front = (*list)[2 * i], back = (*list)[2 * i + 1];
      if (front == 0 && back == 0) continue;
      map = {.along = kind, .before = front, .more = front + back};
    }
    return result_;
  }

  Result<Resampling> flip() {
    const auto list = integers(argument(node_, 1, "dims"));
    if (!list) return refuse("its axes");
    for (int64_t axis : *list) {
      CG_TRY(AxisMap * map, at(axis));
      map->along = Along::flip;
    }
    return result_;
  }

  Result<Resampling> roll() {
    const auto shifts = integers(argument(node_, 1, "shifts")),
               axes = integers(argument(node_, 2, "dims"));
    if (!shifts || !axes || axes->empty() || shifts->size() != axes->size())
      return refuse("its shifts have no axes");
    for (size_t i = 0; i < axes->size(); ++i) {
      CG_TRY(AxisMap * map, at((*axes)[i]));
      map->along = Along::wrap;
      map->before += (*shifts)[i];
    }
    return result_;
  }

  Result<Resampling> adaptive(bool highest) {
    result_.highest = highest, result_.averages = !highest;
    return sizes(Along::adaptive);
  }

  Result<Resampling> resize(Along kind) {
    const bool weighs = kind == Along::linear || kind == Along::cubic;
    CG_TRY(result_, sizes(kind));
    const bool aligned = weighs && argument(node_, 2, "align_corners") == true;
    for (size_t i = 2; i < in_.size(); ++i) {
      AxisMap& map = result_.maps[i];
      map.aligned = aligned;
      const auto factor = number(argument(node_, i + (weighs ? 1 : 0), "scales"));
      if (!factor || *factor <= 0) continue;
      map.scale = 1 / *factor;
      if (map.as) continue;
      for (int64_t over = 1; over <= kMostOver && map.times == 0; ++over) {
        const double times = *factor * double(over);
        if (times != std::floor(times) || times > double(kMostShift)) continue;
        if (int64_t(times) * in_[i] / over == out_[i]) map.times = int64_t(times), map.over = over;
      }
      if (map.times == 0) return refuse("its scale is not a simple fraction");
    }
    return result_;
  }

  // The sizes that argument 1 gives to the axes behind the channels.
  Result<Resampling> sizes(Along kind) {
    if (in_.size() < 3) return refuse("its input has no channels");
    const auto list = integers(argument(node_, 1, "output_size"));
    if (!list || list->size() != in_.size() - 2) return refuse("its output size");
    for (size_t i = 2; i < in_.size(); ++i) {
      AxisMap& map = result_.maps[i];
      map.along = kind;
      map.size = out_[i];
      for (const SizeArgument& of : node_.sizes)
        if (of.index == 1 && of.item == int(i) - 1) map.as = of;
    }
    return result_;
  }

  Result<AxisMap*> at(int64_t axis) {
    if (axis < 0) axis += int64_t(in_.size());
    if (axis < 0 || axis >= int64_t(in_.size())) return refuse("its axes");
    return &result_.maps[size_t(axis)];
  }

  tl::unexpected<Error> refuse(const std::string& why) const {
    return unsupported_error(node_.op + ": " + why, node_.id);
  }

  const Graph& graph_;
  const Node& node_;
  Shape in_, out_;
  Resampling result_;
};

// The zeros that a constant_pad_nd adds before and after each axis behind the channels.
struct Zeros {
  std::string input;
  std::vector<int64_t> before, after;
};

std::optional<Zeros> zeros_of(const Graph& graph, const std::string& name) {
  const Node* pad = graph.producer(name);
  if (!pad || pad->op != "aten.constant_pad_nd.default") return std::nullopt;
  const auto padded = ResamplingReader(graph, *pad).run();
  if (!padded || padded->fill != 0) return std::nullopt;
  Zeros zeros{.input = *reference(argument(*pad, 0, "self")), .before = {}, .after = {}};
  for (size_t i = 0; i < padded->maps.size(); ++i) {
    const AxisMap& map = padded->maps[i];
    const int64_t after = map.more - map.before;
    if (map.before < 0 || after < 0 || (i < 2 && map.along != Along::keep)) return std::nullopt;
    if (i < 2) continue;
    zeros.before.push_back(map.before), zeros.after.push_back(after);
  }
  return zeros;
}

}  // namespace

std::string AxisMap::extent(const std::string& input, const std::string& same) const {
  if (!same.empty()) return same;
  if (times > 0)
    return over == 1 ? fmt::format("(({})*{})", input, times)
                     : fmt::format("(({})*{}/{})", input, times, over);
  if (size > 0) return std::to_string(size);
  if (more == 0) return input;
  return more > 0 ? fmt::format("(({})+{})", input, more) : fmt::format("(({})-{})", input, -more);
}

bool is_resampling(const Node& node) {
  return node.op.rfind("aten.", 0) == 0 && resampling_kinds().count(base_name(node.op)) > 0;
}

Result<Resampling> resampling_of(const Graph& graph, const Node& node) {
  return ResamplingReader(graph, node).run();
}

// aten.convolution gets a tenth argument: how much more it pads behind each axis than before it.
Graph fold_zero_pads(Graph graph) {
  for (Node& node : graph.nodes) {
    constexpr size_t kPadding = 4, kTransposed = 6, kArguments = 9;
    if (node.op != "aten.convolution.default" || node.args.size() != kArguments ||
        node.args[kTransposed] != false)
      continue;
    const auto name = reference(node.args[0]);
    const auto zeros = name ? zeros_of(graph, *name) : std::nullopt;
    auto padding = integers(node.args[kPadding]);
    if (!zeros || !padding || (padding->size() != 1 && padding->size() != zeros->before.size()))
      continue;
    padding->resize(zeros->before.size(), padding->front());
    Json before = Json::array(), behind = Json::array();
    for (size_t i = 0; i < padding->size(); ++i) {
      before.push_back((*padding)[i] + zeros->before[i]);
      behind.push_back(zeros->after[i] - zeros->before[i]);
    }
    node.args[0] = {{"ref", zeros->input}};
    node.args[kPadding] = std::move(before);
    node.args.push_back(std::move(behind));
  }
  return graph;
}

}  // namespace cutegen::recipes
