// SPDX-License-Identifier: Apache-2.0
// clamp(clamp(x, a, b), c, d) is one clamp; a ReLU is a clamp at 0.
//
// Numerical condition: a clamp is exact and keeps undefined elements. The lower limit of each clamp
// does not exceed its upper limit.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "recipes/algebra/rules.h"
#include "recipes/graph/pointwise.h"

namespace cutegen::recipes {
namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

// A missing limit is null.
std::optional<double> limit(const Json& json, double missing) {
  return json.is_null() ? std::optional(missing) : number(json);
}

Json limit_json(double value) {
  return std::isinf(value) ? Json(nullptr) : Json(value);
}

}  // namespace

std::optional<std::pair<double, double>> clamp_limits(const Node& node) {
  const std::string base = base_name(node.op);
  if (!node.op.starts_with("aten.") || node.outputs.size() != 1 || !node.sizes.empty())
    return std::nullopt;
  if (base == "relu") return std::pair(0.0, kNoLimit);
  const bool clamp = base == "clamp" || base == "clip" || base == "hardtanh";
  const bool low_only = base == "clamp_min", high_only = base == "clamp_max";
  if (!clamp && !low_only && !high_only) return std::nullopt;
  const bool tanh = base == "hardtanh";
  auto low = high_only ? std::optional(-kNoLimit)
                       : limit(argument(node, 1, tanh ? "min_val" : "min"), tanh ? -1 : -kNoLimit);
  auto high = low_only ? std::optional(kNoLimit)
                       : limit(argument(node, high_only ? 1 : 2, tanh ? "max_val" : "max"),
                               tanh ? 1 : kNoLimit);
  if (!low || !high || !(*low <= *high)) return std::nullopt;
  return std::pair(*low, *high);
}

Effect merge_clamps(Editor& edit) {
  for (const Node& node : edit.graph().nodes) {
    auto outer = clamp_limits(node);
    auto from = reference(argument(node, 0, "self"));
    if (!outer || !from) continue;
    const Node* before = edit.graph().producer(*from);
    auto inner = before ? clamp_limits(*before) : std::nullopt;
    auto x = before ? reference(argument(*before, 0, "self")) : std::nullopt;
    if (!inner || !x || !edit.read_once(*from)) continue;
    const double low = std::clamp(inner->first, outer->first, outer->second),
                 high = std::clamp(inner->second, outer->first, outer->second);
    edit.replace_node(node.id, "aten.clamp.default",
                      {value_ref(*x), limit_json(low), limit_json(high)});
    return fmt::format("two clamps become one, from {} to {}", low, high);
  }
  return std::nullopt;
}

}  // namespace cutegen::recipes
