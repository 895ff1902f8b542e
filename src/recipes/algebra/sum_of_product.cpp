// SPDX-License-Identifier: Apache-2.0
// sum(x @ w, 1) = x . sum(w, 1): a sum or mean over the rows or columns of a matrix product.
//
// Numerical condition: the sums of the factor are float32 sums that carry their rounding errors, so
// the result is as accurate as the sum of the product. An infinite element makes an infinite or
// undefined sum in both graphs: inf * w1 + inf * w2 is inf * (w1 + w2), or undefined.
#include <fmt/format.h>

#include <algorithm>

#include "recipes/algebra/linear.h"
#include "recipes/algebra/rules.h"
#include "recipes/graph/pointwise.h"
#include "recipes/graph/reductions.h"

namespace cutegen::recipes {
namespace {

bool has(const std::vector<int>& axes, size_t axis) {
  return std::find(axes.begin(), axes.end(), int(axis)) != axes.end();
}

std::string turned(Editor& edit, const std::string& value) {
  Shape shape = edit.shape(value);
  std::swap(shape[shape.size() - 1], shape[shape.size() - 2]);
  return edit.add("turned", "aten.transpose.int", {value_ref(value), -2, -1}, shape);
}

// The sum of a @ b over its rows, its columns, or both.
std::string sum_of(const LinearSum& sum, const std::string& a, const std::string& b, bool rows,
                   bool columns, const Factors& factors) {
  Editor& edit = sum.edit();
  const int rank = int(edit.shape(a).size());
  std::string left = rows ? sum.direct(a, {rank - 2}) : a;
  std::string right = columns ? sum.direct(b, {rank - 1}) : b;
  if (columns)
    right = sum.times(right, factors);
  else
    left = sum.times(left, factors);
  // The result is a column if the columns are summed, and a row otherwise.
  const bool column = columns;
  if (column)
    right = turned(edit, right);
  else
    left = turned(edit, left);
  Shape shape = edit.shape(column ? left : right);
  const std::string terms =
      edit.add("terms", "aten.mul.Tensor", {value_ref(left), value_ref(right)}, shape);
  const int depth = column ? rank - 1 : rank - 2;
  shape[size_t(depth)] = 1;
  return edit.add("total", "aten.sum.dim_IntList", {value_ref(terms), Json::array({depth}), true},
                  shape);
}

std::optional<std::string> product_base(const LinearSum& sum, const Node& node,
                                        const std::vector<int>& axes, const Factors& factors) {
  const std::string base = base_name(node.op);
  const bool plain = base == "mm" || base == "bmm", biased = base == "addmm";
  if (!plain && !biased) return std::nullopt;
  Editor& edit = sum.edit();
  const Shape& shape = node.outputs.front().shape;
  const size_t rank = shape.size();
  const bool rows = has(axes, rank - 2), columns = has(axes, rank - 1);
  if (size_t(rows) + size_t(columns) != axes.size() || axes.empty()) return std::nullopt;
  if ((rows && shape[rank - 2] == 1) || (columns && shape[rank - 1] == 1)) return std::nullopt;
  auto a = reference(argument(node, biased ? 1 : 0, "self")),
       b = reference(argument(node, biased ? 2 : 1, "mat2"));
  if (!a || !b || edit.shape(*a).size() != rank || edit.shape(*b).size() != rank)
    return std::nullopt;
  if (!biased) return sum_of(sum, *a, *b, rows, columns, factors);
  auto bias = reference(argument(node, 0, "self"));
  const bool whole = number(argument(node, 3, "beta")).value_or(1) == 1 &&
                     number(argument(node, 4, "alpha")).value_or(1) == 1;
  // A bias has one element per column: its sum over the rows would depend on the number of rows.
  if (!bias || !whole || edit.shape(*bias) != Shape{shape[1]} || (rows && !sum.mean()))
    return std::nullopt;
  const std::string product = sum_of(sum, *a, *b, rows, columns, factors);
  const std::string shift = sum.times(columns ? sum.direct(*bias, {0}) : *bias, factors);
  return edit.add("biased", "aten.add.Tensor", {value_ref(product), value_ref(shift)},
                  edit.shape(product));
}

}  // namespace

Effect sum_of_product(Editor& edit) {
  for (const Node& node : edit.graph().nodes) {
    auto r = find_reduction(edit.graph(), node);
    if (!r || !*r || (*r)->elementwise || node.outputs.size() != 1) continue;
    const Reduction& reduction = **r;
    const bool mean = reduction.base == "mean";
    if (!mean && reduction.base != "sum") continue;
    auto found = LinearSum(edit, mean, product_base).of(reduction.input, reduction.axes);
    if (!found) {
      edit.discard();
      continue;
    }
    int64_t results = 1;
    for (int axis : reduction.axes) results *= reduction.shape[size_t(axis)];
    std::string effect =
        fmt::format("the {} over {} results of a matrix product becomes a product with {}",
                    mean ? "mean" : "sum", results, mean ? "a mean" : "a sum");
    edit.replace(node.id, *found);
    return effect + " of its factor";
  }
  return std::nullopt;
}

}  // namespace cutegen::recipes
