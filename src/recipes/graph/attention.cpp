// SPDX-License-Identifier: Apache-2.0
#include "recipes/graph/attention.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "recipes/graph/pointwise.h"
#include "recipes/graph/products.h"
#include "recipes/graph/scales.h"

namespace cutegen::recipes {
namespace {

constexpr const char* kAttention = "cutegen.attention";
constexpr int64_t kMostWidth = 256;               // of a head
constexpr int64_t kMostDiagonal = 1'000'000'000;  // row + diagonal must fit in 32 bits

bool is_16_bits(DType dtype) {
  return dtype == DType::f16 || dtype == DType::bf16;
}

std::string base_of(const Node& node) {
  return node.op.starts_with("aten.") && node.outputs.size() == 1 ? base_name(node.op) : "";
}

bool is_cast(const Node& node) {
  return base_of(node) == "_to_copy" && is_floating(node.outputs.front().dtype);
}

// A value that factor_of() reaches on its way from a product's factor to a tensor.
struct Factor {
  std::string value;
  double scale = 1;
  bool turned = false, grouped = false;
  AttentionSlice slice = {};
};

// The value of a number, or of a tensor that holds one constant.
std::optional<double> constant_of(const Graph& graph, const Json& json) {
  if (auto name = reference(json))
    if (const Node* node = graph.producer(*name); node && base_of(*node) == "scalar_tensor")
      return number(argument(*node, 0, "s"));
  return number(json);
}

// A graph, and how often its values are read.
struct GraphWalk {
  const Graph& graph;
  std::map<std::string, int> reads;

  const Node* producer(const std::string& name) const { return graph.producer(name); }
  const Shape& shape(const std::string& name) const { return graph.find(name)->shape; }
  bool once(const std::string& name) const { return reads.at(name) == 1; }
  bool is_constant(const Json& json, double wanted) const {
    return constant_of(graph, json) == wanted;
  }
  // The node that computes the value. Skips views and copies.
  const Node* maker_of(const std::string& name) const {
    const Node* node = producer(name);
    while (node && keeps_elements(*node)) {
      auto from = reference(argument(*node, 0, "self"));
      node = from ? producer(*from) : nullptr;
    }
    return node;
  }
};

bool same_end(const Shape& a, const Shape& b) {
  return a.size() >= 2 && b.size() >= 2 && a[a.size() - 1] == b[b.size() - 1] &&
         a[a.size() - 2] == b[b.size() - 2];
}

// The diagonal of a tril or triu; nothing if the kernel cannot count it.
std::optional<int64_t> diagonal_of(const Node& node) {
  const Json diagonal = argument(node, 1, "diagonal");
  if (diagonal.is_null()) return 0;
  if (!diagonal.is_number_integer()) return std::nullopt;
  const auto d = diagonal.get<int64_t>();
  if (d < -kMostDiagonal || d > kMostDiagonal) return std::nullopt;
  return d;
}

// Whether the node swaps the last two axes.
bool turns(const Node& node) {
  const std::string base = base_of(node);
  if (base == "mT") return true;
  if (base != "transpose") return false;
  const auto rank = double(node.outputs.front().shape.size());
  auto a = number(argument(node, 1, "dim0")), b = number(argument(node, 2, "dim1"));
  if (!a || !b || rank < 2) return false;
  std::set<double> axes{*a < 0 ? *a + rank : *a, *b < 0 ? *b + rank : *b};
  return axes == std::set<double>{rank - 1, rank - 2};
}

// If `value` is a slice that the node takes of another tensor, returns this slice.
std::optional<AttentionSlice> slice_of(const Node& node, const std::string& value, size_t rank) {
  if (node.op != "aten.unbind.int" && node.op != "aten.select.int") return std::nullopt;
  const Json axis = argument(node, 1, "dim"), index = argument(node, 2, "index");
  AttentionSlice slice{.axis = axis.is_number_integer() ? axis.get<int>() : 0, .index = 0};
  if (slice.axis < 0) slice.axis += int(rank);
  if (slice.axis < 0 || slice.axis >= int(rank)) return std::nullopt;
  if (node.op == "aten.select.int") {
    if (!index.is_number_integer() || index.get<int64_t>() < 0 || !node.sizes.empty())
      return std::nullopt;
    slice.index = index.get<int64_t>();
  }
  for (size_t i = 0; i < node.outputs.size(); ++i)
    if (node.outputs[i].name == value) slice.index += int64_t(i);
  return slice;
}

// Walks from a product's factor to the tensor that the kernel reads.
std::optional<Factor> factor_of(const GraphWalk& walk, const Json& json) {
  auto name = reference(json);
  if (!name) return std::nullopt;
  Factor f{.value = *name};
  while (const Node* node = walk.producer(f.value)) {
    auto from = reference(argument(*node, 0, "self"));
    if (!from) break;
    if (auto slice = slice_of(*node, f.value, walk.shape(*from).size())) {
      f.slice = *slice;
      f.value = *from;
      break;
    }
    const Shape &to = node->outputs.front().shape, &before = walk.shape(*from);
    if (auto constant = constant_factor(*node); constant && walk.once(f.value)) {
      f.scale *= *constant;
    } else if (turns(*node)) {
      f.turned = !f.turned;
    } else if (keeps_elements(*node) && same_end(before, to)) {
      if (base_of(*node) == "expand" && before != to) {
        const bool groups = to.size() == 5 && before.size() == 5 && before[2] == 1 &&
                            before[0] == to[0] && before[1] == to[1] && !f.grouped;
        if (!groups) break;
        f.grouped = true;
      }
    } else {
      break;
    }
    f.value = *from;
  }
  return f;
}

// Reads the softmax of a product: its scale and its masks.
class ScoreReader {
 public:
  ScoreReader(const GraphWalk& walk, AttentionNode& found) : walk_(walk), found_(found) {}

  // The product below the softmax that computes `weights`, or nothing.
  const Node* run(const std::string& weights) {
    const Node* softmax = softmax_of(weights);
    auto input = softmax ? reference(argument(*softmax, 0, "self")) : std::nullopt;
    if (!input || !scores(*input, softmax->outputs.front().shape)) return nullptr;
    return product_;
  }

 private:
  bool is_lowest(const Json& json) const { return walk_.is_constant(json, -INFINITY); }
  bool is_zero(const Json& json) const { return walk_.is_constant(json, 0); }

  // The softmax over the last axis that computes the weights.
  const Node* softmax_of(std::string name) {
    for (;;) {
      const Node* node = walk_.producer(name);
      if (!node || !walk_.once(name)) return nullptr;
      const std::string base = base_of(*node);
      if (base == "_softmax" || base == "_safe_softmax") {
        auto dim = number(argument(*node, 1, "dim"));
        const auto rank = double(node->outputs.front().shape.size());
        found_.safe = base == "_safe_softmax";
        return dim && (*dim == -1 || *dim == rank - 1) ? node : nullptr;
      }
      auto from = reference(argument(*node, 0, "self"));
      if (!from || !(keeps_elements(*node) || is_cast(*node)) ||
          !same_end(walk_.shape(*from), node->outputs.front().shape))
        return nullptr;
      name = *from;
    }
  }

  // Walks from the softmax's input to the first product, and notes scale and masks. `whole` is the
  // shape of all scores.
  bool scores(const std::string& name, const Shape& whole) {
    const Node* node = walk_.producer(name);
    if (!node || !walk_.once(name)) return false;
    const std::string base = base_of(*node);
    if (base == "bmm") {
      product_ = node;
      return true;
    }
    auto from = reference(argument(*node, 0, "self"));
    auto other = reference(argument(*node, 1, "other"));
    if (base == "add" && from && other && number(argument(*node, 2, "alpha")).value_or(1) == 1) {
      for (bool swapped : {false, true}) {
        const AttentionNode before = found_;
        const bool added = adds_;
        if (scores(swapped ? *other : *from, whole) && add_mask(swapped ? *from : *other, whole))
          return true;
        found_ = before, adds_ = added;
      }
      return false;
    }
    if (base == "masked_fill" && from && is_lowest(argument(*node, 2, "value")))
      return other && scores(*from, whole) && add_condition(*other, true, whole);
    if (base == "where" && from && other && is_lowest(argument(*node, 2, "other")))
      return scores(*other, whole) && add_condition(*from, false, whole);
    if (auto factor = constant_factor(*node)) {
      // A scale after an added mask would scale the mask, too.
      if (!scores(*from, whole) || adds_) return false;
      found_.scale *= *factor;
      return true;
    }
    return from && (keeps_elements(*node) || is_cast(*node)) &&
           same_end(walk_.shape(*from), node->outputs.front().shape) && scores(*from, whole);
  }

  bool add_mask(const std::string& name, const Shape& whole) {
    const Node* node = walk_.producer(name);
    if (node && base_of(*node) == "where") {
      auto condition = reference(argument(*node, 0, "condition"));
      if (condition && is_zero(argument(*node, 1, "self")) &&
          is_lowest(argument(*node, 2, "other")))
        return add_condition(*condition, false, whole);
    }
    const Node* maker = same_end(walk_.shape(name), whole) ? walk_.maker_of(name) : nullptr;
    if (maker && add_triangle(*maker, whole)) return true;
    adds_ = true;
    return take_mask(name, whole);
  }

  bool take_mask(const std::string& name, const Shape& whole) {
    if (!found_.mask.empty() || walk_.shape(name).size() > whole.size() ||
        walk_.shape(name).size() < 2)
      return false;
    found_.mask = name;
    return true;
  }

  // Reads a boolean mask, which is true for the keys to use or, if it `hides`, to ignore.
  bool add_condition(const std::string& name, bool hides, const Shape& whole) {
    std::string inner = name;
    bool inverted = hides;
    for (const Node* node = walk_.producer(inner); node; node = walk_.producer(inner)) {
      const std::string base = base_of(*node);
      auto from = reference(argument(*node, 0, "self"));
      const Shape& shape = node->outputs.front().shape;
      // A triangle that lacks leading axes of the scores is the same along these.
      if ((base == "tril" || base == "triu") && from && is_ones(*from) && same_end(shape, whole)) {
        const auto d = diagonal_of(*node);
        if (!d) break;
        if (found_.causal || (base == "triu") != inverted) return false;
        found_.causal = true;
        found_.diagonal = inverted ? *d - 1 : *d;
        return true;
      }
      // Elements of a triangle of ones are 0 and 1.
      const Json other = argument(*node, 1, "other");
      const bool zero = is_zero(other), one = number(other) == 1.0;
      const bool negates = base == "logical_not" || base == "bitwise_not" ||
                           (base == "eq" && zero) || (base == "ne" && one);
      const bool passes = keeps_elements(*node) || base == "_to_copy" || (base == "eq" && one) ||
                          (base == "ne" && zero);
      if (!from || !(negates || passes) || !same_end(walk_.shape(*from), shape)) break;
      inverted ^= negates;
      inner = *from;
    }
    if (walk_.graph.find(name)->dtype != DType::boolean || adds_ || !take_mask(name, whole))
      return false;
    found_.hides = hides;
    return true;
  }

  bool is_ones(const std::string& name) const {
    const Node* node = walk_.maker_of(name);
    return node && (base_of(*node) == "ones" || base_of(*node) == "ones_like");
  }
  // triu(full(-infinity), d): zero before the diagonal d.
  bool add_triangle(const Node& node, const Shape& whole) {
    auto from = base_of(node) == "triu" ? reference(argument(node, 0, "self")) : std::nullopt;
    const Node* full = from ? walk_.maker_of(*from) : nullptr;
    const auto d = diagonal_of(node);
    if (!full || base_of(*full) != "full" || !is_lowest(argument(*full, 1, "fill_value")) || !d ||
        found_.causal || !same_end(node.outputs.front().shape, whole))
      return false;
    found_.causal = true;
    found_.diagonal = *d - 1;
    return true;
  }

  const GraphWalk& walk_;
  AttentionNode& found_;
  const Node* product_ = nullptr;
  bool adds_ = false;  // the mask is added
};

class AttentionFinder {
 public:
  explicit AttentionFinder(const Graph& graph)
      : walk_{.graph = graph, .reads = reads_of_values(graph)} {
    for (const Node& node : graph.nodes)
      for (const Json& arg : node.args)
        if (auto name = reference(arg)) readers_[*name] = &node;
  }

  // Returns the attention node that replaces the product `second` and the nodes before it, or
  // nothing.
  std::optional<Node> find(const Node& second) {
    auto weights = reference(argument(second, 0, "self"));
    const Node* first = weights ? ScoreReader(walk_, found_).run(*weights) : nullptr;
    if (!first) return std::nullopt;
    const auto q = factor_of(walk_, argument(*first, 0, "self")),
               k = factor_of(walk_, argument(*first, 1, "mat2")),
               v = factor_of(walk_, argument(second, 1, "mat2"));
    if (!q || !k || !v || v->scale != 1 || v->turned) return std::nullopt;
    found_.scale *= q->scale * k->scale;
    if (!fits(*q, *k, *v) || !(found_.scale > 0) || std::isinf(found_.scale)) return std::nullopt;
    return node_for(second);
  }

 private:
  // The factor's value, with the shape of its slice.
  Value seen(const Factor& factor) const {
    Value value = *walk_.graph.find(factor.value);
    if (factor.slice.axis >= 0) value.shape.erase(value.shape.begin() + factor.slice.axis);
    return value;
  }

  bool fits(const Factor& q, const Factor& k, const Factor& v) {
    const Value a = seen(q), b = seen(k), c = seen(v);
    const size_t rank = a.shape.size();
    if (!is_16_bits(a.dtype) || b.dtype != a.dtype || c.dtype != a.dtype || q.turned || q.grouped ||
        (rank != 3 && rank != 4) || b.shape.size() != rank || c.shape.size() != rank ||
        k.grouped != v.grouped || (k.grouped && rank != 4))
      return false;
    // The product reads k with the depth first, so the tensor k has the keys first if the graph
    // turned it.
    found_.turned = !k.turned;
    const int64_t keys = b.shape[found_.turned ? rank - 1 : rank - 2],
                  depth = b.shape[found_.turned ? rank - 2 : rank - 1];
    if (depth != a.shape[rank - 1] || keys != c.shape[rank - 2] || depth > kMostWidth ||
        c.shape[rank - 1] > kMostWidth)
      return false;
    for (size_t i = 0; i + 2 < rank; ++i) {
      if (b.shape[i] != c.shape[i]) return false;
      const bool split = i == 1 && k.grouped && b.shape[i] > 0 && a.shape[i] % b.shape[i] == 0;
      if (a.shape[i] != b.shape[i] && !split) return false;
    }
    found_.q = q.value, found_.k = k.value, found_.v = v.value;
    found_.slice_q = q.slice, found_.slice_k = k.slice, found_.slice_v = v.slice;
    found_.heads = rank == 4, found_.grouped = k.grouped;
    whole_ = a.shape;
    whole_.back() = keys;
    result_ = a.shape;
    result_.back() = c.shape.back();
    element_ = a.dtype;
    return found_.mask.empty() || mask_fits();
  }

  bool mask_fits() const {
    const Shape& mask = walk_.shape(found_.mask);
    if (mask.size() > whole_.size()) return false;
    const size_t missing = whole_.size() - mask.size();
    for (size_t i = 0; i < mask.size(); ++i)
      if (mask[i] != 1 && mask[i] != whole_[i + missing]) return false;
    return true;
  }

  // Follows the only reader of the result through views and its cast, as far as the kernel can
  // write the value: its axes in any order, with neighbours merged.
  std::optional<Node> node_for(const Node& second) {
    const Node* end = nullptr;
    std::vector<int> order;
    bool merged = false;
    for (const Node* node = &second;;) {
      const Value& out = node->outputs.front();
      if (!merged && order.empty() && out.shape == result_ && out.dtype == element_) {
        end = node;
        order = found_.heads ? std::vector<int>{0, 1, 2, 3} : std::vector<int>{0, 2, 3};
        found_.order = order;
      } else if (!order.empty()) {
        if (!follow(*node, order, merged)) break;
        if (merged || out.shape.size() == order.size()) end = node, found_.order = order;
      }
      if (!walk_.once(out.name) || !readers_.count(out.name)) break;
      node = readers_.at(out.name);
      if (node->outputs.size() != 1 || reference(argument(*node, 0, "self")) != out.name) break;
      if (order.empty() && !keeps_elements(*node) && !is_cast(*node)) break;
    }
    if (!end) return std::nullopt;
    return written(*end);
  }

  // Applies a view to the order of the result's axes.
  static bool follow(const Node& node, std::vector<int>& order, bool& merged) {
    const std::string base = base_of(node);
    if (base == "clone" || base == "contiguous" || base == "alias") return true;
    const Shape& to = node.outputs.front().shape;
    if (keeps_elements(node) && base != "expand" && base != "_to_copy" && base != "squeeze" &&
        base != "unsqueeze" && to.size() < order.size() && !merged)
      return merged = true;
    if (merged || to.size() != order.size()) return false;
    std::vector<int> moved = order;
    auto at = [&](const Json& json) {
      const int64_t axis = json.is_number_integer() ? json.get<int64_t>() : 0;
      return size_t(axis < 0 ? axis + int64_t(order.size()) : axis);
    };
    if (base == "transpose") {
      std::swap(moved[at(argument(node, 1, "dim0"))], moved[at(argument(node, 2, "dim1"))]);
    } else if (base == "permute") {
      const Json dims = argument(node, 1, "dims");
      if (!dims.is_array() || dims.size() != order.size()) return false;
      for (size_t i = 0; i < dims.size(); ++i) moved[i] = order[at(dims[i])];
    } else {
      return false;
    }
    order = moved;
    return true;
  }

  Node written(const Node& end) const {
    Node node;
    node.id = end.id + "_attention";
    node.op = kAttention;
    node.outputs = end.outputs;
    node.flops = end.flops;
    auto ref = [](const std::string& name) { return name.empty() ? Json() : Json{{"ref", name}}; };
    node.args = {ref(found_.q), ref(found_.k), ref(found_.v), ref(found_.mask)};
    node.kwargs = {
        {"scale", found_.scale},     {"safe", found_.safe},     {"turned", found_.turned},
        {"grouped", found_.grouped}, {"causal", found_.causal}, {"diagonal", found_.diagonal},
        {"hides", found_.hides},     {"heads", found_.heads},   {"order", found_.order}};
    Json slices = Json::array();
    for (const AttentionSlice& slice : {found_.slice_q, found_.slice_k, found_.slice_v})
      slices.push_back(Json::array({slice.axis, slice.index}));
    node.kwargs["slices"] = slices;
    return node;
  }

  GraphWalk walk_;
  std::map<std::string, const Node*> readers_;  // of values that are read once
  AttentionNode found_;
  Shape whole_, result_;
  DType element_ = DType::bf16;
};

// Drops nodes that no result needs any more.
Graph without_unread(Graph graph) {
  for (bool changed = true; changed;) {
    const auto reads = reads_of_values(graph);
    const auto unread = [&](const Node& node) {
      return !node.outputs.empty() &&
             std::all_of(node.outputs.begin(), node.outputs.end(),
                         [&](const Value& v) { return reads.at(v.name) == 0; });
    };
    changed = std::erase_if(graph.nodes, unread) > 0;
  }
  return graph;
}

}  // namespace

bool is_attention(const Node& node) {
  return node.op == kAttention;
}

Graph fuse_attention(Graph graph) {
  bool any = false;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (base_of(graph.nodes[i]) != "bmm") continue;
    auto fused = AttentionFinder(graph).find(graph.nodes[i]);
    if (!fused) continue;
    any = true;
    for (Node& node : graph.nodes)
      if (!node.outputs.empty() && node.outputs.front().name == fused->outputs.front().name)
        node = *fused;
  }
  return any ? without_unread(std::move(graph)) : graph;
}

AttentionNode read_attention(const Node& node) {
  CG_ASSERT(is_attention(node) && node.args.size() == 4);
  AttentionNode a;
  a.q = reference(node.args[0]).value_or("");
  a.k = reference(node.args[1]).value_or("");
  a.v = reference(node.args[2]).value_or("");
  a.mask = reference(node.args[3]).value_or("");
  const Json& more = node.kwargs;
  a.scale = more.at("scale").get<double>();
  a.safe = more.at("safe").get<bool>(), a.turned = more.at("turned").get<bool>();
  a.grouped = more.at("grouped").get<bool>(), a.causal = more.at("causal").get<bool>();
  a.hides = more.at("hides").get<bool>(), a.heads = more.at("heads").get<bool>();
  a.diagonal = more.at("diagonal").get<int64_t>();
  a.order = more.at("order").get<std::vector<int>>();
  AttentionSlice* slices[] = {&a.slice_q, &a.slice_k, &a.slice_v};
  for (size_t i = 0; i < 3; ++i) {
    const Json& slice = more.at("slices")[i];
    *slices[i] = {.axis = slice[0].get<int>(), .index = slice[1].get<int64_t>()};
  }
  return a;
}

}  // namespace cutegen::recipes
