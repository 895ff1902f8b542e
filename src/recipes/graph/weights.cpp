// SPDX-License-Identifier: Apache-2.0
#include "recipes/graph/weights.h"

#include <algorithm>
#include <set>

#include "recipes/graph/pointwise.h"

namespace cutegen::recipes {
namespace {

bool is_aten(const Node& node, const std::set<std::string>& names) {
  return node.op.starts_with("aten.") && node.outputs.size() == 1 &&
         names.count(base_name(node.op)) > 0;
}

// The elements of the result are those of the input, in the same order.
bool keeps_order(const Node& node) {
  static const std::set<std::string> kNames{"view",    "reshape", "_unsafe_view", "_reshape_alias",
                                            "flatten", "clone",   "contiguous",   "unflatten",
                                            "alias",   "detach",  "unsqueeze",    "squeeze"};
  return is_aten(node, kNames);
}

bool casts_to_float(const Node& node) {
  const DType to = node.outputs.front().dtype;
  return is_aten(node, {"_to_copy", "to"}) &&
         (to == DType::bf16 || to == DType::f16 || to == DType::f32);
}

std::string self_of(const Node& node) {
  return reference(argument(node, 0, "self")).value_or("");
}

int64_t elements(Shape::const_iterator first, Shape::const_iterator last) {
  int64_t n = 1;
  for (; first != last; ++first) n *= *first;
  return n;
}

// Returns how many neighbours along the axes [first, last) of `whole` share a value of `part`, a
// shape of the same rank; 0 means all of them. Returns nullopt if the values vary along an inner
// axis, but not along an axis outside it.
std::optional<int64_t> block_of(const Shape& whole, const Shape& part, size_t first, size_t last) {
  size_t at = first;
  while (at < last && part[at] == whole[at]) ++at;
  for (size_t i = at; i < last; ++i)
    if (part[i] != 1) return std::nullopt;
  const int64_t block = elements(whole.begin() + long(at), whole.begin() + long(last));
  return block == elements(whole.begin() + long(first), whole.begin() + long(last)) ? 0 : block;
}

class Matcher {
 public:
  Matcher(const Graph& graph, const Shape& matrix) : graph_(graph), matrix_(matrix) {}

  std::optional<PackedWeights> run(const std::string& value) {
    return read(value) ? std::optional(found_) : std::nullopt;
  }

 private:
  bool read(const std::string& value) {
    const Node* node = graph_.producer(value);
    if (!node) return bytes(value);
    if (keeps_order(*node) || casts_to_float(*node)) return read(self_of(*node));
    if (is_aten(*node, {"mul"})) return scaled(*node);
    if (is_aten(*node, {"sub", "add"})) return shifted(*node);
    if (is_aten(*node, {"stack"})) return nibbles(*node);
    // Numbers of 4 bits fit into every integer type, so such a cast does not change them.
    const bool integer = is_aten(*node, {"_to_copy", "to"}) && is_integer(node->outputs[0].dtype);
    return integer && read(self_of(*node)) && found_.nibbles;
  }

  bool bytes(const std::string& tensor) {
    const Value* value = graph_.find(tensor);
    static const std::set<DType> kTypes{DType::i8, DType::u8, DType::f8e4m3, DType::f8e5m2};
    if (!value || value->shape != matrix_ || !kTypes.count(value->dtype)) return false;
    found_.tensor = tensor;
    found_.dtype = value->dtype;
    return true;
  }

  // Zeros are subtracted before the product with the scales.
  bool scaled(const Node& node) {
    if (found_.scales || found_.zeros || found_.zero != 0) return false;
    for (size_t side : {0u, 1u}) {
      const auto weights = reference(argument(node, side, "")),
                 scales = reference(argument(node, 1 - side, ""));
      auto grid = weights && scales ? grid_of(*scales, node.outputs[0].shape) : std::nullopt;
      if (!grid || !is_floating(grid->dtype)) continue;
      found_.scales = std::move(grid);
      return read(*weights);
    }
    return false;
  }

  bool shifted(const Node& node) {
    const DType dtype = node.outputs[0].dtype;
    if (found_.zeros || found_.zero != 0 || dtype == DType::u8 || dtype == DType::boolean ||
        number(argument(node, 2, "alpha")).value_or(1) != 1 || !node.sizes.empty())
      return false;
    const Json other = argument(node, 1, "other");
    const bool adds = base_name(node.op) == "add";
    if (auto zero = number(other)) {
      found_.zero = adds ? -*zero : *zero;
    } else {
      const auto zeros = adds ? std::nullopt : reference(other);
      found_.zeros = zeros ? grid_of(*zeros, node.outputs[0].shape) : std::nullopt;
      if (!found_.zeros) return false;
    }
    // A difference of 8-bit integers could wrap around.
    return read(self_of(node)) && (is_floating(dtype) || found_.nibbles);
  }

  // Two numbers of 4 bits from each byte: stack([w & 15, w >> 4], -1).
  bool nibbles(const Node& stack) {
    const Json& items = argument(stack, 0, "tensors");
    const Shape& shape = stack.outputs[0].shape;
    const Json dim = argument(stack, 1, "dim");
    const int64_t last = int64_t(shape.size()) - 1;
    if (!items.is_array() || items.size() != 2 || shape.size() != 3 ||
        !(dim == Json(-1) || dim == Json(last)))
      return false;
    const auto first = half(items[0]), second = half(items[1]);
    if (!first || !second || first->tensor != second->tensor || first->high == second->high)
      return false;
    const Value* value = graph_.find(first->tensor);
    if (graph_.producer(first->tensor) || !value || value->dtype != DType::u8 ||
        value->shape != Shape{matrix_[0], matrix_[1] / 2} || matrix_[1] % 2)
      return false;
    found_.tensor = first->tensor;
    found_.dtype = DType::u8;
    found_.nibbles = true;
    found_.high_first = first->high;
    return true;
  }

  struct Half {
    std::string tensor;
    bool high = false;
  };

  // w & 15, w >> 4 or (w >> 4) & 15.
  std::optional<Half> half(const Json& item) const {
    const Node* node = graph_.producer(reference(item).value_or(""));
    bool masked = false;
    if (node && is_aten(*node, {"bitwise_and", "__and__"}) &&
        number(argument(*node, 1, "other")) == 15) {
      const std::string from = self_of(*node);
      node = graph_.producer(from);
      if (!node) return Half{.tensor = from, .high = false};
      masked = true;
    }
    if (!node || !is_aten(*node, {"__rshift__", "bitwise_right_shift"}) ||
        number(argument(*node, 1, "other")) != 4)
      return std::nullopt;
    const Value* from = graph_.find(self_of(*node));
    if (!from || !(masked || from->dtype == DType::u8)) return std::nullopt;
    return Half{.tensor = from->name, .high = true};
  }

  // The tensor behind `value`, which multiplies a reshape of the matrix to `whole`.
  std::optional<WeightGrid> grid_of(const std::string& value, const Shape& whole) const {
    Shape part = graph_.find(value) ? graph_.find(value)->shape : Shape{};
    if (part.size() > whole.size()) return std::nullopt;
    part.insert(part.begin(), whole.size() - part.size(), 1);
    std::string name = value;
    for (const Node* node = graph_.producer(name); node; node = graph_.producer(name)) {
      if (!keeps_order(*node) && !casts_to_float(*node)) return std::nullopt;
      name = self_of(*node);
    }
    const Value* tensor = graph_.find(name);
    if (!tensor || tensor->dtype == DType::boolean || tensor->dtype == DType::f64)
      return std::nullopt;
    // The leading axes of `whole` make up the matrix's rows.
    size_t rows = 0;
    for (int64_t n = 1; rows < whole.size() && n < matrix_[0]; ++rows) n *= whole[rows];
    if (elements(whole.begin(), whole.begin() + long(rows)) != matrix_[0] ||
        elements(whole.begin() + long(rows), whole.end()) != matrix_[1])
      return std::nullopt;
    const auto row = block_of(whole, part, 0, rows),
               depth = block_of(whole, part, rows, whole.size());
    if (!row || !depth) return std::nullopt;
    return WeightGrid{.tensor = name, .dtype = tensor->dtype, .rows = *row, .depth = *depth};
  }

  const Graph& graph_;
  const Shape& matrix_;
  PackedWeights found_;
};

}  // namespace

std::optional<PackedWeights> packed_weights(const Graph& graph, const std::string& value) {
  const Value* matrix = graph.find(value);
  if (!matrix || matrix->shape.size() != 2) return std::nullopt;
  return Matcher(graph, matrix->shape).run(value);
}

}  // namespace cutegen::recipes
