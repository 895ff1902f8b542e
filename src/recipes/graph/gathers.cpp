// SPDX-License-Identifier: Apache-2.0
#include "recipes/graph/gathers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "recipes/graph/pointwise.h"

namespace cutegen::recipes {
namespace {

constexpr std::array<std::string_view, 5> kGathers{"embedding", "index_select", "index", "gather",
                                                   "take_along_dim"};

// An index tensor of integers; booleans select by a mask.
Result<const Value*> index_of(const Graph& graph, const Node& node, const Json& argument) {
  const Value* index = graph.find(reference(argument).value_or(""));
  if (!index) return unsupported_error(node.op + ": an index is not a tensor", node.id);
  if (index->dtype != DType::i64 && index->dtype != DType::i32)
    return unsupported_error(
        fmt::format("{} by an index of dtype {}", node.op, to_string(index->dtype)), node.id);
  return index;
}

// take_along_dim takes indices modulo the size of the axis. Returns the indices before the
// remainder.
std::optional<std::string> before_remainder(const Graph& graph, const std::string& index,
                                            int64_t size) {
  const Node* node = graph.producer(index);
  if (!node || base_name(node->op) != "remainder" ||
      number(argument(*node, 1, "other")) != double(size))
    return std::nullopt;
  return reference(argument(*node, 0, "self"));
}

Result<size_t> axis_of(const Node& node, const Json& dim, size_t rank) {
  const int64_t given = dim.is_number_integer() ? dim.get<int64_t>() : 0;
  const int64_t axis = given < 0 ? given + int64_t(rank) : given;
  if (axis < 0 || axis >= int64_t(rank))
    return unsupported_error(fmt::format("{}: no axis {}", node.op, given), node.id);
  return size_t(axis);
}

// index.Tensor(x, [null, ids, ...]). If the indexed axes are neighbours, the indices' own axes take
// their place; otherwise the indices' axes come first.
Result<Gather> by_list(const Graph& graph, const Node& node, Gather gather) {
  const Json list = argument(node, 1, "indices");
  if (!list.is_array()) return unsupported_error(node.op + ": its indices", node.id);
  for (size_t axis = 0; axis < list.size(); ++axis) {
    if (list[axis].is_null()) continue;
    CG_TRY(const Value* index, index_of(graph, node, list[axis]));
    gather.taken.push_back({.axis = axis, .index = index->name, .wraps = true});
    gather.rank = std::max(gather.rank, index->shape.size());
  }
  if (gather.taken.empty()) return unsupported_error(node.op + " without an index", node.id);
  const size_t begin = gather.taken.front().axis, end = gather.taken.back().axis + 1;
  gather.first = end - begin == gather.taken.size() ? begin : 0;
  return gather;
}

}  // namespace

bool is_gather(const Node& node) {
  return node.op.rfind("aten.", 0) == 0 &&
         std::find(kGathers.begin(), kGathers.end(), base_name(node.op)) != kGathers.end();
}

Result<std::optional<Gather>> find_gather(const Graph& graph, const Node& node) {
  if (!is_gather(node)) return std::optional<Gather>();
  const std::string base = base_name(node.op);
  const bool table = base == "embedding";
  const Value* input =
      graph.find(reference(argument(node, 0, table ? "weight" : "self")).value_or(""));
  if (!input) return unsupported_error(node.op + ": its input is not a tensor", node.id);
  Gather gather{.input = input->name};
  if (base == "index") {
    CG_TRY(gather, by_list(graph, node, std::move(gather)));
    return std::optional(std::move(gather));
  }
  const bool last = base == "take_along_dim";  // (x, indices, dim)
  gather.along = last || base == "gather";
  size_t axis = 0;
  if (!table) {
    CG_TRY(axis, axis_of(node, argument(node, last ? 2 : 1, "dim"), input->shape.size()));
  }
  CG_TRY(const Value* index,
         index_of(graph, node, argument(node, table || last ? 1 : 2, table ? "indices" : "index")));
  if (gather.along && index->shape != node.outputs.front().shape)
    return unsupported_error(node.op + " by an index that broadcasts", node.id);
  Taken taken{.axis = axis, .index = index->name};
  if (auto raw = before_remainder(graph, index->name, input->shape[axis])) {
    taken.index = *raw;
    taken.modulo = true;
  }
  gather.taken.push_back(std::move(taken));
  gather.first = axis;
  gather.rank = index->shape.size();
  return std::optional(std::move(gather));
}

}  // namespace cutegen::recipes
