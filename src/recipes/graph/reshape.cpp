// SPDX-License-Identifier: Apache-2.0
#include "recipes/graph/reshape.h"

#include <algorithm>
#include <set>

#include "recipes/graph/pointwise.h"

namespace cutegen::recipes {

int64_t product(const Shape& shape) {
  int64_t n = 1;
  for (int64_t size : shape) n *= size;  // shapes of a checked graph: no overflow
  return n;
}

std::optional<std::vector<AxisGroup>> group_axes(const Shape& from, const Shape& to) {
  if (product(from) != product(to) || product(from) == 0) return std::nullopt;
  std::vector<AxisGroup> groups;
  size_t i = 0, j = 0;
  while (i < from.size() && j < to.size()) {
    AxisGroup group{.from = {i}, .to = {j}};
    int64_t p = from[i++], q = to[j++];
    while (p != q) {  // both shapes have equal products, so the smaller side has axes left
      if (p < q) {
        group.from.push_back(i);
        p *= from[i++];
      } else {
        group.to.push_back(j);
        q *= to[j++];
      }
    }
    groups.push_back(std::move(group));
  }
  if (groups.empty()) groups.emplace_back();
  for (; i < from.size(); ++i) groups.back().from.push_back(i);  // trailing axes of size 1
  for (; j < to.size(); ++j) groups.back().to.push_back(j);
  return groups;
}

const Value* before_merge(const Graph& graph, const std::string& name) {
  static const std::set<std::string> kViews{"view", "reshape", "_unsafe_view"};
  const Node* view = graph.producer(name);
  if (!view || !view->op.starts_with("aten.") || !kViews.count(base_name(view->op))) return nullptr;
  const auto of = reference(argument(*view, 0, "self"));
  const Value* source = of ? graph.find(*of) : nullptr;
  if (!source) return nullptr;
  const Shape &from = source->shape, &to = view->outputs[0].shape;
  if (to.empty() || from.size() <= to.size()) return nullptr;
  const auto merged = from.begin() + ptrdiff_t(from.size() - to.size() + 1);
  const bool merges = product(Shape(from.begin(), merged)) == to[0] &&
                      std::equal(merged, from.end(), to.begin() + 1, to.end());
  return merges ? source : nullptr;
}

}  // namespace cutegen::recipes
