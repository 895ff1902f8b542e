// SPDX-License-Identifier: Apache-2.0
#include "recipes/graph/products.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "recipes/graph/permutation.h"
#include "recipes/graph/pointwise.h"

namespace cutegen::recipes {
namespace {

Json refer(const std::string& name) {
  return {{"ref", name}};
}

Node make_node(const std::string& name, const std::string& op, std::vector<Json> args, DType dtype,
               Shape shape) {
  Node node;
  node.id = name;
  node.op = op;
  node.args = std::move(args);
  node.outputs.push_back({.name = name, .dtype = dtype, .shape = std::move(shape)});
  return node;
}

Result<std::string> tensor_argument(const Node& node, size_t index, const char* keyword) {
  if (auto name = reference(argument(node, index, keyword))) return *name;
  return unsupported_error(fmt::format("{}: argument {} is not a tensor", node.op, keyword),
                           node.id);
}

// beta * self + alpha * (a @ b)
Result<void> lower_sum_of_product(const Node& node, const std::string& product,
                                  std::vector<Node>& out) {
  const Value& result = node.outputs.front();
  CG_TRY(std::string self, tensor_argument(node, 0, "self"));
  CG_TRY(std::string a, tensor_argument(node, 1, product == "bmm" ? "batch1" : "mat1"));
  CG_TRY(std::string b, tensor_argument(node, 2, product == "bmm" ? "batch2" : "mat2"));
  auto beta = number(argument(node, 3, "beta")), alpha = number(argument(node, 4, "alpha"));
  std::string name = result.name + "__product";
  out.push_back(make_node(name, "aten." + product + ".default", {refer(a), refer(b)}, result.dtype,
                          result.shape));
  if (alpha.value_or(1) != 1) {
    out.push_back(make_node(result.name + "__scaled", "aten.mul.Tensor", {refer(name), *alpha},
                            result.dtype, result.shape));
    name = result.name + "__scaled";
  }
  Node last =
      beta.value_or(1) == 0
          ? make_node(result.name, "aten.clone.default", {refer(name)}, result.dtype, result.shape)
          : make_node(result.name, "aten.add.Tensor", {refer(name), refer(self)}, result.dtype,
                      result.shape);
  if (last.args.size() == 2) last.kwargs["alpha"] = beta.value_or(1);
  out.push_back(std::move(last));
  return {};
}

// Returns v if a factor is diag(v), with v on the main diagonal of its last two axes.
std::optional<std::string> diagonal_of(const Graph& graph, const std::string& factor) {
  const Node* node = graph.producer(factor);
  if (!node || base_name(node->op) != "diag_embed") return std::nullopt;
  auto is = [&](size_t i, const char* key, std::initializer_list<double> wanted) {
    auto value = number(argument(*node, i, key));
    for (double w : wanted)
      if (!value || *value == w) return true;
    return false;
  };
  auto rank = double(node->outputs.front().shape.size());
  if (!is(1, "offset", {0}) || !is(2, "dim1", {-2, rank - 2}) || !is(3, "dim2", {-1, rank - 1}))
    return std::nullopt;
  return reference(argument(*node, 0, "self"));
}

// diag(v) @ b is v as a column times b; a @ diag(v) is a times v as a row.
bool lower_diagonal(const Graph& graph, const Node& node, std::vector<Node>& out) {
  const Value& result = node.outputs.front();
  for (size_t side : {0u, 1u}) {
    auto factor = reference(argument(node, side, "")),
         other = reference(argument(node, 1 - side, ""));
    if (!factor || !other) return false;
    auto vector = diagonal_of(graph, *factor);
    const Value* value = vector ? graph.find(*vector) : nullptr;
    if (!value) continue;
    Shape shape = value->shape;
    shape.insert(side == 0 ? shape.end() : shape.end() - 1, 1);
    std::string name = result.name + "__diagonal";
    out.push_back(make_node(name, "aten.unsqueeze.default", {refer(*vector), side == 0 ? -1 : -2},
                            value->dtype, shape));
    out.push_back(make_node(result.name, "aten.mul.Tensor", {refer(name), refer(*other)},
                            result.dtype, result.shape));
    return true;
  }
  return false;
}

Result<void> lower_triangle(const Node& node, bool upper, Lowered& lowered,
                            std::vector<Node>& out) {
  const Value& result = node.outputs.front();
  CG_TRY(std::string self, tensor_argument(node, 0, "self"));
  Json diagonal = argument(node, 1, "diagonal");
  if (!diagonal.is_null() && !diagonal.is_number_integer())
    return unsupported_error(node.op + ": its diagonal is not an integer", node.id);
  std::string mask = result.name + "__mask";
  lowered.masks[mask] = {.upper = upper,
                         .diagonal = diagonal.is_null() ? 0 : diagonal.get<int64_t>()};
  lowered.graph.placeholders.push_back(
      {.name = mask, .dtype = DType::boolean, .shape = result.shape});
  out.push_back(make_node(result.name, "aten.where.self", {refer(mask), refer(self), 0.0},
                          result.dtype, result.shape));
  return {};
}

Result<void> lower_node(const Graph& graph, Node node, Lowered& lowered, std::vector<Node>& out) {
  std::string base = node.outputs.empty() ? "" : base_name(node.op);
  if (base == "addmm") return lower_sum_of_product(node, "mm", out);
  if (base == "baddbmm") return lower_sum_of_product(node, "bmm", out);
  if (base == "addmv") return lower_sum_of_product(node, "mv", out);
  if (base == "triu" || base == "tril") return lower_triangle(node, base == "triu", lowered, out);
  if ((base == "mm" || base == "bmm") && lower_diagonal(graph, node, out)) return {};
  out.push_back(std::move(node));
  return {};
}

bool same_matrix(const Shape& a, const Shape& b) {
  return a.size() > 1 && b.size() > 1 && std::equal(a.end() - 2, a.end(), b.end() - 2);
}

// Returns the operand of a transposition that swaps only the last two axes. Views between the
// transposition and `factor` may merge the axes before these two, as torch.matmul() does.
std::optional<std::string> transposed(const Graph& graph, std::string factor) {
  static const std::set<std::string> kMerges{"expand", "view", "_unsafe_view", "reshape"};
  for (;;) {
    const Node* node = graph.producer(factor);
    const auto from = node ? reference(argument(*node, 0, "self")) : std::nullopt;
    const Value* value = from ? graph.find(*from) : nullptr;
    if (!value) return std::nullopt;
    const Shape &before = value->shape, &after = node->outputs.front().shape;
    const std::string base = base_name(node->op);
    if (kMerges.contains(base) && same_matrix(before, after) &&
        element_count(before).value_or(-1) == element_count(after).value_or(-2)) {
      factor = *from;
      continue;
    }
    auto order = permutation(*node, base, before.size());
    if (order.size() < 2) return std::nullopt;
    std::swap(order[order.size() - 1], order[order.size() - 2]);
    return std::is_sorted(order.begin(), order.end()) ? from : std::nullopt;
  }
}

// [1, K] @ t([N, K]), as in a linear layer: multiplies each row of the matrix by the vector, and
// sums along K, along which the matrix is contiguous.
bool lower_row(const Graph& graph, const Node& product, const std::string& row,
               const std::string& wide, std::vector<Node>& out) {
  auto rows = transposed(graph, wide);
  if (!rows) return false;
  const Value& result = product.outputs.front();
  Shape shape = graph.find(wide)->shape;
  std::swap(shape[shape.size() - 1], shape[shape.size() - 2]);
  if (graph.find(*rows)->shape != shape) {
    const std::string merged = result.name + "__rows";
    out.push_back(make_node(merged, "aten.view.default", {refer(*rows), Json(shape)},
                            graph.find(*rows)->dtype, shape));
    rows = merged;
  }
  const std::string terms = result.name + "__terms", sums = result.name + "__sums";
  out.push_back(
      make_node(terms, "aten.mul.Tensor", {refer(*rows), refer(row)}, result.dtype, shape));
  out.push_back(make_node(sums, "aten.sum.dim_IntList", {refer(terms), Json::array({-1}), false},
                          result.dtype, Shape(shape.begin(), shape.end() - 1)));
  out.push_back(make_node(result.name, "aten.unsqueeze.default", {refer(sums), -2}, result.dtype,
                          result.shape));
  return true;
}

}  // namespace

bool is_product(const Node& node) {
  std::string base = base_name(node.op);
  return !node.outputs.empty() && (base == "mm" || base == "bmm" || base == "mv");
}

Result<Lowered> lower_products(Graph graph) {
  Lowered lowered;
  lowered.graph = graph;
  lowered.graph.nodes.clear();
  std::vector<Node> nodes;
  for (const Node& node : graph.nodes) CG_CHECK(lower_node(graph, node, lowered, nodes));
  lowered.graph.nodes = std::move(nodes);
  return lowered;
}

// [M, K] @ [K, 1]: multiplies each row of the first factor by the second, and sums along K.
// [1, K] @ [K, N]: multiplies each column of the second factor by the first, and sums along K.
Result<Graph> as_reduction(Graph graph, const std::string& product, Vector vector) {
  std::vector<Node> nodes;
  for (const Node& node : graph.nodes) {
    if (node.outputs.empty() || node.outputs.front().name != product) {
      nodes.push_back(node);
      continue;
    }
    const Value result = node.outputs.front();
    bool second = vector == Vector::second, flat = base_name(node.op) == "mv";
    CG_TRY(std::string narrow, tensor_argument(node, second ? 1 : 0, "factor"));
    CG_TRY(std::string wide, tensor_argument(node, second ? 0 : 1, "factor"));
    const Value *thin = graph.find(narrow), *whole = graph.find(wide);
    if (!thin || !whole) return unsupported_error(node.op + ": an unknown factor", node.id);
    auto rank = int64_t(whole->shape.size());
    if (!second && lower_row(graph, node, narrow, wide, nodes)) continue;
    if (!flat) {
      Shape turned = thin->shape;
      std::swap(turned[turned.size() - 1], turned[turned.size() - 2]);
      nodes.push_back(make_node(product + "__turned", "aten.transpose.int", {refer(narrow), -2, -1},
                                thin->dtype, turned));
      narrow = product + "__turned";
    }
    nodes.push_back(make_node(product + "__terms", "aten.mul.Tensor", {refer(wide), refer(narrow)},
                              result.dtype, whole->shape));
    Json axes = Json::array({second ? rank - 1 : rank - 2});
    nodes.push_back(make_node(product, "aten.sum.dim_IntList",
                              {refer(product + "__terms"), axes, !flat}, result.dtype,
                              result.shape));
  }
  graph.nodes = std::move(nodes);
  return graph;
}

}  // namespace cutegen::recipes
