// SPDX-License-Identifier: Apache-2.0
#include "recipes/spatial/cut_windows.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "recipes/graph/permutation.h"
#include "recipes/graph/pointwise.h"
#include "recipes/graph/scales.h"

namespace cutegen::recipes {
namespace {

// Positions of the arguments of aten.convolution and aten.slice. fold_zero_pads() may have added
// the last one of the convolution.
constexpr size_t kCutStride = 3, kCutPadding = 4, kCutDilation = 5, kCutTransposed = 6,
                 kCutBehind = 9;
constexpr size_t kSliceDim = 1, kSliceStart = 2, kSliceEnd = 3, kSliceStep = 4;

// Element `axis` of a list. A list with one number has this number for all axes.
int64_t number_along(const Json& list, size_t axis, int64_t missing) {
  if (!list.is_array() || list.empty()) return missing;
  return (list.size() == 1 ? list[0] : list.at(axis)).get<int64_t>();
}

// Finds the value at the start of a chain of operators such as transpositions, and the axis of this
// value that has the same size as axis `axis` of `value` at every shape.
std::pair<std::string, size_t> origin_of(const Graph& graph, std::string value, size_t axis) {
  while (const Node* node = graph.producer(value)) {
    const auto from = node->args.empty() ? std::nullopt : reference(node->args[0]);
    const Value* input = from ? graph.find(*from) : nullptr;
    if (!input) break;
    const std::string base = base_name(node->op);
    const auto order = permutation(*node, base, input->shape.size());
    if (!order.empty())
      axis = order[axis];
    else if (!(base == "clone" || base == "_to_copy"))
      break;
    value = *from;
  }
  return {value, axis};
}

// How many results the slice drops at every shape.
std::optional<int64_t> dropped(const Graph& graph, const Node& slice, const Node& window,
                               size_t axis, int64_t grows) {
  const Value &whole = window.outputs.front(), &part = slice.outputs.front();
  const int64_t here = whole.shape[axis] - part.shape[axis];
  if (slice.sizes.empty()) {
    const bool from_end =
        slice.args[kSliceEnd].is_number_integer() && slice.args[kSliceEnd] == -here;
    return from_end ? std::optional(here) : std::nullopt;
  }
  const SizeArgument& end = slice.sizes.front();
  const auto [tensor, dim] = origin_of(graph, *reference(window.args[0]), axis);
  const bool same = slice.sizes.size() == 1 && end.index == kSliceEnd && !end.share &&
                    end.tensor == tensor && end.dim == int(dim) && grows - end.plus == here;
  return same ? std::optional(here) : std::nullopt;
}

// The convolution with fewer results, or nothing.
std::optional<Node> cut(const Graph& graph, const Node& slice) {
  if (slice.op != "aten.slice.Tensor" || slice.args.size() <= kSliceEnd) return std::nullopt;
  const auto name = reference(slice.args[0]);
  const Node* window = name ? graph.producer(*name) : nullptr;
  if (!window || window->op != "aten.convolution.default" || window->args.size() < kCutBehind ||
      window->args[kCutTransposed] != false || reads_of_values(graph).at(*name) != 1)
    return std::nullopt;
  const Shape& shape = window->outputs.front().shape;
  const auto dim = integer(slice.args[kSliceDim], shape.size());
  const bool first = slice.args[kSliceStart].is_null() || slice.args[kSliceStart] == 0;
  const bool each = slice.args.size() <= kSliceStep || slice.args[kSliceStep] == 1;
  if (!dim || *dim < 2 || !first || !each) return std::nullopt;
  const auto axis = size_t(*dim), place = axis - 2, rank = shape.size() - 2;
  const Value* weight = graph.find(reference(window->args[1]).value_or(""));
  if (!weight || number_along(window->args[kCutStride], place, 1) != 1) return std::nullopt;
  const Json behind = window->args.size() > kCutBehind ? window->args[kCutBehind] : Json();
  const int64_t reach =
      number_along(window->args[kCutDilation], place, 1) * (weight->shape[axis] - 1);
  const int64_t grows = 2 * number_along(window->args[kCutPadding], place, 0) +
                        number_along(behind, place, 0) - reach;
  const auto fewer = dropped(graph, slice, *window, axis, grows);
  if (!fewer || *fewer <= 0) return std::nullopt;
  Node out = *window;
  Json list = Json::array();
  for (size_t i = 0; i < rank; ++i)
    list.push_back(number_along(behind, i, 0) - (i == place ? *fewer : 0));
  out.args.resize(kCutBehind + 1);
  out.args[kCutBehind] = std::move(list);
  out.outputs = slice.outputs;
  return out;
}

}  // namespace

Graph fold_cut_results(Graph graph) {
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    auto window = cut(graph, graph.nodes[i]);
    if (!window) continue;
    const std::string whole = *reference(graph.nodes[i].args[0]);
    graph.nodes[i] = std::move(*window);
    std::erase_if(graph.nodes, [&](const Node& node) {
      return !node.outputs.empty() && node.outputs.front().name == whole;
    });
    --i;  // the convolution before has gone
  }
  return graph;
}

}  // namespace cutegen::recipes
