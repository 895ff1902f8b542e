// SPDX-License-Identifier: Apache-2.0
#include "eval/sets/test_shapes.h"

#include <algorithm>
#include <functional>

#include "eval/sets/family.h"

namespace cutegen::eval {
namespace {

constexpr int64_t kSmallOfficialBytes = int64_t{2} << 20;
constexpr double kSmallOfficialFlops = 5e8;  // 2 MiB of tensors may hide a large intermediate value
constexpr int64_t kMuchMore = int64_t{1} << 40;

}  // namespace

int64_t elements_of(const ShapeCase& shape) {
  int64_t all = 0;
  for (const auto& [name, dims] : shape.tensors)
    if (auto n = element_count(dims); n) all = std::min(kMuchMore, all + std::min(kMuchMore, *n));
  return all;
}

bool is_test_shape(const ShapeCase& shape) {
  return !is_timed(shape) || (shape.least_bytes.value <= kSmallOfficialBytes &&
                              shape.flops.value <= kSmallOfficialFlops);
}

std::vector<std::string> families_for(const ShapeCase& shape, const std::vector<std::string>& all,
                                      uint64_t salt) {
  if (!shape.values.empty()) return {family::ranged};
  const bool much =
      (shape.kind == ShapeKind::small || shape.kind == ShapeKind::odd) &&
      (shape.flops.value > kMostTestFlops / 2 || elements_of(shape) > kMostTestElements);
  if ((shape.kind != ShapeKind::derived && !much) || all.size() < 3) return all;
  auto telling = std::find(all.begin(), all.end(), "outliers");
  if (telling == all.end()) telling = all.begin();
  std::vector<std::string> out{*telling};
  const size_t other =
      std::hash<std::string>()(std::to_string(salt) + shape.name) % (all.size() - 1);
  out.push_back(all[other + (other >= static_cast<size_t>(telling - all.begin()) ? 1 : 0)]);
  return out;
}

}  // namespace cutegen::eval
