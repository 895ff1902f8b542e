// SPDX-License-Identifier: Apache-2.0
#include "recipes/graph/permutation.h"

#include <utility>

#include "recipes/graph/pointwise.h"

namespace cutegen::recipes {

std::optional<int64_t> integer(const Json& json, size_t rank) {
  if (!json.is_number_integer()) return std::nullopt;
  auto axis = json.get<int64_t>();
  if (axis < 0) axis += int64_t(rank);
  if (axis < 0 || axis >= int64_t(rank)) return std::nullopt;
  return axis;
}

std::vector<size_t> permutation(const Node& node, const std::string& base, size_t rank) {
  std::vector<size_t> order(rank);
  for (size_t i = 0; i < rank; ++i) order[i] = i;
  if (base == "t" || base == "numpy_T" || base == "mT") {
    if (rank == 2) std::swap(order[0], order[1]);
    return order;
  }
  if (base == "transpose" || base == "swapaxes") {
    auto a = integer(argument(node, 1, "dim0"), rank), b = integer(argument(node, 2, "dim1"), rank);
    if (!a || !b) return {};
    std::swap(order[size_t(*a)], order[size_t(*b)]);
    return order;
  }
  if (base != "permute") return {};
  Json dims = argument(node, 1, "dims");
  if (!dims.is_array() || dims.size() != rank) return {};
  for (size_t i = 0; i < rank; ++i) {
    auto axis = integer(dims[i], rank);
    if (!axis) return {};
    order[i] = size_t(*axis);
  }
  return order;
}

bool moves_ones_only(const std::vector<size_t>& order, const Shape& shape) {
  size_t before = 0;
  for (size_t axis : order) {
    if (shape[axis] == 1) continue;
    if (axis < before) return false;
    before = axis;
  }
  return !order.empty();
}

}  // namespace cutegen::recipes
