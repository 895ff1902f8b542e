// SPDX-License-Identifier: Apache-2.0
#include "recipes/graph/reshape.h"

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

}  // namespace cutegen::recipes
