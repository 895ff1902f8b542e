// SPDX-License-Identifier: Apache-2.0
// A result that is the same number for all inputs: x - x, or a clamp of values that are always
// outside its limits.
//
// Numerical condition: the range of every value follows from its operator alone. If an element of x
// is undefined (NaN), so is the original result, and the evaluator does not judge NaN in the truth.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "recipes/algebra/rules.h"
#include "recipes/graph/pointwise.h"
#include "recipes/graph/reductions.h"

namespace cutegen::recipes {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int kDeepest = 64;

struct Bounds {
  double low = -kInfinity, high = kInfinity;
  bool constant() const { return low == high && std::isfinite(low); }
};

class AllBounds {
 public:
  explicit AllBounds(const Editor& edit) : edit_(edit) {}

  Bounds of(const std::string& value, int depth = 0) const {
    const Node* node = edit_.source(value);
    if (!node || depth > kDeepest || !node->sizes.empty() ||
        node->outputs.front().name != edit_.root(value))
      return {};
    return of_node(*node, depth + 1);
  }

 private:
  Bounds argument_range(const Node& node, size_t index, const char* keyword, int depth) const {
    const Json json = argument(node, index, keyword);
    if (auto constant = number(json)) return {.low = *constant, .high = *constant};
    auto name = reference(json);
    return name ? of(*name, depth) : Bounds{};
  }

  // The limits of an operator that clamps.
  std::optional<Bounds> limits(const Node& node, int depth) const;
  Bounds of_node(const Node& node, int depth) const;
  Bounds of_difference(const Node& node, int depth) const;

  const Editor& edit_;
};

Bounds clamped(const Bounds& x, const Bounds& to) {
  auto clamp = [&](double v) { return std::min(std::max(v, to.low), to.high); };
  return {.low = clamp(x.low), .high = clamp(x.high)};
}

std::optional<Bounds> AllBounds::limits(const Node& node, int depth) const {
  const std::string base = base_name(node.op);
  if (auto limits = clamp_limits(node)) return Bounds{.low = limits->first, .high = limits->second};
  const bool two = base == "minimum" || base == "maximum" || node.op == "aten.min.other" ||
                   node.op == "aten.max.other";
  if (!two) return std::nullopt;
  const Bounds other = argument_range(node, 1, "other", depth);
  if (!other.constant()) return std::nullopt;
  const bool lowest = base == "minimum" || base == "min";
  return lowest ? Bounds{.low = -kInfinity, .high = other.low}
                : Bounds{.low = other.low, .high = kInfinity};
}

Bounds AllBounds::of_difference(const Node& node, int depth) const {
  auto a = reference(argument(node, 0, "self")), b = reference(argument(node, 1, "other"));
  const bool plain = number(argument(node, 2, "alpha")).value_or(1) == 1;
  if (a && b && plain && edit_.root(*a) == edit_.root(*b)) return {.low = 0, .high = 0};
  const Bounds x = argument_range(node, 0, "self", depth),
               y = argument_range(node, 1, "other", depth);
  if (!plain || !y.constant()) return {};
  return {.low = x.low - y.low, .high = x.high - y.low};
}

Bounds AllBounds::of_node(const Node& node, int depth) const {
  const std::string base = base_name(node.op);
  const Bounds x = argument_range(node, 0, "self", depth);
  if (base == "full") {
    auto value = number(argument(node, 1, "fill_value"));
    return value ? Bounds{.low = *value, .high = *value} : Bounds{};
  }
  if (auto to = limits(node, depth)) return clamped(x, *to);
  if (base == "sub") return of_difference(node, depth);
  // Functions that keep zero, and operators that only move or choose elements.
  if ((base == "gelu" || base == "silu" || base == "tanh" || base == "neg" || base == "abs") &&
      x.constant() && x.low == 0)
    return x;
  if (base == "view" || base == "expand" || base == "permute" || base == "transpose" ||
      base == "squeeze" || base == "unsqueeze" || base.starts_with("lift_fresh"))
    return x;
  auto r = find_reduction(edit_.graph(), node);
  const bool chooses = r && *r &&
                       ((*r)->base == "amax" || (*r)->base == "amin" || (*r)->base == "max" ||
                        (*r)->base == "min" || (*r)->base == "mean");
  return chooses ? of((*r)->input, depth) : Bounds{};
}

}  // namespace

Effect constant_result(Editor& edit) {
  for (const std::string& output : edit.graph().outputs) {
    const Node* node = edit.graph().producer(output);
    if (!node || node->outputs.size() != 1 || base_name(node->op) == "full" ||
        !is_floating(node->outputs.front().dtype))
      continue;
    const Bounds range = AllBounds(edit).of(output);
    if (!range.constant()) continue;
    edit.replace_node(node->id, "aten.full.default",
                      {Json(node->outputs.front().shape), range.low});
    return fmt::format("every element of '{}' is {} whatever the inputs are", output, range.low);
  }
  return std::nullopt;
}

}  // namespace cutegen::recipes
