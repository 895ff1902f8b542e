// SPDX-License-Identifier: Apache-2.0
// Composites of products, norms and sums: distances, bilinear layers, weight norm.
#include <map>
#include <utility>

#include "recipes/composites/expansion.h"

namespace cutegen::recipes {
namespace {

// The tensor with its last two axes exchanged.
std::string transposed(Expansion& e, const std::string& x, Shape shape) {
  std::swap(shape[shape.size() - 1], shape[shape.size() - 2]);
  return e.write("transposed", "aten.transpose.int", {tensor_ref(x), -2, -1}, shape);
}

// dot(x, y) and vdot(x, y)
bool dot(Expansion& e) {
  const Value *x = e.input(0), *y = e.input(1);
  if (!x || !y || x->shape != y->shape || !is_floating(x->dtype)) return false;
  const std::string each =
      e.map("mul.Tensor", {tensor_ref(x->name), tensor_ref(y->name)}, x->shape);
  e.write("sum", "aten.sum.default", {tensor_ref(each)}, {}, e.result().name);
  return true;
}

// _int_mm(x, y): products of 8-bit integers, summed as 64-bit integers
bool integer_product(Expansion& e) {
  const Value *x = e.input(0), *y = e.input(1);
  if (!x || !y || x->shape.size() != 2 || y->shape.size() != 2) return false;
  const int64_t rows = x->shape[0], depth = x->shape[1], columns = y->shape[1];
  const std::string turned = e.as(y->dtype, transposed(e, y->name, y->shape));
  const std::string row = e.as(x->dtype, e.view(x->name, {rows, 1, depth})),
                    column = e.as(y->dtype, e.write("column", "aten.unsqueeze.default",
                                                    {tensor_ref(turned), 0}, {1, columns, depth}));
  const Shape all{rows, columns, depth};
  const std::string terms =
      e.map("mul.Tensor", {tensor_ref(row), tensor_ref(column)}, all, DType::i64);
  const std::string sum = e.as(
      DType::i64,
      e.write("sum", "aten.sum.dim_IntList", {tensor_ref(terms), {-1}, false}, e.result().shape));
  e.write("narrow", "aten._to_copy.default", {tensor_ref(sum)}, e.result().shape, e.result().name);
  return true;
}

// _euclidean_dist(x, y): computed as in PyTorch, sqrt(|x|^2 + |y|^2 - 2 x . y).
bool euclidean(Expansion& e) {
  const Value *x = e.input(0), *y = e.input(1);
  if (!x || !y || x->shape.size() != y->shape.size() || x->shape.size() < 2 || x->shape.size() > 3)
    return false;
  const auto squares = [&](const Value& v) {
    Shape kept = v.shape;
    kept.back() = 1;
    const std::string square = e.map("square.default", {tensor_ref(v.name)}, v.shape);
    return e.write("squares", "aten.sum.dim_IntList", {tensor_ref(square), {-1}, true}, kept);
  };
  Shape column = y->shape;
  column.back() = 1;
  const Shape& all = e.result().shape;
  const std::string of_x = squares(*x), of_y = transposed(e, squares(*y), column);
  const std::string product =
      e.write("product", x->shape.size() == 2 ? "aten.mm.default" : "aten.bmm.default",
              {tensor_ref(x->name), tensor_ref(transposed(e, y->name, y->shape))}, all);
  std::string sum = e.map("mul.Scalar", {tensor_ref(product), -2}, all);
  sum = e.map("add.Tensor", {tensor_ref(sum), tensor_ref(of_x)}, all);
  sum = e.map("add.Tensor", {tensor_ref(sum), tensor_ref(of_y)}, all);
  sum = e.map("clamp_min.default", {tensor_ref(sum), 0}, all);
  e.write("distance", "aten.sqrt.default", {tensor_ref(sum)}, all, e.result().name);
  return true;
}

// _cdist_forward(x, y, p, mode)
bool distances(Expansion& e) {
  const Value *x = e.input(0), *y = e.input(1);
  const auto p = e.number_at(2);
  if (!x || !y || !p || x->shape.size() != y->shape.size() || x->shape.size() < 2) return false;
  const size_t rank = x->shape.size();
  Shape rows = x->shape, columns = y->shape, all = e.result().shape;
  rows.insert(rows.end() - 1, 1), columns.insert(columns.end() - 2, 1);
  all.push_back(x->shape[rank - 1]);
  const std::string a = e.write("rows", "aten.unsqueeze.default",
                                {tensor_ref(x->name), int64_t(rank) - 1}, rows),
                    b = e.write("columns", "aten.unsqueeze.default",
                                {tensor_ref(y->name), int64_t(rank) - 2}, columns),
                    apart = e.map("sub.Tensor", {tensor_ref(a), tensor_ref(b)}, all);
  e.write("distance", "aten.linalg_vector_norm.default", {tensor_ref(apart), *p, {-1}, false},
          e.result().shape, e.result().name);
  return true;
}

// dist(x, y, p)
bool distance(Expansion& e) {
  const Value *x = e.input(0), *y = e.input(1);
  const Json p = e.arg(2);
  if (!x || !y || x->shape != y->shape) return false;
  const std::string apart =
      e.map("sub.Tensor", {tensor_ref(x->name), tensor_ref(y->name)}, x->shape);
  e.write("norm", "aten.linalg_vector_norm.default",
          {tensor_ref(apart), p.is_null() ? Json(2) : p, nullptr, false}, {}, e.result().name);
  return true;
}

// _trilinear as torch.nn.Bilinear calls it: out[n, o] = sum over i, j of x[n, i] w[o, i, j] y[n,
// j].
bool bilinear(Expansion& e) {
  const Value *x = e.input(0), *w = e.input(1), *y = e.input(2);
  const bool known = e.arg(3) == Json{1, 3} && e.arg(4) == Json::array({0}) &&
                     e.arg(5) == Json{1, 2} && e.arg(6) == Json{2, 3};
  if (!x || !w || !y || !known || x->shape.size() != 2 || y->shape.size() != 2 ||
      w->shape.size() != 3)
    return false;
  const int64_t n = x->shape[0], o = w->shape[0], i = w->shape[1], j = w->shape[2];
  const std::string turned =
      e.write("turned", "aten.permute.default", {tensor_ref(w->name), Json{1, 0, 2}}, {i, o, j});
  const std::string wide = e.view(turned, {i, o * j});
  const std::string product =
      e.write("product", "aten.mm.default", {tensor_ref(x->name), tensor_ref(wide)}, {n, o * j});
  const std::string each = e.map(
      "mul.Tensor",
      {tensor_ref(e.view(product, {n, o, j})), tensor_ref(e.view(y->name, {n, 1, j}))}, {n, o, j});
  e.write("sum", "aten.sum.dim_IntList", {tensor_ref(each), {-1}, false}, {n, o}, e.result().name);
  return true;
}

// _weight_norm_interface(v, g, dim): v * (g / |v|), and the norms.
bool weight_norm(Expansion& e) {
  const Value *v = e.input(0), *g = e.input(1);
  const auto kept = e.axis(2, v);
  if (!kept || !g || g->shape.size() != v->shape.size()) return false;
  Json axes = Json::array();
  for (size_t i = 0; i < v->shape.size(); ++i)
    if (i != *kept) axes.push_back(i);
  const std::string norm =
      e.write("norm", "aten.linalg_vector_norm.default", {tensor_ref(v->name), 2, axes, true},
              g->shape, e.is_read(1) ? e.result(1).name : "");
  const std::string scale = e.map("div.Tensor", {tensor_ref(g->name), tensor_ref(norm)}, g->shape);
  e.write("weight", "aten.mul.Tensor", {tensor_ref(v->name), tensor_ref(scale)}, v->shape,
          e.result().name);
  return true;
}

// linalg_cross(x, y, dim): x1 y2 - x2 y1; 1 and 2 are the next two of the three elements,
// cyclically.
bool cross(Expansion& e) {
  const Value *x = e.input(0), *y = e.input(1);
  Json dim = e.node.kwargs.value("dim", e.arg(2));
  if (!x || !y || x->shape != y->shape) return false;
  if (dim.is_null()) dim = -1;
  const auto next = [&](const Value& v, int by) {
    return tensor_ref(e.write("next", "aten.roll.default",
                              {tensor_ref(v.name), Json::array({-by}), Json::array({dim})},
                              v.shape));
  };
  const std::string a = e.map("mul.Tensor", {next(*x, 1), next(*y, 2)}, x->shape),
                    b = e.map("mul.Tensor", {next(*x, 2), next(*y, 1)}, x->shape);
  e.write("cross", "aten.sub.Tensor", {tensor_ref(a), tensor_ref(b)}, x->shape, e.result().name);
  return true;
}

// nansum(x, dim, keepdim)
bool sum_of_numbers(Expansion& e) {
  const Value* x = e.input(0);
  if (!x || !is_floating(x->dtype)) return false;
  const std::string undefined =
      e.map("isnan.default", {tensor_ref(x->name)}, x->shape, DType::boolean);
  const std::string kept =
      e.map("masked_fill.Scalar", {tensor_ref(x->name), tensor_ref(undefined), 0}, x->shape);
  e.write("sum", "aten.sum.dim_IntList", {tensor_ref(kept), e.arg(1), e.arg(2)}, e.result().shape,
          e.result().name);
  return true;
}

// aminmax(x, *, dim, keepdim)
bool both_extremes(Expansion& e) {
  const Value* x = e.input(0);
  if (!x) return false;
  const Json dim = e.node.kwargs.value("dim", Json()),
             keep = e.node.kwargs.value("keepdim", Json());
  const Json axes = dim.is_null() ? Json::array() : Json::array({dim});
  for (size_t i = 0; i < 2; ++i)
    if (e.is_read(i))
      e.write("extreme", i == 0 ? "aten.amin.default" : "aten.amax.default",
              {tensor_ref(x->name), axes, keep}, e.result(i).shape, e.result(i).name);
  return true;
}

}  // namespace

Rule product_rule(const std::string& base) {
  static const std::map<std::string, Rule> rules{{"dot", dot},
                                                 {"_int_mm", integer_product},
                                                 {"vdot", dot},
                                                 {"_euclidean_dist", euclidean},
                                                 {"_cdist_forward", distances},
                                                 {"dist", distance},
                                                 {"_trilinear", bilinear},
                                                 {"_weight_norm_interface", weight_norm},
                                                 {"linalg_cross", cross},
                                                 {"nansum", sum_of_numbers},
                                                 {"aminmax", both_extremes}};
  const auto rule = rules.find(base);
  return rule == rules.end() ? nullptr : rule->second;
}

}  // namespace cutegen::recipes
