// SPDX-License-Identifier: Apache-2.0
#include "recipes/views/earlier_moves.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "recipes/graph/permutation.h"
#include "recipes/graph/pointwise.h"
#include "recipes/graph/reshape.h"
#include "recipes/graph/scales.h"
#include "recipes/views/view_nodes.h"

namespace cutegen::recipes {
namespace {

using OpNames = std::set<std::string>;

bool is_among(const Node& node, const OpNames& names) {
  return node.op.starts_with("aten.") && names.count(base_name(node.op)) > 0;
}

// The number of trailing axes that form a row of the operator's operand; 0 if the operator does not
// work on rows.
size_t row_axes(const Node& node) {
  static const OpNames kNorms{"native_layer_norm", "_fused_rms_norm", "rms_norm"},
      kSoftmax{"_softmax", "_log_softmax", "softmax", "log_softmax"};
  if (node.outputs.empty()) return 0;
  const size_t rank = node.outputs.front().shape.size();
  if (is_among(node, kNorms)) {
    const Json shape = argument(node, 1, "normalized_shape");
    return shape.is_array() && shape.size() < rank ? shape.size() : 0;
  }
  const auto dim =
      is_among(node, kSoftmax) ? integer(argument(node, 1, "dim"), rank) : std::optional<int64_t>();
  return dim && *dim + 1 == int64_t(rank) ? 1 : 0;
}

// Whether the operator computes each element from one element of its operand and numbers.
bool maps_elements(const Node& node) {
  static const OpNames kMaps{"_to_copy", "relu", "gelu", "silu", "sigmoid", "tanh",
                             "exp",      "neg",  "mul",  "div",  "add",     "sub"};
  if (!is_among(node, kMaps) || node.outputs.size() != 1 || node.args.empty()) return false;
  return reference(node.args[0]) &&
         std::all_of(node.args.begin() + 1, node.args.end(),
                     [](const Json& argument) { return argument.is_primitive(); }) &&
         std::all_of(node.kwargs.begin(), node.kwargs.end(),
                     [](const Json& argument) { return argument.is_primitive(); });
}

// Whether each of the listed axes lies before the last `row` axes.
bool before_rows(const Json& axes, size_t rank, size_t row) {
  const Json list = axes.is_number_integer() ? Json::array({axes}) : axes;
  return list.is_array() && !list.empty() &&
         std::all_of(list.begin(), list.end(), [&](const Json& item) {
           const auto axis = integer(item, rank);
           return axis && size_t(*axis) + row < rank;
         });
}

// Whether a view splits leading axes and keeps the last `row` axes.
bool splits(const Shape& from, const Shape& to, size_t row) {
  const auto groups = group_axes(from, to);
  if (!groups || to.size() < from.size()) return false;
  size_t kept = 0;
  for (const AxisGroup& group : *groups) {
    if (group.from.size() != 1) return false;
    const bool last = group.from[0] + row >= from.size();
    if (last && group.to.size() != 1) return false;
    kept += last ? 1 : 0;
  }
  return kept == row;
}

enum class MoveKind { none, copy, split, turn, shift };

// How the node rearranges rows of `row` trailing axes.
MoveKind step_of(const Graph& graph, const Node& node, size_t row) {
  const Value* from = node.args.empty() ? nullptr : input_of(graph, node);
  if (!from || node.outputs.size() != 1) return MoveKind::none;
  const size_t rank = from->shape.size();
  if (is_among(node, {"clone", "contiguous", "alias", "detach"})) return MoveKind::copy;
  if (is_among(node, {"roll"}))
    return before_rows(argument(node, 2, "dims"), rank, row) ? MoveKind::shift : MoveKind::none;
  if (is_among(node, {"flip"}))
    return before_rows(argument(node, 1, "dims"), rank, row) ? MoveKind::shift : MoveKind::none;
  if (is_reshape(node))
    return splits(from->shape, node.outputs[0].shape, row) ? MoveKind::split : MoveKind::none;
  const auto order = permutation(node, base_name(node.op), rank);
  if (order.empty() || !node.op.starts_with("aten.")) return MoveKind::none;
  for (size_t i = rank - row; i < rank; ++i)
    if (order[i] != i) return MoveKind::none;
  return MoveKind::turn;
}

// The only node that reads a value; nullptr if several do, or if the value is a result.
const Node* only_reader(const Graph& graph, const std::map<std::string, int>& reads,
                        const std::string& value) {
  if (const auto count = reads.find(value); count == reads.end() || count->second != 1)
    return nullptr;
  for (const Node& node : graph.nodes)
    if (!node.args.empty() && reference(node.args[0]) == value) return &node;
  return nullptr;
}

// Work on rows, and the nodes after it that rearrange the rows.
struct MovedChain {
  std::vector<Node> work, moves;
};

std::optional<MovedChain> chain_from(const Graph& graph, const std::map<std::string, int>& reads,
                                     const Node& first) {
  const size_t row = row_axes(first);
  const auto source = row > 0 ? reference(first.args[0]) : std::nullopt;
  if (!source || !graph.find(*source)) return std::nullopt;
  for (size_t i = 1; i < first.outputs.size(); ++i)
    if (const auto count = reads.find(first.outputs[i].name);
        count != reads.end() && count->second > 0)
      return std::nullopt;
  MovedChain chain{.work = {first}, .moves = {}};
  const auto next = [&](const std::vector<Node>& nodes) {
    return only_reader(graph, reads, nodes.back().outputs.front().name);
  };
  const Node* node = next(chain.work);
  for (; node && maps_elements(*node); node = next(chain.work)) chain.work.push_back(*node);
  size_t end = 0;  // moves up to the last one that changes the order
  bool shifts = false, split = false, windows = false;
  for (; node; node = next(chain.moves)) {
    const MoveKind step = step_of(graph, *node, row);
    if (step == MoveKind::none) break;
    chain.moves.push_back(*node);
    if (step == MoveKind::turn || step == MoveKind::shift) end = chain.moves.size();
    shifts |= step == MoveKind::shift;
    split |= step == MoveKind::split;
    windows |= split && step == MoveKind::turn;
  }
  if (!shifts && !windows) return std::nullopt;
  chain.moves.resize(end);
  return chain;
}

// The shape in which an operator on rows sees the moved operand: a statistic has axes of size 1.
Shape moved_shape(const Value& old, const Shape& before, const Shape& after) {
  Shape shape = after;
  for (size_t i = 0; i < std::min(after.size(), before.size()); ++i)
    if (const size_t from_end = i + 1; from_end <= old.shape.size() &&
                                       old.shape[old.shape.size() - from_end] == 1 &&
                                       before[before.size() - from_end] != 1)
      shape[after.size() - from_end] = 1;
  return shape;
}

// The nodes of the chain in the new order. The last one has the name of the chain's result.
std::vector<Node> rearranged(const Graph& graph, MovedChain chain) {
  const Value source = *graph.find(*reference(chain.work.front().args[0]));
  const Value result = chain.moves.back().outputs.front();
  std::vector<Node> nodes;
  std::string now = source.name;
  for (Node& move : chain.moves) {
    move.args[0] = {{"ref", now}};
    move.outputs.front().name += "~early";
    move.outputs.front().dtype = source.dtype;
    now = move.outputs.front().name;
    nodes.push_back(std::move(move));
  }
  for (Node& work : chain.work) {
    const bool last = &work == &chain.work.back();
    work.args[0] = {{"ref", now}};
    if (is_among(work, {"_softmax", "_log_softmax", "softmax", "log_softmax"})) work.args[1] = -1;
    const Shape before = work.outputs.front().shape;
    for (Value& output : work.outputs) output.shape = moved_shape(output, before, result.shape);
    if (last)
      work.outputs.front().name = result.name;
    else
      work.outputs.front().name += "~late";
    now = work.outputs.front().name;
    nodes.push_back(std::move(work));
  }
  return nodes;
}

}  // namespace

Graph earlier_moves(Graph graph) {
  const auto reads = reads_of_values(graph);
  for (size_t at = 0; at < graph.nodes.size(); ++at) {
    auto chain = chain_from(graph, reads, graph.nodes[at]);
    if (!chain) continue;
    OpNames gone;
    for (const auto* list : {&chain->work, &chain->moves})
      for (const Node& node : *list) gone.insert(node.outputs.front().name);
    const std::string end = chain->moves.back().outputs.front().name;
    const std::vector<Node> nodes = rearranged(graph, std::move(*chain));
    std::vector<Node> all;
    for (const Node& node : graph.nodes) {
      const std::string name = node.outputs.empty() ? "" : node.outputs.front().name;
      if (name == end)
        all.insert(all.end(), nodes.begin(), nodes.end());
      else if (gone.count(name) == 0)
        all.push_back(node);
    }
    graph.nodes = std::move(all);
  }
  return graph;
}

}  // namespace cutegen::recipes
