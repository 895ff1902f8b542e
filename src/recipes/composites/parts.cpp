// SPDX-License-Identifier: Apache-2.0
// Parts of tensors that a module replaces: x[:, 2:5] = y, x[:, ::2] *= y, x[:, 3] = y.
#include <algorithm>
#include <limits>
#include <map>

#include "recipes/composites/expansion.h"

namespace cutegen::recipes {
namespace {

constexpr int64_t kEnd = std::numeric_limits<int64_t>::max();  // PyTorch's end of x[2:]
constexpr int64_t kMostTurns = 8;  // steps of a slice; each gets a stage of its own

// Replaces the elements of x from `start` to `end` along `dim` by `part`: joins the elements before
// them, the part, and the elements behind them.
bool replaced(Expansion& e, const Value& x, const std::string& part, size_t dim, int64_t start,
              int64_t end) {
  Json list = Json::array();
  const auto slice = [&](int64_t from, int64_t to) {
    if (from >= to) return;
    Shape shape = x.shape;
    shape[dim] = to - from;
    const Json last = to == x.shape[dim] ? Json(kEnd) : Json(to);
    list.push_back(tensor_ref(
        e.as(x.dtype, e.write("kept", "aten.slice.Tensor",
                              {tensor_ref(x.name), int64_t(dim), from, last, 1}, shape))));
  };
  slice(0, start);
  list.push_back(tensor_ref(part));
  slice(end, x.shape[dim]);
  if (list.size() == 1) return e.finish(part);
  e.write("joined", "aten.cat.default", {list, int64_t(dim)}, x.shape, e.result().name);
  return true;
}

// Every `step`-th element of an axis, from element `at` (below `step`) to the end.
struct Turn {
  size_t dim = 0;
  int64_t at = 0, step = 1;
  bool operator==(const Turn&) const = default;
};

// The arguments dim, start, end and step of slice() or slice_scatter(), from position `first` on.
std::optional<Turn> turn_of(const Node& node, size_t first, const Shape& shape) {
  const Json dim = argument(node, first, "dim"), start = argument(node, first + 1, "start"),
             end = argument(node, first + 2, "end"), step = argument(node, first + 3, "step");
  const auto whole = [](const Json& json, int64_t otherwise) {
    return json.is_null() ? otherwise : json.is_number_integer() ? json.get<int64_t>() : -1;
  };
  const auto rank = int64_t(shape.size());
  int64_t axis = whole(dim, 0);
  if (dim.is_number_integer() && axis < 0) axis += rank;
  if (axis < 0 || axis >= rank) return std::nullopt;
  const Turn turn{.dim = size_t(axis), .at = whole(start, 0), .step = whole(step, 1)};
  const int64_t size = shape[turn.dim];
  const bool known = node.sizes.empty() && whole(end, kEnd) > size && turn.at >= 0 &&
                     turn.step > 1 && turn.step <= kMostTurns;
  if (!known || turn.at >= turn.step || size % turn.step != 0) return std::nullopt;
  return turn;
}

// The slice_scatter() that computes the value; null if another operator does.
const Node* scatter_of(const Graph& graph, const std::string& value) {
  const Node* node = graph.producer(value);
  return node && node->op.starts_with("aten.slice_scatter.") ? node : nullptr;
}

// The elements of `value` that the turn takes. If a slice_scatter() wrote them, returns its part.
// Looks through calls of slice_scatter() that wrote other turns.
std::string taken(Expansion& e, std::string value, const Turn& turn) {
  const Value& whole = *e.graph.find(value);
  Shape shape = whole.shape;
  shape[turn.dim] /= turn.step;
  while (const Node* scatter = scatter_of(e.graph, value)) {
    const auto given = turn_of(*scatter, 2, whole.shape);
    const auto self = reference(argument(*scatter, 0, "self")),
               part = reference(argument(*scatter, 1, "src"));
    if (!given || !self || !part || given->dim != turn.dim || given->step != turn.step) break;
    if (given->at == turn.at && e.graph.find(*part)->shape != shape) break;
    if (given->at == turn.at) return *part;
    value = *self;
  }
  return e.as(whole.dtype,
              e.write("turn", "aten.slice.Tensor",
                      {tensor_ref(value), int64_t(turn.dim), turn.at, kEnd, turn.step}, shape));
}

// Stacks the part and the other turns of x along a new axis behind `turn.dim`, and merges the two
// axes.
bool scatter_turn(Expansion& e, const Value& x, const Turn& turn) {
  Shape stacked = x.shape;
  stacked[turn.dim] /= turn.step;
  const Value* part = e.input(1);
  if (!part || part->shape != stacked) return false;
  stacked.insert(stacked.begin() + long(turn.dim) + 1, turn.step);
  Json list = Json::array();
  for (int64_t at = 0; at < turn.step; ++at)
    list.push_back(tensor_ref(
        taken(e, e.node.outputs[0].name, {.dim = turn.dim, .at = at, .step = turn.step})));
  return e.finish(e.as(
      x.dtype, e.write("turns", "aten.stack.default", {list, int64_t(turn.dim) + 1}, stacked)));
}

// slice(x, dim, start, end, step) of elements that slice_scatter() replaced
bool slice(Expansion& e) {
  const Value* x = e.input(0);
  if (!x || !scatter_of(e.graph, x->name)) return false;
  const auto turn = turn_of(e.node, 1, x->shape);
  const auto given = turn_of(*scatter_of(e.graph, x->name), 2, x->shape);
  if (!turn || !given || given->dim != turn->dim || given->step != turn->step) return false;
  return e.finish(taken(e, x->name, *turn));
}

// slice_scatter(x, part, dim, start, end, step)
bool slice_scatter(Expansion& e) {
  const Value *x = e.input(0), *part = e.input(1);
  const auto dim = e.axis(2, x);
  if (!dim || !part) return false;
  if (const auto turn = turn_of(e.node, 2, x->shape)) return scatter_turn(e, *x, *turn);
  if (e.number_at(5).value_or(1) != 1) return false;
  const int64_t size = x->shape[*dim];
  const auto place = [&](size_t index, int64_t otherwise) {
    const Json given = e.arg(index);
    int64_t at = given.is_number_integer() ? given.get<int64_t>() : otherwise;
    if (at < 0) at += size;
    return std::clamp<int64_t>(at, 0, size);
  };
  const int64_t start = place(3, 0);
  if (place(4, size) - start != part->shape[*dim] || part->shape[*dim] < 1) return false;
  return replaced(e, *x, part->name, *dim, start, start + part->shape[*dim]);
}

// select_scatter(x, part, dim, index)
bool select_scatter(Expansion& e) {
  const Value *x = e.input(0), *part = e.input(1);
  const auto dim = e.axis(2, x);
  const auto given = e.number_at(3);
  if (!dim || !part || !given) return false;
  const int64_t at = int64_t(*given) + (*given < 0 ? x->shape[*dim] : 0);
  Shape shape = x->shape;
  shape[*dim] = 1;
  const std::string row = e.as(x->dtype, e.write("row", "aten.unsqueeze.default",
                                                 {tensor_ref(part->name), int64_t(*dim)}, shape));
  return replaced(e, *x, row, *dim, at, at + 1);
}

}  // namespace

Rule part_rule(const std::string& base) {
  static const std::map<std::string, Rule> rules{
      {"slice_scatter", slice_scatter}, {"select_scatter", select_scatter}, {"slice", slice}};
  const auto rule = rules.find(base);
  return rule == rules.end() ? nullptr : rule->second;
}

}  // namespace cutegen::recipes
