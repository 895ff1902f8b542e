// SPDX-License-Identifier: Apache-2.0
#include "recipes/nest/output_groups.h"

#include <algorithm>

#include "recipes/fuse/builder.h"
#include "recipes/fuse/views.h"
#include "recipes/graph/names.h"
#include "recipes/graph/pointwise.h"
#include "recipes/views/slices_of_views.h"

namespace cutegen::recipes {
namespace {

constexpr size_t kMostParts = 8;  // of outputs in one kernel

// Describes where a part of an output begins if the sizes of the parts before it are not known. The
// part has `length` of the axis's `size` elements.
Start part_start(int64_t at, int64_t length, int64_t size) {
  if (at == 0) return {};
  return {.at = at, .to_end = at + length == size, .by_number = at + length != size};
}

// The part of an output that operand `i` of a join gives. Stacked values have one element each.
Region::Part part_of_join(const Joined& joined, size_t i, int64_t at, int64_t size, bool stacks) {
  Region::Part part{.axis = joined.axis, .length = joined.lengths[i]};
  part.start = stacks ? Start{.at = at} : part_start(at, part.length, size);
  if (!stacks) part.before.assign(joined.values.begin(), joined.values.begin() + long(i));
  return part;
}

// If a joined tensor with the output's shape is an operand of the output's computation, returns the
// node that joins it, otherwise null.
const Node* join_of(const Graph& graph, const Region::Output& output) {
  const auto nodes = nodes_above(graph, {output.value}, {});
  const Shape& shape = graph.find(output.value)->shape;
  const auto join = std::find_if(nodes.rbegin(), nodes.rend(), [&](const Node* node) {
    return is_join(*node) && node->outputs[0].shape == shape;
  });
  return join == nodes.rend() ? nullptr : *join;
}

// If an output takes its elements from stacked tensors in turn, returns the part of each tensor.
std::vector<Outputs> by_turns(const Graph& graph, const Region::Output& output) {
  std::vector<Outputs> groups;
  const Node* view = graph.producer(output.value);
  const auto from = view && is_view(*view) ? reference(argument(*view, 0, "self")) : std::nullopt;
  const Node* stack = from ? graph.producer(*from) : nullptr;
  const auto turns = stack ? stacked(*stack) : std::nullopt;
  if (!turns || turns->count < 2) return groups;
  const Shape merged = merged_turns(*turns, stack->outputs[0].shape);
  if (graph.find(output.value)->shape != merged) return groups;
  const size_t axis = turns->axis - 1;
  for (int64_t at = 0; at < turns->count; ++at) {
    Region::Output part = output;
    part.part = {.axis = axis,
                 .length = merged[axis] / turns->count,
                 .start = {.at = at, .step = turns->count}};
    groups.push_back({part});
  }
  return groups;
}

}  // namespace

std::optional<Joined> joined_axis(const Graph& graph, const Node& join) {
  const Shape& whole = join.outputs[0].shape;
  const Json dim = argument(join, 1, "dim");
  const int64_t given = dim.is_number_integer() ? dim.get<int64_t>() : 0;
  Joined joined{.axis = size_t(given < 0 ? given + int64_t(whole.size()) : given)};
  const bool stacks = base_name(join.op) == "stack";
  for (const Json& item : argument(join, 0, "tensors")) {
    const Value* operand = graph.find(reference(item).value_or(""));
    if (!operand || joined.axis >= whole.size() ||
        (!stacks && operand->shape.size() <= joined.axis))
      return std::nullopt;
    joined.values.push_back(operand->name);
    joined.lengths.push_back(stacks ? 1 : operand->shape[joined.axis]);
  }
  return joined;
}

std::vector<Outputs> by_shape(const Graph& graph, const Outputs& outputs) {
  std::vector<Outputs> groups;
  const auto shape = [&](const Region::Output& output) { return graph.find(output.value)->shape; };
  for (const Region::Output& output : outputs) {
    auto group = std::find_if(groups.begin(), groups.end(),
                              [&](const Outputs& g) { return shape(g.front()) == shape(output); });
    if (group == groups.end()) group = groups.insert(group, Outputs{});
    group->push_back(output);
  }
  return groups;
}

// The parts of each output that is computed from a joined tensor: one for each operand. Empty if no
// output is.
std::vector<Outputs> by_part(const Graph& graph, const Outputs& outputs) {
  std::vector<Outputs> groups;
  bool parts = false;
  for (const Region::Output& output : outputs) {
    if (auto turns = by_turns(graph, output); !turns.empty()) {
      groups.insert(groups.end(), turns.begin(), turns.end());
      parts = true;
      continue;
    }
    const Node* join = join_of(graph, output);
    const auto joined = join ? joined_axis(graph, *join) : std::nullopt;
    if (!joined) {
      groups.push_back({output});
      continue;
    }
    const int64_t size = join->outputs[0].shape[joined->axis];
    int64_t at = 0;
    for (size_t i = 0; i < joined->lengths.size(); ++i) {
      if (joined->lengths[i] == 0) continue;
      Region::Output part = output;
      part.part = part_of_join(*joined, i, at, size, base_name(join->op) == "stack");
      groups.push_back({part});
      at += joined->lengths[i];
    }
    parts = true;
  }
  return parts ? groups : std::vector<Outputs>{};
}

// Puts equal parts of outputs of one shape together: one kernel then reads the operands once.
std::vector<Outputs> side_by_side(const Graph& graph, const std::vector<Outputs>& parts) {
  std::vector<Outputs> groups;
  const auto fits = [&](const Region::Output& a, const Region::Output& b) {
    return a.part && b.part && a.part->axis == b.part->axis && a.part->length == b.part->length &&
           graph.find(a.value)->shape == graph.find(b.value)->shape;
  };
  for (const Outputs& part : parts) {
    const auto group = std::find_if(groups.begin(), groups.end(), [&](const Outputs& g) {
      return g.size() < kMostParts && fits(g.front(), part.front());
    });
    group == groups.end() ? groups.push_back(part) : group->push_back(part.front());
  }
  return groups.size() < parts.size() ? groups : std::vector<Outputs>{};
}

}  // namespace cutegen::recipes
