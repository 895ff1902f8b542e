// SPDX-License-Identifier: Apache-2.0
#include "recipes/algebra/linear.h"

#include <algorithm>
#include <cmath>

#include "recipes/graph/pointwise.h"

namespace cutegen::recipes {
namespace {

// If a larger or smaller factor moved, an intermediate value might leave the range of float32.
bool is_moderate(double factor) {
  return std::abs(factor) >= 0x1p-16 && std::abs(factor) <= 0x1p16;
}

Shape reduced(Shape shape, const std::vector<int>& axes) {
  for (int axis : axes) shape[size_t(axis)] = 1;
  return shape;
}

// Returns the factor by which the node multiplies its other argument. A factor that is a tensor
// must have one element.
std::optional<Factor1> factor_of(const Editor& edit, const Node& node, size_t index) {
  const bool divides = base_name(node.op) == "div";
  const Json by = argument(node, index, index == 0 ? "self" : "other");
  if (auto constant = number(by)) {
    if (!is_moderate(*constant)) return std::nullopt;
    return Factor1{.by = by, .divides = divides};
  }
  auto name = reference(by);
  if (!name) return std::nullopt;
  for (size_t axis = 0; axis < edit.shape(*name).size(); ++axis)
    if (!edit.is_one(*name, axis)) return std::nullopt;
  return Factor1{.by = by, .divides = divides};
}

}  // namespace

std::string LinearSum::direct(const std::string& value, const std::vector<int>& axes) const {
  return edit_.add(mean_ ? "mean" : "sum", mean_ ? "aten.mean.dim" : "aten.sum.dim_IntList",
                   {value_ref(value), Json(axes), true}, reduced(edit_.shape(value), axes));
}

std::string LinearSum::times(std::string value, const Factors& factors) const {
  for (const Factor1& factor : factors) {
    Json by = factor.by;
    if (auto name = reference(by); name && !edit_.shape(*name).empty())
      by = value_ref(
          edit_.add("factor", "aten.view.default", {value_ref(*name), Json(Shape{})}, Shape{}));
    value = edit_.add("scaled", factor.divides ? "aten.div.Tensor" : "aten.mul.Tensor",
                      {value_ref(value), by}, edit_.shape(value));
  }
  return value;
}

LinearSum::Found LinearSum::of(const std::string& value, const std::vector<int>& axes,
                               const Factors& factors) const {
  const Node* node = edit_.graph().producer(value);
  if (!node || node->outputs.size() != 1 || !is_floating(node->outputs.front().dtype) ||
      !node->sizes.empty() || !edit_.read_once(value))
    return std::nullopt;
  if (copies(edit_, *node)) return of(*reference(argument(*node, 0, "self")), axes, factors);
  if (auto found = base_(*this, *node, axes, factors)) return found;
  const std::string base = base_name(node->op);
  if (base == "mul" || base == "div" || base == "neg") return through_factor(*node, axes, factors);
  if (base == "add" || base == "sub" || base == "rsub") return through_sum(*node, axes, factors);
  if (base == "view" || base == "_unsafe_view" || base == "reshape")
    return through_view(*node, axes, factors);
  return std::nullopt;
}

LinearSum::Found LinearSum::through_factor(const Node& node, const std::vector<int>& axes,
                                           Factors factors) const {
  if (!argument(node, 2, "rounding_mode").is_null()) return std::nullopt;
  const bool negates = base_name(node.op) == "neg";
  const bool may_turn = base_name(node.op) == "mul";
  for (size_t index : {size_t{0}, size_t{1}}) {
    auto value = reference(argument(node, index, index == 0 ? "self" : "other"));
    if (!value || (index == 1 && !may_turn)) continue;
    auto factor = negates ? std::optional(Factor1{.by = Json(-1.0), .divides = false})
                          : factor_of(edit_, node, 1 - index);
    if (!factor || edit_.shape(*value) != node.outputs.front().shape) continue;
    Factors inner{*factor};
    inner.insert(inner.end(), factors.begin(), factors.end());
    if (auto found = of(*value, axes, inner)) return found;
  }
  return std::nullopt;
}

// Returns the sum or mean of a term that is added to the linear value. A term with all of the axes
// is reduced like the value. A term with none of the axes is its own mean. Returns nullopt for its
// sum, which would depend on the sizes of the axes.
LinearSum::Found LinearSum::term(const Json& json, const Shape& to,
                                 const std::vector<int>& axes) const {
  auto name = reference(json);
  if (!name) return std::nullopt;
  const Shape& shape = edit_.shape(*name);
  if (shape.size() > to.size()) return std::nullopt;
  const int missing = int(to.size() - shape.size());
  std::vector<int> own;
  bool ones = true;
  for (int axis : axes) {
    if (axis < missing) continue;
    const auto at = size_t(axis - missing);
    if (shape[at] == to[size_t(axis)] && shape[at] > 1) own.push_back(axis - missing);
    ones &= edit_.is_one(*name, at);
  }
  if (own.size() == axes.size()) return direct(*name, own);
  return own.empty() && ones && mean_ ? name : std::nullopt;
}

LinearSum::Found LinearSum::through_sum(const Node& node, const std::vector<int>& axes,
                                        const Factors& factors) const {
  if (number(argument(node, 2, "alpha")).value_or(1) != 1) return std::nullopt;
  const Shape& to = node.outputs.front().shape;
  for (size_t index : {size_t{0}, size_t{1}}) {
    auto value = reference(argument(node, index, index == 0 ? "self" : "other"));
    if (!value || edit_.shape(*value) != to) continue;
    auto linear = of(*value, axes, factors);
    if (!linear) continue;
    const Json other = argument(node, 1 - index, index == 1 ? "self" : "other");
    Json rest = other;
    if (!number(other) || !mean_) {
      auto found = term(other, to, axes);
      if (!found) return std::nullopt;
      rest = value_ref(times(*found, factors));
    } else if (!factors.empty()) {
      return std::nullopt;
    }
    const std::string base = base_name(node.op);
    // rsub(x, y) is y - x.
    const char* op = base == "add"                     ? "aten.add.Tensor"
                     : (base == "sub") == (index == 0) ? "aten.sub.Tensor"
                                                       : "aten.rsub.Scalar";
    return edit_.add("shifted", op, {value_ref(*linear), rest}, reduced(to, axes));
  }
  return std::nullopt;
}

// Handles a view that keeps the last axis, if only this axis is reduced.
LinearSum::Found LinearSum::through_view(const Node& node, const std::vector<int>& axes,
                                         const Factors& factors) const {
  auto value = reference(argument(node, 0, "self"));
  if (!value) return std::nullopt;
  const Shape &from = edit_.shape(*value), to = node.outputs.front().shape;
  if (from.empty() || to.empty() || from.back() != to.back() || from.back() == 1 ||
      axes != std::vector<int>{int(to.size()) - 1})
    return std::nullopt;
  auto found = of(*value, {int(from.size()) - 1}, factors);
  if (!found) return std::nullopt;
  const Shape shape = reduced(to, axes);
  return edit_.add("seen", "aten.view.default", {value_ref(*found), Json(shape)}, shape);
}

}  // namespace cutegen::recipes
