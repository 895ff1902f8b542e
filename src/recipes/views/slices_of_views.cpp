// SPDX-License-Identifier: Apache-2.0
#include "recipes/views/slices_of_views.h"

#include <map>
#include <optional>

#include "recipes/graph/pointwise.h"
#include "recipes/graph/reshape.h"
#include "recipes/views/view_nodes.h"

namespace cutegen::recipes {
namespace {

// The position of the argument `dim`, by operator.
std::optional<size_t> dim_argument(const Node& node) {
  static const std::map<std::string, size_t> table{
      {"slice", 1}, {"narrow", 1}, {"split", 2}, {"split_with_sizes", 2}};
  const auto found = table.find(base_name(node.op));
  if (!node.op.starts_with("aten.") || found == table.end()) return std::nullopt;
  return found->second;
}

// The axis of the view's input that is the axis `dim` of the view, if the view keeps it.
std::optional<size_t> kept_axis(const Shape& from, const Shape& to, size_t dim) {
  const auto groups = group_axes(from, to);
  if (!groups) return std::nullopt;
  for (const AxisGroup& group : *groups)
    if (group.from.size() == 1 && group.to == std::vector<size_t>{dim}) return group.from[0];
  return std::nullopt;
}

// What a slice of a view reads instead: the view's input, and the axis there.
struct Source {
  std::string tensor;
  Shape shape;
  size_t axis;
};

std::optional<Source> source_of(const Graph& graph, const Node& slice, size_t at) {
  const Value* viewed = input_of(graph, slice);
  const Node* view = viewed ? graph.producer(viewed->name) : nullptr;
  if (!view || !is_reshape(*view)) return std::nullopt;
  const Value* input = input_of(graph, *view);
  const Shape& to = view->outputs.front().shape;
  const Json dim = argument(slice, at, "dim");
  if (!input || input->shape == to || (!dim.is_null() && !dim.is_number_integer()))
    return std::nullopt;
  int64_t axis = dim.is_null() ? 0 : dim.get<int64_t>();
  if (axis < 0) axis += int64_t(to.size());
  if (axis < 0 || axis >= int64_t(to.size())) return std::nullopt;
  const auto kept = kept_axis(input->shape, to, size_t(axis));
  if (!kept) return std::nullopt;
  return Source{.tensor = input->name, .shape = input->shape, .axis = *kept};
}

// Appends the slice of `source`, and a view of each part under the name of the old part.
void append(const Node& slice, size_t at, const Source& source, std::vector<Node>& nodes) {
  Node part = slice;
  part.id += "_first";
  while (part.args.size() <= at) part.args.push_back(nullptr);
  part.args[0] = {{"ref", source.tensor}};
  part.args[at] = source.axis;
  part.kwargs.erase("dim");
  const auto axis_in_view = [&] {
    int64_t dim =
        argument(slice, at, "dim").is_null() ? 0 : argument(slice, at, "dim").get<int64_t>();
    return size_t(dim < 0 ? dim + int64_t(slice.outputs.front().shape.size()) : dim);
  }();
  std::vector<Node> views;
  for (Value& output : part.outputs) {
    Node view;
    view.id = slice.id + "_view" + std::to_string(views.size());
    view.op = "aten.view.default";
    view.outputs = {output};
    const Shape to = output.shape;
    output.name += "~sliced";
    output.shape = source.shape;
    output.shape[source.axis] = to[axis_in_view];
    view.args = {{{"ref", output.name}}, Json(to)};
    views.push_back(std::move(view));
  }
  nodes.push_back(std::move(part));
  for (Node& view : views) nodes.push_back(std::move(view));
}

}  // namespace

Graph slices_before_views(Graph graph) {
  std::vector<Node> nodes;
  for (const Node& node : graph.nodes) {
    const auto at = dim_argument(node);
    const auto source = at ? source_of(graph, node, *at) : std::nullopt;
    if (source)
      append(node, *at, *source, nodes);
    else
      nodes.push_back(node);
  }
  graph.nodes = std::move(nodes);
  return graph;
}

}  // namespace cutegen::recipes
