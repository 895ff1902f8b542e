// SPDX-License-Identifier: Apache-2.0
#include "recipes/graph/scans.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "recipes/graph/pointwise.h"

namespace cutegen::recipes {
namespace {

// Positions of the arguments of kScan.
constexpr size_t kInput = 0, kAxis = 1, kKind = 2, kReversed = 3, kExclusive = 4;

struct Known {
  std::string_view op, word;
  ScanKind kind;
  std::optional<double> neutral;  // a scan with this value in front is exclusive
};
constexpr std::array kKnown{
    Known{.op = "cumsum", .word = "sum", .kind = ScanKind::sum, .neutral = 0},
    Known{.op = "cumprod", .word = "product", .kind = ScanKind::product, .neutral = 1},
    Known{.op = "cummax", .word = "max", .kind = ScanKind::max, .neutral = {}},
    Known{.op = "cummin", .word = "min", .kind = ScanKind::min, .neutral = {}},
    Known{.op = "logcumsumexp", .word = "log_sum", .kind = ScanKind::log_sum, .neutral = {}},
    Known{.op = "", .word = "max_place", .kind = ScanKind::max_place, .neutral = {}},
    Known{.op = "", .word = "min_place", .kind = ScanKind::min_place, .neutral = {}},
    Known{.op = "", .word = "integer_sum", .kind = ScanKind::integer_sum, .neutral = 0},
    Known{.op = "", .word = "integer_product", .kind = ScanKind::integer_product, .neutral = 1},
    Known{.op = "", .word = "integer_max", .kind = ScanKind::integer_max, .neutral = {}},
    Known{.op = "", .word = "integer_min", .kind = ScanKind::integer_min, .neutral = {}},
};

bool is_scan(const Node* node) {
  return node && node->op == kScan;
}

// An argument as an axis of a tensor of this rank; -1 if it is not an axis.
int64_t axis_of(const Json& json, size_t rank) {
  if (!json.is_number_integer()) return -1;
  auto axis = json.get<int64_t>();
  if (axis < 0) axis += int64_t(rank);
  return axis >= 0 && axis < int64_t(rank) ? axis : -1;
}

class Normalizer {
 public:
  explicit Normalizer(Graph graph) : graph_(std::move(graph)) {}

  Graph run() {
    separate_places();
    for (Node& node : graph_.nodes) {
      if (node.outputs.empty() || node.op.rfind("aten.", 0) != 0) continue;
      const std::string base = base_name(node.op);
      if (base == "flip") {
        unflip(node);
      } else if (base == "cat") {
        make_exclusive(node);
      } else {
        normalize(node, base);
      }
    }
    return std::move(graph_);
  }

 private:
  const Node* producer(const Node& node) const {
    auto name = reference(argument(node, 0, "self"));
    return name ? graph_.producer(*name) : nullptr;
  }
  const Value* input(const Node& node) const {
    auto name = reference(argument(node, 0, "self"));
    return name ? graph_.find(*name) : nullptr;
  }
  bool is_read(const std::string& value) const;

  void separate_places();
  void normalize(Node& node, const std::string& base) const;
  void unflip(Node& node) const;
  void make_exclusive(Node& node) const;
  bool all_but_last(const Node& slice, int64_t axis) const;
  bool is_fill(const std::string& value, double with) const;

  Graph graph_;
};

bool Normalizer::is_read(const std::string& value) const {
  auto among = [&](const Json& json) {
    return json.dump().find(Json(value).dump()) != std::string::npos;
  };
  for (const Node& node : graph_.nodes)
    if (std::any_of(node.args.begin(), node.args.end(), among) || among(node.kwargs)) return true;
  return std::find(graph_.outputs.begin(), graph_.outputs.end(), value) != graph_.outputs.end();
}

// Adds a scan for the positions that cummax and cummin return, if something reads them.
void Normalizer::separate_places() {
  for (size_t i = 0; i < graph_.nodes.size(); ++i) {
    const std::string base = base_name(graph_.nodes[i].op);
    const Node node = graph_.nodes[i];
    const Value* x = base == "cummax" || base == "cummin" ? input(node) : nullptr;
    if (!x || node.outputs.size() != 2 || !is_read(node.outputs[1].name) || !is_floating(x->dtype))
      continue;
    const int64_t axis = axis_of(argument(node, 1, "dim"), x->shape.size());
    if (axis < 0) continue;
    Node places = node;
    places.id += "_places";
    places.op = kScan;
    places.args = {argument(node, 0, "self"), axis, base.substr(3) + "_place", false, false};
    places.kwargs = Json::object();
    places.outputs = {node.outputs[1]};
    graph_.nodes[i].outputs.resize(1);
    graph_.nodes.insert(graph_.nodes.begin() + long(i) + 1, std::move(places));
  }
}

// Replaces aten.cumsum(x, axis) and its like.
void Normalizer::normalize(Node& node, const std::string& base) const {
  const auto* known =
      std::find_if(kKnown.begin(), kKnown.end(), [&](const Known& k) { return k.op == base; });
  const Value* x = known == kKnown.end() ? nullptr : input(node);
  if (!x || x->shape.empty()) return;
  const bool integers =
      base != "logcumsumexp" && !is_floating(x->dtype) && is_integer(node.outputs[0].dtype);
  if (!integers && (x->dtype != node.outputs[0].dtype || !is_floating(x->dtype))) return;
  const int64_t axis = axis_of(argument(node, 1, "dim"), x->shape.size());
  const bool places = node.outputs.size() > 1 && is_read(node.outputs[1].name);
  if (axis < 0 || places) return;
  const Json from = argument(node, 0, "self");
  node.op = kScan;
  node.args = {from, axis, (integers ? "integer_" : "") + std::string(known->word), false, false};
  node.kwargs = Json::object();
  node.outputs.resize(1);
}

// Replaces flip(scan(flip(x))) along one axis.
void Normalizer::unflip(Node& node) const {
  const Node* scan = producer(node);
  const Node* before = is_scan(scan) ? producer(*scan) : nullptr;
  if (!before || base_name(before->op) != "flip") return;
  const Value* x = input(*before);
  if (!x) return;
  for (const Node* flip : {before, static_cast<const Node*>(&node)}) {
    const Json dims = argument(*flip, 1, "dims");
    if (!dims.is_array() || dims.size() != 1 ||
        axis_of(dims[0], x->shape.size()) != scan->args[kAxis])
      return;
  }
  node.args = scan->args;
  node.args[kInput] = argument(*before, 0, "self");
  node.args[kReversed] = !scan->args[kReversed].get<bool>();
  node.op = kScan;
  node.kwargs = Json::object();
}

// slice(x, axis, 0, size - 1, 1)
bool Normalizer::all_but_last(const Node& slice, int64_t axis) const {
  const Value* x = input(slice);
  if (!x || base_name(slice.op) != "slice") return false;
  return axis_of(argument(slice, 1, "dim"), x->shape.size()) == axis &&
         argument(slice, 2, "start") == 0 &&
         argument(slice, 3, "end") == x->shape[size_t(axis)] - 1 && argument(slice, 4, "step") == 1;
}

// Whether a value is a tensor of one constant.
bool Normalizer::is_fill(const std::string& value, double with) const {
  const Node* node = graph_.producer(value);
  while (node && (base_name(node->op) == "detach" || base_name(node->op) == "alias"))
    node = producer(*node);
  if (!node) return false;
  const std::string base = base_name(node->op);
  if (base == "zeros" || base == "zeros_like") return with == 0;
  if (base == "ones" || base == "ones_like") return with == 1;
  return (base == "full" || base == "full_like") &&
         number(argument(*node, 1, "fill_value")) == with;
}

// Replaces cat([fill, scan(all but the last)]) along the scanned axis.
void Normalizer::make_exclusive(Node& node) const {
  const Json list = argument(node, 0, "tensors");
  const auto first = list.is_array() && list.size() == 2 ? reference(list[0]) : std::nullopt;
  const auto second = first ? reference(list[1]) : std::nullopt;
  const Value* fill = first ? graph_.find(*first) : nullptr;
  const Node* scan = second ? graph_.producer(*second) : nullptr;
  if (!fill || !is_scan(scan) || find_scan(*scan)->reversed || find_scan(*scan)->exclusive) return;
  const auto axis = scan->args[kAxis].get<int64_t>();
  const size_t rank = scan->outputs[0].shape.size();
  const auto* known = std::find_if(kKnown.begin(), kKnown.end(), [&](const Known& k) {
    return k.word == scan->args[kKind].get<std::string>();
  });
  const Node* slice = producer(*scan);
  if (!known->neutral || !is_fill(*first, *known->neutral) || fill->shape.size() != rank ||
      fill->shape[size_t(axis)] != 1 || axis_of(argument(node, 1, "dim"), rank) != axis || !slice ||
      !all_but_last(*slice, axis) || input(*slice)->shape != node.outputs[0].shape)
    return;
  node.args = scan->args;
  node.args[kInput] = argument(*slice, 0, "self");
  node.args[kExclusive] = true;
  node.op = kScan;
  node.kwargs = Json::object();
}

}  // namespace

Graph normalize_scans(Graph graph) {
  return Normalizer(std::move(graph)).run();
}

std::optional<Scan> find_scan(const Node& node) {
  if (node.op != kScan || node.args.size() != kExclusive + 1) return std::nullopt;
  Scan scan{.reversed = node.args[kReversed].get<bool>(),
            .exclusive = node.args[kExclusive].get<bool>()};
  for (const Known& known : kKnown)
    if (known.word == node.args[kKind].get<std::string>()) scan.kind = known.kind;
  return scan;
}

}  // namespace cutegen::recipes
