// SPDX-License-Identifier: Apache-2.0
// x * a / b is one multiplication by a / b.
//
// Numerical condition: both factors lie between 2^-16 and 2^16, so a result that was in float32's
// range stays in it. The folded factor is rounded once, in place of one of the two products.
#include <fmt/format.h>

#include <cmath>

#include "recipes/algebra/rules.h"
#include "recipes/graph/pointwise.h"
#include "recipes/graph/scales.h"

namespace cutegen::recipes {
namespace {

std::optional<double> moderate_factor(const Node& node) {
  auto factor = constant_factor(node);
  if (!factor || std::abs(*factor) < 0x1p-16 || std::abs(*factor) > 0x1p16) return std::nullopt;
  return factor;
}

}  // namespace

Effect fold_scales(Editor& edit) {
  for (const Node& node : edit.graph().nodes) {
    auto outer = moderate_factor(node);
    if (!outer) continue;
    const std::string from = *reference(argument(node, 0, "self"));
    const Node* before = edit.graph().producer(from);
    auto inner = before && edit.read_once(from) ? moderate_factor(*before) : std::nullopt;
    if (!inner) continue;
    const std::string x = *reference(argument(*before, 0, "self"));
    const double factor = *inner * *outer;
    edit.replace_node(node.id, "aten.mul.Tensor", {value_ref(x), factor});
    return fmt::format("two constant factors become one, {}", factor);
  }
  return std::nullopt;
}

}  // namespace cutegen::recipes
