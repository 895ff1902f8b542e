// SPDX-License-Identifier: Apache-2.0
#include "recipes/composites/recurrences.h"

#include <fmt/format.h>

#include <map>
#include <set>

#include "recipes/composites/expansion.h"

namespace cutegen::recipes {
namespace {

// The arguments of aten.lstm.input and its relatives.
struct Layers {
  CellKind kind = CellKind::lstm;
  std::vector<Json> weights;
  size_t layers = 0;
  bool biases = false, both = false, batch_first = false;

  size_t directions() const { return both ? 2 : 1; }
  size_t each() const { return biases ? 4 : 2; }
  // A weight of a layer and direction: 0 and 1 are matrices, 2 and 3 are biases.
  Json weight(size_t cell, size_t which) const {
    return which < each() ? weights[cell * each() + which] : Json();
  }
};

std::optional<Layers> layers_of(const Expansion& e, CellKind kind, DType dtype) {
  const Json list = e.arg(2), count = e.arg(4);
  const bool dropped = e.arg(6) != false && e.number_at(5).value_or(1) != 0;
  if (!list.is_array() || !count.is_number_integer() || dropped) return std::nullopt;
  Layers layers{.kind = kind,
                .weights = std::vector<Json>(list.begin(), list.end()),
                .layers = count.get<size_t>(),
                .biases = e.arg(3) == true,
                .both = e.arg(7) == true,
                .batch_first = e.arg(8) == true};
  // With a projection, a layer has one more weight.
  const size_t wanted = layers.layers * layers.directions() * layers.each();
  if (layers.weights.size() != wanted) return std::nullopt;
  for (size_t i = 0; i < wanted; i += layers.each()) {
    const Value* matrix = e.find(reference(layers.weights[i + 1]).value_or(""));
    if (!matrix || matrix->dtype != dtype || matrix->shape.size() != 2 ||
        matrix->shape[1] > kMostStates)
      return std::nullopt;
  }
  return layers;
}

// The initial states of all layers; null if they are zero.
Json first_states(const Expansion& e, const Json& states) {
  static const std::set<std::string> copies{"detach", "clone", "alias", "expand", "contiguous"};
  static const std::set<std::string> zeros{"zeros", "zeros_like", "new_zeros"};
  for (auto name = reference(states); name;) {
    const Node* producer = e.graph.producer(*name);
    const std::string base = producer ? base_name(producer->op) : "";
    if (zeros.count(base)) return Json();
    name = copies.count(base) ? reference(argument(*producer, 0, "self")) : std::nullopt;
  }
  return states;
}

// The products of all inputs of a layer with its weights, as x @ w.T + bias.
std::string inputs_of(Expansion& e, const Value& x, const Json& weight, const Json& bias) {
  const Shape of = e.find(*reference(weight))->shape;
  const std::string rows = e.as(x.dtype, e.view(x.name, {x.shape[0] * x.shape[1], x.shape[2]}));
  const std::string turned =
      e.as(x.dtype, e.write("weights", "aten.t.default", {weight}, {of[1], of[0]}));
  const Shape shape{x.shape[0] * x.shape[1], of[0]};
  const std::string product =
      bias.is_null()
          ? e.write("inputs", "aten.mm.default", {tensor_ref(rows), tensor_ref(turned)}, shape)
          : e.write("inputs", "aten.addmm.default", {bias, tensor_ref(rows), tensor_ref(turned)},
                    shape);
  return e.view(product, {x.shape[0], x.shape[1], of[0]});
}

// The states of one layer in one direction; appends its last state and cell.
std::string direction(Expansion& e, const Layers& layers, const std::string& x, size_t cell,
                      bool reversed, std::vector<Json>& last, std::vector<Json>& last_cells) {
  const Value from = *e.find(x);
  const int64_t states = e.find(*reference(layers.weight(cell, 1)))->shape[1];
  const bool lstm = layers.kind == CellKind::lstm;
  const std::string inputs = inputs_of(e, from, layers.weight(cell, 0), layers.weight(cell, 2));
  const Json given = e.arg(1);
  const Json first = first_states(e, lstm ? given.at(0) : given),
             first_cell = lstm ? first_states(e, given.at(1)) : Json();
  Node node;
  node.id = fmt::format("{}_cell{}", e.node.id, cell);
  node.op = kRecurrence;
  node.args = {tensor_ref(inputs),
               layers.weight(cell, 1),
               layers.weight(cell, 3),
               first,
               first_cell,
               int(layers.kind),
               reversed,
               layers.batch_first,
               int64_t(cell)};
  const auto add = [&](const std::string& word, const Shape& shape) {
    const std::string name = fmt::format("{}~{}{}", e.node.id, word, cell);
    node.outputs.push_back(Value{.name = name, .dtype = from.dtype, .shape = shape});
    return name;
  };
  const Shape state{from.shape[layers.batch_first ? 0 : 1], states};
  const std::string sequence = add("states", {from.shape[0], from.shape[1], states});
  last.push_back(tensor_ref(add("last", state)));
  if (lstm) last_cells.push_back(tensor_ref(add("last_cell", state)));
  e.append(std::move(node));
  return sequence;
}

// Writes an output of the layers: the last states, one for each layer and direction.
void stack(Expansion& e, const std::vector<Json>& states, size_t output) {
  if (!e.is_read(output)) return;
  const Value& result = e.result(output);
  if (states.size() == 1)
    e.view(*reference(states[0]), result.shape, result.name);
  else
    e.write("stack", "aten.stack.default", {Json(states), 0}, result.shape, result.name);
}

// lstm(x, [h, c], weights, biases, layers, dropout, train, bidirectional, batch_first); the others
// have one initial state instead of a list.
bool recurrent(Expansion& e, CellKind kind) {
  const Value* input = e.input(0);
  if (!input || input->shape.size() != 3) return false;
  const DType dtype = input->dtype;
  if (dtype != DType::f32 && dtype != DType::f16 && dtype != DType::bf16) return false;
  const auto layers = layers_of(e, kind, dtype);
  const bool lists = e.arg(1).is_array() && e.arg(1).size() == 2;
  if (!layers || lists != (kind == CellKind::lstm)) return false;
  std::string x = input->name;
  std::vector<Json> last, last_cells;
  for (size_t layer = 0; layer < layers->layers; ++layer) {
    std::vector<Json> parts;
    for (size_t side = 0; side < layers->directions(); ++side) {
      const size_t cell = layer * layers->directions() + side;
      parts.push_back(tensor_ref(direction(e, *layers, x, cell, side == 1, last, last_cells)));
    }
    x = *reference(parts[0]);
    if (parts.size() == 1) continue;
    Shape both = e.find(x)->shape;
    both[2] *= 2;
    x = e.as(dtype, e.write("both", "aten.cat.default", {Json(parts), 2}, both));
  }
  if (e.is_read(0)) e.finish(x);
  stack(e, last, 1);
  if (kind == CellKind::lstm) stack(e, last_cells, 2);
  return true;
}

}  // namespace

std::optional<Recurrence> find_recurrence(const Node& node) {
  if (node.op != kRecurrence) return std::nullopt;
  Recurrence found{.operands = {},
                   .kind = CellKind(node.args[5].get<int>()),
                   .reversed = node.args[6].get<bool>(),
                   .batch_first = node.args[7].get<bool>(),
                   .cell = node.args[8].get<int64_t>()};
  for (size_t i = 0; i < found.operands.size(); ++i)
    found.operands[i] = reference(node.args[i]).value_or("");
  return found;
}

Rule recurrence_rule(const std::string& base) {
  static const std::map<std::string, Rule> rules{
      {"lstm", [](Expansion& e) { return recurrent(e, CellKind::lstm); }},
      {"gru", [](Expansion& e) { return recurrent(e, CellKind::gru); }},
      {"rnn_tanh", [](Expansion& e) { return recurrent(e, CellKind::tanh); }},
      {"rnn_relu", [](Expansion& e) { return recurrent(e, CellKind::relu); }}};
  const auto rule = rules.find(base);
  return rule == rules.end() ? nullptr : rule->second;
}

}  // namespace cutegen::recipes
