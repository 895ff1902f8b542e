// SPDX-License-Identifier: Apache-2.0
#include "eval/diagnosis/dependence.h"

#include <algorithm>
#include <set>

namespace cutegen::eval {
namespace {

constexpr int64_t kEnd = INT64_MAX;  // the end of an axis whose size is not known here
constexpr IndexRange kWhole{.low = 0, .high = kEnd};

// "aten.relu_.default" -> "relu"
std::string base_of(const std::string& op) {
  if (!op.starts_with("aten.")) return {};
  std::string name = op.substr(5, op.find('.', 5) - 5);
  if (name.ends_with('_') && !name.ends_with("__")) name.pop_back();
  return name;
}

// Each element of the result depends only on the elements at its own index, with broadcasting.
bool is_pointwise(const std::string& op) {
  static const std::set<std::string> kNames{
      "abs",          "add",         "addcdiv",    "addcmul",     "alias",       "atan2",
      "bitwise_and",  "bitwise_not", "bitwise_or", "bitwise_xor", "ceil",        "celu",
      "clamp",        "clamp_max",   "clamp_min",  "clone",       "contiguous",  "copysign",
      "cos",          "detach",      "div",        "dropout",     "elu",         "eq",
      "erf",          "erfc",        "exp",        "exp2",        "expm1",       "floor",
      "floor_divide", "fmod",        "frac",       "ge",          "gelu",        "gt",
      "hardshrink",   "hardsigmoid", "hardswish",  "hardtanh",    "isfinite",    "isinf",
      "isnan",        "le",          "leaky_relu", "lerp",        "lift_fresh",  "log",
      "log10",        "log1p",       "log2",       "log_sigmoid", "logical_and", "logical_not",
      "logical_or",   "logical_xor", "lt",         "masked_fill", "maximum",     "minimum",
      "mish",         "mul",         "ne",         "neg",         "nan_to_num",  "pow",
      "prelu",        "reciprocal",  "relu",       "relu6",       "remainder",   "round",
      "rsqrt",        "rsub",        "selu",       "sgn",         "sigmoid",     "sign",
      "silu",         "sin",         "softplus",   "softshrink",  "sqrt",        "square",
      "sub",          "tan",         "tanh",       "threshold",   "to",          "tril",
      "triu",         "trunc",       "where",      "_to_copy",    "xlogy",       "zeros_like",
      "ones_like",    "full_like",   "expand",     "copy"};
  return kNames.contains(op);
}

bool is_reduction(const std::string& op) {
  static const std::set<std::string> kNames{
      "sum",  "mean",   "amax",     "amin",    "max", "min", "argmax",    "argmin",
      "prod", "var",    "std",      "median",  "all", "any", "logsumexp", "linalg_vector_norm",
      "norm", "nansum", "var_mean", "std_mean"};
  return kNames.contains(op);
}

// The result has the shape of the input, and an element depends on a whole line along one axis.
bool is_row_wise(const std::string& op) {
  static const std::set<std::string> kNames{"_softmax", "softmax", "_log_softmax", "log_softmax",
                                            "_safe_softmax"};
  return kNames.contains(op);
}

bool is_prefix(const std::string& op) {
  static const std::set<std::string> kNames{"cumsum", "cumprod", "cummax", "cummin",
                                            "logcumsumexp"};
  return kNames.contains(op);
}

std::vector<int64_t> integers(const Json& json) {
  std::vector<int64_t> out;
  if (json.is_number_integer()) out.push_back(json.get<int64_t>());
  if (json.is_array())
    for (const Json& item : json)
      if (item.is_number_integer()) out.push_back(item.get<int64_t>());
  return out;
}

Json argument(const Node& node, size_t index, const char* keyword = "") {
  if (auto it = node.kwargs.find(keyword); it != node.kwargs.end()) return *it;
  return index < node.args.size() ? node.args[index] : Json();
}

std::string reference(const Json& json) {
  if (!json.is_object() || !json.contains("ref") || !json["ref"].is_string()) return {};
  return json["ref"].get<std::string>();
}

void collect(const Json& json, std::vector<std::string>& out) {
  if (std::string name = reference(json); !name.empty()) out.push_back(name);
  if (json.is_array())
    for (const Json& item : json) collect(item, out);
}

std::vector<std::string> operands_of(const Node& node) {
  std::vector<std::string> out;
  for (const Json& arg : node.args) collect(arg, out);
  for (const auto& [key, value] : node.kwargs.items()) collect(value, out);
  return out;
}

std::set<size_t> axes_of(const std::vector<int64_t>& dims, size_t rank) {
  std::set<size_t> out;
  for (int64_t d : dims) out.insert(size_t(d < 0 ? d + int64_t(rank) : d));
  if (dims.empty())
    for (size_t d = 0; d < rank; ++d) out.insert(d);
  return out;
}

// The window of an axis: output index i reads i * stride - padding + t * dilation, t < size.
IndexRange window(const IndexRange& at, int64_t size, int64_t stride, int64_t padding,
                  int64_t dilation) {
  if (at.high == kEnd) return kWhole;
  return {.low = std::max<int64_t>(at.low * stride - padding, 0),
          .high = std::max<int64_t>(at.high * stride - padding + (size - 1) * dilation, 0)};
}

int64_t item(const std::vector<int64_t>& list, size_t d, int64_t otherwise) {
  return list.empty() ? otherwise : list[std::min(d, list.size() - 1)];
}

// The region of the input of rank `rank` behind a region of the result of pooling.
std::optional<Region> pooled(const Node& node, const std::string& op, size_t rank,
                             const Region& region) {
  const size_t axes = op.find("1d") != std::string::npos   ? 1
                      : op.find("2d") != std::string::npos ? 2
                                                           : 3;
  if (op.find("adaptive") != std::string::npos || rank != region.size()) return std::nullopt;
  const auto size = integers(argument(node, 1, "kernel_size")),
             stride = integers(argument(node, 2, "stride")),
             padding = integers(argument(node, 3, "padding"));
  const auto dilation =
      op.starts_with("max") ? integers(argument(node, 4, "dilation")) : std::vector<int64_t>();
  if (size.empty() || region.size() < axes) return std::nullopt;
  Region out = region;
  for (size_t d = 0; d < axes; ++d) {
    IndexRange& r = out[region.size() - axes + d];
    r = window(r, item(size, d, 1), item(stride, d, item(size, d, 1)), item(padding, d, 0),
               item(dilation, d, 1));
  }
  return out;
}

// Operators that move whole axes or cut them.
std::optional<Region> reordered(const Node& node, const std::string& op, size_t rank,
                                const Region& region) {
  Region out = region;
  auto axis = [&](size_t index, size_t of) {
    const auto d = integers(argument(node, index, "dim"));
    return d.size() == 1 ? size_t(d[0] < 0 ? d[0] + int64_t(of) : d[0]) : of;
  };
  if (op == "t" && rank == 2) {
    std::swap(out[0], out[1]);
  } else if (op == "t" && rank < 2) {
  } else if (op == "transpose" && axis(1, rank) < rank && axis(2, rank) < rank) {
    std::swap(out[axis(1, rank)], out[axis(2, rank)]);
  } else if (op == "permute") {
    const auto dims = integers(argument(node, 1, "dims"));
    if (dims.size() != rank) return std::nullopt;
    for (size_t d = 0; d < rank; ++d)
      out[size_t(dims[d] < 0 ? dims[d] + int64_t(rank) : dims[d])] = region[d];
  } else if (op == "unsqueeze" && axis(1, region.size()) < region.size()) {
    out.erase(out.begin() + long(axis(1, region.size())));
  } else if (op == "squeeze" && rank == region.size() + 1 && axis(1, rank) < rank) {
    out.insert(out.begin() + long(axis(1, rank)), IndexRange{});
  } else if (op == "select" && rank == region.size() + 1 && axis(1, rank) < rank) {
    const auto index = integers(argument(node, 2, "index"));
    if (index.size() != 1 || index[0] < 0 || !node.sizes.empty()) return std::nullopt;
    out.insert(out.begin() + long(axis(1, rank)), IndexRange{.low = index[0], .high = index[0]});
  } else if (op == "slice" && axis(1, rank) < rank) {
    const auto start = integers(argument(node, 2, "start")),
               by = integers(argument(node, 4, "step"));
    const bool moves = std::any_of(node.sizes.begin(), node.sizes.end(),
                                   [](const SizeArgument& s) { return s.index == 2; });
    if (item(start, 0, 0) < 0 || moves) return std::nullopt;
    IndexRange& r = out[axis(1, rank)];
    r = {.low = r.low * item(by, 0, 1) + item(start, 0, 0),
         .high = r.high == kEnd ? kEnd : r.high * item(by, 0, 1) + item(start, 0, 0)};
  } else {
    return std::nullopt;
  }
  return out;
}

// Follows one element of one output back to the placeholders.
class Walk {
 public:
  explicit Walk(const Graph& graph) : graph_(graph) {}

  void start(const std::string& value, Region region) { need(value, std::move(region)); }

  void run() {
    for (size_t i = graph_.nodes.size(); i-- > 0;) {
      const Node& node = graph_.nodes[i];
      for (const Value& out : node.outputs) {
        auto it = needed_.find(out.name);
        if (it == needed_.end()) continue;
        const auto region = it->second;
        if (!region || region->size() != out.shape.size() || !step(node, out, *region))
          for (const std::string& name : operands_of(node)) unknown(name);
      }
    }
  }

  const std::map<std::string, std::optional<Region>>& needed() const { return needed_; }

 private:
  void unknown(const std::string& value) { needed_[value] = std::nullopt; }

  void need(const std::string& value, Region region) {
    auto [it, fresh] = needed_.emplace(value, region);
    if (fresh || !it->second) return;
    if (it->second->size() != region.size()) return unknown(value);
    for (size_t d = 0; d < region.size(); ++d) {
      IndexRange& r = (*it->second)[d];
      r = {.low = std::min(r.low, region[d].low), .high = std::max(r.high, region[d].high)};
    }
  }

  size_t rank_of(const std::string& value) const {
    const Value* v = graph_.find(value);
    return v ? v->shape.size() : 0;
  }

  // Needs the elements of `value` that broadcast to this region of a result with shape `shape`.
  void broadcast(const std::string& value, const Region& region, const Shape& shape) {
    const Value* v = graph_.find(value);
    if (!v || v->shape.size() > region.size()) return unknown(value);
    const size_t skipped = region.size() - v->shape.size();
    Region out;
    for (size_t d = 0; d < v->shape.size(); ++d)
      out.push_back(v->shape[d] == 1 && shape[d + skipped] != 1 ? IndexRange{}
                                                                : region[d + skipped]);
    need(value, std::move(out));
  }

  bool step(const Node& node, const Value& out, const Region& region) {
    const std::string op = base_of(node.op);
    const std::string in = reference(argument(node, 0));
    if ((op == "max" || op == "min") && node.op.ends_with(".other"))
      return pointwise(node, out, region);
    if (is_pointwise(op)) return pointwise(node, out, region);
    if (op == "mm" || op == "bmm" || op == "matmul" || op == "mv")
      return product(in, reference(argument(node, 1)), region);
    if (op == "addmm" || op == "baddbmm") {
      broadcast(in, region, out.shape);
      return product(reference(argument(node, 1)), reference(argument(node, 2)), region);
    }
    if (op == "linear") return linear(node, region);
    if (op == "convolution" || op.starts_with("conv")) return convolution(node, op, region);
    if (in.empty()) return operands_of(node).empty();
    if (is_reduction(op)) return reduction(node, op, in, region);
    if (is_row_wise(op) || is_prefix(op)) return line(node, op, in, region);
    if (op == "native_layer_norm" || op == "layer_norm" || op == "rms_norm")
      return norm(node, in, region);
    auto behind = op.find("pool") != std::string::npos ? pooled(node, op, rank_of(in), region)
                                                       : reordered(node, op, rank_of(in), region);
    if (behind) need(in, std::move(*behind));
    return behind.has_value();
  }

  bool pointwise(const Node& node, const Value& out, const Region& region) {
    for (const std::string& name : operands_of(node)) broadcast(name, region, out.shape);
    return true;
  }

  bool reduction(const Node& node, const std::string& op, const std::string& in,
                 const Region& region) {
    const bool second = op == "linalg_vector_norm" || op == "norm";
    const size_t rank = rank_of(in);
    const auto axes = axes_of(integers(argument(node, second ? 2 : 1, "dim")), rank);
    const bool kept = region.size() == rank;
    if (!kept && region.size() + axes.size() != rank) return false;
    Region out;
    for (size_t d = 0, at = 0; d < rank; ++d) {
      out.push_back(axes.contains(d) ? kWhole : region[kept ? d : at]);
      if (!axes.contains(d)) ++at;
    }
    need(in, std::move(out));
    return true;
  }

  bool line(const Node& node, const std::string& op, const std::string& in, const Region& region) {
    const auto dims = integers(argument(node, 1, "dim"));
    if (dims.size() != 1 || rank_of(in) != region.size() || region.empty()) return false;
    Region out = region;
    IndexRange& along = out[*axes_of(dims, region.size()).begin()];
    along = is_prefix(op) ? IndexRange{.low = 0, .high = along.high} : kWhole;
    need(in, std::move(out));
    return true;
  }

  bool norm(const Node& node, const std::string& in, const Region& region) {
    const size_t axes = integers(argument(node, 1, "normalized_shape")).size();
    if (axes == 0 || rank_of(in) != region.size() || region.size() < axes) return false;
    for (const std::string& name : operands_of(node))
      if (name != in) need(name, Region(region.end() - long(axes), region.end()));
    Region out = region;
    std::fill(out.end() - long(axes), out.end(), kWhole);
    need(in, std::move(out));
    return true;
  }

  // a [..., m, k] times b [..., k, n]; a vector lacks the axis m or n.
  bool product(const std::string& a, const std::string& b, const Region& region) {
    const Value *left = graph_.find(a), *right = graph_.find(b);
    if (!left || !right) return false;
    const size_t left_rank = left->shape.size(), right_rank = right->shape.size();
    const size_t kept = (left_rank > 1 ? 1 : 0) + (right_rank > 1 ? 1 : 0);
    if (left_rank == 0 || right_rank == 0 || region.size() < kept) return false;
    const size_t batch = region.size() - kept;
    if (left_rank > batch + 2 || right_rank > batch + 2) return false;
    auto batched = [&](const Shape& shape) {
      Region out;
      const size_t own = shape.size() > 2 ? shape.size() - 2 : 0;
      for (size_t d = 0; d < own; ++d)
        out.push_back(shape[d] == 1 ? IndexRange{} : region[batch - own + d]);
      return out;
    };
    Region of_a = batched(left->shape), of_b = batched(right->shape);
    if (left_rank > 1) of_a.push_back(region[batch]);
    of_a.push_back(kWhole), of_b.push_back(kWhole);
    if (right_rank > 1) of_b.push_back(region.back());
    need(a, std::move(of_a)), need(b, std::move(of_b));
    return true;
  }

  bool linear(const Node& node, const Region& region) {
    const std::string x = reference(argument(node, 0)), w = reference(argument(node, 1)),
                      bias = reference(argument(node, 2));
    if (x.empty() || w.empty() || region.empty()) return false;
    Region of_x = region;
    of_x.back() = kWhole;
    need(x, std::move(of_x)), need(w, {region.back(), kWhole});
    if (!bias.empty()) need(bias, {region.back()});
    return true;
  }

  bool convolution(const Node& node, const std::string& op, const Region& region) {
    const std::string x = reference(argument(node, 0)), w = reference(argument(node, 1)),
                      bias = reference(argument(node, 2));
    const Value* weight = graph_.find(w);
    if (op.find("transpose") != std::string::npos || x.empty() || !weight) return false;
    if (op == "convolution" && argument(node, 6, "transposed") == Json(true)) return false;
    if (region.size() < 3 || weight->shape.size() != region.size()) return false;
    const auto stride = integers(argument(node, 3, "stride")),
               padding = integers(argument(node, 4, "padding")),
               dilation = integers(argument(node, 5, "dilation"));
    const auto groups = integers(argument(node, op == "convolution" ? 8 : 6, "groups"));
    const bool grouped = item(groups, 0, 1) != 1;
    const bool depthwise = grouped && weight->shape[1] == 1 && groups[0] == weight->shape[0];
    Region of_x{region[0], depthwise ? region[1] : kWhole}, of_w(region.size(), kWhole);
    of_w[0] = region[1];
    for (size_t d = 0; d + 2 < region.size(); ++d)
      of_x.push_back(window(region[d + 2], weight->shape[d + 2], item(stride, d, 1),
                            item(padding, d, 0), item(dilation, d, 1)));
    need(x, std::move(of_x)), need(w, std::move(of_w));
    if (!bias.empty()) need(bias, {region[1]});
    return true;
  }

  const Graph& graph_;
  std::map<std::string, std::optional<Region>> needed_;
};

std::string value_of(const Task& task, const std::string& output) {
  if (auto it = task.graph.finals.find(output); it != task.graph.finals.end()) return it->second;
  size_t at = 0;
  for (const TensorInfo* info : task.with_role(TensorRole::output)) {
    if (info->name == output)
      return at < task.graph.outputs.size() ? task.graph.outputs[at] : std::string();
    ++at;
  }
  return {};
}

}  // namespace

std::map<std::string, std::optional<Region>> elements_behind(const Task& task,
                                                             const ShapeCase& shape,
                                                             const std::string& output,
                                                             const std::vector<int64_t>& at) {
  const std::string value = value_of(task, output);
  if (value.empty()) return {};
  Region region;
  for (int64_t index : at) region.push_back({.low = index, .high = index});
  Walk walk(task.graph);
  walk.start(value, std::move(region));
  walk.run();
  std::map<std::string, std::optional<Region>> out;
  for (const Value& placeholder : task.graph.placeholders) {
    auto it = walk.needed().find(placeholder.name);
    auto dims = shape.tensors.find(placeholder.name);
    if (it == walk.needed().end() || dims == shape.tensors.end()) continue;
    std::optional<Region> found = it->second;
    if (found && found->size() != dims->second.size()) found.reset();
    for (size_t d = 0; found && d < dims->second.size(); ++d) {
      IndexRange& r = (*found)[d];
      r.high = std::min(r.high, dims->second[d] - 1);
      if (r.low > r.high) {
        found.reset();
        break;
      }
    }
    out[placeholder.name] = std::move(found);
  }
  return out;
}

}  // namespace cutegen::eval
