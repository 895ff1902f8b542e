// SPDX-License-Identifier: Apache-2.0
// Losses that are more than pointwise work and one reduction.
#include <map>

#include "recipes/composites/expansion.h"

namespace cutegen::recipes {
namespace {

// Writes the node's result from `each`, the losses of all elements. reduction: 0 none, 1 mean, 2
// sum.
bool reduced(Expansion& e, const std::string& each, int64_t reduction) {
  if (reduction == 0) return e.finish(each);
  e.write("reduced", reduction == 1 ? "aten.mean.default" : "aten.sum.default", {tensor_ref(each)},
          {}, e.result().name);
  return true;
}

std::string weighted(Expansion& e, const std::string& each, const Value* weight,
                     const Shape& shape) {
  return weight ? e.map("mul.Tensor", {tensor_ref(each), tensor_ref(weight->name)}, shape) : each;
}

// binary_cross_entropy_with_logits(x, target, weight, pos_weight, reduction)
bool with_logits(Expansion& e) {
  const Value *x = e.input(0), *target = e.input(1), *weight = e.input(2), *positive = e.input(3);
  const auto reduction = e.number_at(4);
  if (!x || !target || !reduction || x->shape != target->shape) return false;
  std::vector<Json> args{tensor_ref(x->name), tensor_ref(target->name)};
  if (positive) args.push_back(tensor_ref(positive->name));
  const std::string each =
      e.map(positive ? "logits_loss_weighted" : "logits_loss", std::move(args), x->shape);
  return reduced(e, weighted(e, each, weight, x->shape), int64_t(*reduction));
}

// binary_cross_entropy(x, target, weight, reduction) with a weight for each element
bool cross_entropy(Expansion& e) {
  const Value *x = e.input(0), *target = e.input(1), *weight = e.input(2);
  const auto reduction = e.number_at(3);
  if (!x || !target || !weight || !reduction || x->shape != target->shape) return false;
  const std::string each =
      e.map("binary_cross_entropy.default",
            {tensor_ref(x->name), tensor_ref(target->name), nullptr, 0}, x->shape);
  return reduced(e, weighted(e, each, weight, x->shape), int64_t(*reduction));
}

// multi_margin_loss(x, target, p, margin, weight, reduction): mean over the other classes of
// max(0, margin - x[target] + x)^p.
bool multi_margin(Expansion& e) {
  const Value *x = e.input(0), *target = e.input(1), *weight = e.input(4);
  const auto p = e.number_at(2), margin = e.number_at(3), reduction = e.number_at(5);
  if (!x || !target || !p || !margin || !reduction || x->shape.size() != 2 ||
      target->shape.size() != 1 || (*p != 1 && *p != 2))
    return false;
  const Shape &all = x->shape, rows{all[0]}, thin{all[0], 1};
  const auto pick = [&](const std::string& from) {
    return e.view(
        e.write("picked", "cutegen.pick", {tensor_ref(from), tensor_ref(target->name), 1}, rows),
        thin);
  };
  const std::string own = pick(x->name);
  std::string each = e.map("sub.Tensor", {tensor_ref(x->name), tensor_ref(own)}, all);
  each = e.map("add.Scalar", {tensor_ref(each), *margin}, all);
  // As in PyTorch, a difference of infinities (NaN) counts as zero.
  const std::string above = e.map("gt.Scalar", {tensor_ref(each), 0}, all, DType::boolean);
  each = e.map("where.ScalarOther", {tensor_ref(above), tensor_ref(each), 0}, all);
  if (*p == 2) each = e.map("square.default", {tensor_ref(each)}, all);
  const std::string places = e.counting(*x, 1);
  const std::string label = e.as(target->dtype, e.view(target->name, thin));
  const std::string same =
      e.map("ne.Tensor", {tensor_ref(places), tensor_ref(label)}, all, DType::boolean);
  each = e.map("where.ScalarOther", {tensor_ref(same), tensor_ref(each), 0}, all);
  if (weight) {
    const std::string wide =
        e.write("weights", "aten.expand.default",
                {tensor_ref(e.view(weight->name, {1, all[1]})), Json(all)}, all);
    each = e.map("mul.Tensor", {tensor_ref(each), tensor_ref(pick(wide))}, all);
  }
  const std::string row = e.write("rows", "aten.mean.dim", {tensor_ref(each), {1}, false}, rows);
  return reduced(e, row, int64_t(*reduction));
}

}  // namespace

Rule loss_rule(const std::string& base) {
  static const std::map<std::string, Rule> rules{{"binary_cross_entropy_with_logits", with_logits},
                                                 {"binary_cross_entropy", cross_entropy},
                                                 {"multi_margin_loss", multi_margin}};
  const auto rule = rules.find(base);
  return rule == rules.end() ? nullptr : rule->second;
}

}  // namespace cutegen::recipes
