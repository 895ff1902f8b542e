// SPDX-License-Identifier: Apache-2.0
#include "recipes/graph/reductions.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "recipes/graph/pointwise.h"

namespace cutegen::recipes {
namespace {

// Positions of an operator's arguments; -1 if it lacks the argument.
struct Form {
  int dim, keepdim, parameter;
  const char* parameter_keyword = "";
  double parameter_default = 0;
};

const std::map<std::string, Form>& forms() {
  static const std::map<std::string, Form> table{
      {"sum", {.dim = 1, .keepdim = 2, .parameter = -1}},
      {"mean", {.dim = 1, .keepdim = 2, .parameter = -1}},
      {"amax", {.dim = 1, .keepdim = 2, .parameter = -1}},
      {"amin", {.dim = 1, .keepdim = 2, .parameter = -1}},
      {"max", {.dim = 1, .keepdim = 2, .parameter = -1}},
      {"min", {.dim = 1, .keepdim = 2, .parameter = -1}},
      {"prod", {.dim = 1, .keepdim = 2, .parameter = -1}},
      {"any", {.dim = 1, .keepdim = 2, .parameter = -1}},
      {"count_nonzero", {.dim = 1, .keepdim = 2, .parameter = -1}},  // it has no third argument
      {"all", {.dim = 1, .keepdim = 2, .parameter = -1}},
      {"argmax", {.dim = 1, .keepdim = 2, .parameter = -1}},
      {"argmin", {.dim = 1, .keepdim = 2, .parameter = -1}},
      {"logsumexp", {.dim = 1, .keepdim = 2, .parameter = -1}},
      {"norm",
       {.dim = 2, .keepdim = 3, .parameter = 1, .parameter_keyword = "p", .parameter_default = 2}},
      {"linalg_vector_norm",
       {.dim = 2,
        .keepdim = 3,
        .parameter = 1,
        .parameter_keyword = "ord",
        .parameter_default = 2}},
      {"var",
       {.dim = 1,
        .keepdim = 3,
        .parameter = 2,
        .parameter_keyword = "correction",
        .parameter_default = 1}},
      {"std",
       {.dim = 1,
        .keepdim = 3,
        .parameter = 2,
        .parameter_keyword = "correction",
        .parameter_default = 1}},
      {"_softmax", {.dim = 1, .keepdim = -1, .parameter = -1}},
      {"_safe_softmax", {.dim = 1, .keepdim = -1, .parameter = -1}},
      {"_log_softmax", {.dim = 1, .keepdim = -1, .parameter = -1}},
      {"softmax", {.dim = 1, .keepdim = -1, .parameter = -1}},
      {"log_softmax", {.dim = 1, .keepdim = -1, .parameter = -1}},
  };
  return table;
}

Result<std::vector<int>> axes_of(const Node& node, const Json& dim, size_t rank) {
  std::vector<int> axes;
  Json list = dim.is_number_integer() ? Json::array({dim}) : dim;
  if (list.is_null() || (list.is_array() && list.empty())) {
    axes.resize(rank);
    std::iota(axes.begin(), axes.end(), 0);
    return axes;
  }
  if (!list.is_array()) return unsupported_error(node.op + ": axes are not integers", node.id);
  for (const Json& item : list) {
    if (!item.is_number_integer())
      return unsupported_error(node.op + ": axes are not integers", node.id);
    auto axis = item.get<int64_t>();
    if (axis < 0) axis += int64_t(rank);
    if (axis < 0 || axis >= int64_t(rank))
      return unsupported_error(fmt::format("{}: no axis {}", node.op, item.dump()), node.id);
    axes.push_back(int(axis));
  }
  std::sort(axes.begin(), axes.end());
  axes.erase(std::unique(axes.begin(), axes.end()), axes.end());
  return axes;
}

// native_layer_norm(x, shape, weight, bias, eps) and _fused_rms_norm(x, shape, weight, eps).
Result<std::optional<Reduction>> find_norm(const Node& node, Reduction r) {
  bool layer = r.base == "native_layer_norm";
  Json shape = argument(node, 1, "normalized_shape");
  if (!shape.is_array() || shape.empty() || shape.size() > r.shape.size())
    return unsupported_error(node.op + ": normalized_shape is not a list", node.id);
  for (size_t i = r.shape.size() - shape.size(); i < r.shape.size(); ++i) r.axes.push_back(int(i));
  r.elementwise = true;
  r.affine.push_back(reference(argument(node, 2, "weight")));
  if (layer) r.affine.push_back(reference(argument(node, 3, "bias")));
  auto eps = number(argument(node, layer ? 4 : 3, "eps"));
  if (!eps) return unsupported_error(node.op + ": eps is not a number", node.id);
  r.parameter = *eps;
  return std::optional<Reduction>(std::move(r));
}

// cutegen.pick(x, index, axis)
Result<std::optional<Reduction>> find_pick(const Node& node, Reduction r) {
  r.index = reference(argument(node, 1, ""));
  CG_TRY(r.axes, axes_of(node, argument(node, 2, ""), r.shape.size()));
  return std::optional<Reduction>(std::move(r));
}

// cutegen.scan(x, axis, kind, reversed, exclusive)
Result<std::optional<Reduction>> scan_along_axis(const Node& node, Reduction r) {
  r.scan = find_scan(node);
  r.elementwise = true;
  CG_TRY(r.axes, axes_of(node, argument(node, 1, ""), r.shape.size()));
  return std::optional<Reduction>(std::move(r));
}

}  // namespace

Result<std::optional<Reduction>> find_reduction(const Graph& graph, const Node& node) {
  std::optional<Reduction> none;
  const bool pick = node.op == "cutegen.pick", scan = node.op == kScan;
  if ((node.op.rfind("aten.", 0) != 0 && !pick && !scan) || node.op == "aten.max.other" ||
      node.op == "aten.min.other")
    return none;
  Reduction r;
  r.base = base_name(node.op);
  if (pick) r.base = "pick";
  if (scan) r.base = "scan";
  bool norm = r.base == "native_layer_norm" || r.base == "_fused_rms_norm" || r.base == "rms_norm";
  auto form = forms().find(r.base);
  if (!norm && !pick && !scan && form == forms().end()) return none;
  auto input = reference(argument(node, 0, "self"));
  if (!input) input = reference(argument(node, 0, "input"));
  const Value* value = input ? graph.find(*input) : nullptr;
  if (!value)
    return unsupported_error(node.op + ": its input is not a tensor of the graph", node.id);
  r.input = *input;
  r.shape = value->shape;
  if (r.shape.empty()) return unsupported_error(node.op + " of a scalar", node.id);
  if (norm) return find_norm(node, std::move(r));
  if (pick) return find_pick(node, std::move(r));
  if (scan) return scan_along_axis(node, std::move(r));
  const Form& f = form->second;
  CG_TRY(r.axes, axes_of(node, argument(node, size_t(f.dim), "dim"), r.shape.size()));
  r.elementwise = f.keepdim < 0;
  if (f.keepdim >= 0)
    r.keepdim = number(argument(node, size_t(f.keepdim), "keepdim")).value_or(0) != 0;
  if (f.parameter >= 0) {
    Json p = argument(node, size_t(f.parameter), f.parameter_keyword);
    if (!p.is_null() && !number(p))
      return unsupported_error(node.op + ": its order is not a number", node.id);
    r.parameter = number(p).value_or(f.parameter_default);
  }
  return std::optional<Reduction>(std::move(r));
}

}  // namespace cutegen::recipes
