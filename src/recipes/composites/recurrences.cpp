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

// The states of one layer; appends its last states and cells.
std::string write_layer(Expansion& e, const Layers& layers, const std::string& x, size_t layer,
                        std::vector<Json>& last, std::vector<Json>& last_cells) {
  const Value from = *e.find(x);
  const size_t cell = layer * layers.directions();
  const int64_t states = e.find(*reference(layers.weight(cell, 1)))->shape[1];
  const auto directions = int64_t(layers.directions());
  const bool lstm = layers.kind == CellKind::lstm;
  Json sides = Json::array();
  for (size_t c = cell; c < cell + layers.directions(); ++c)
    sides.push_back({tensor_ref(inputs_of(e, from, layers.weight(c, 0), layers.weight(c, 2))),
                     layers.weight(c, 1), layers.weight(c, 3)});
  const Json given = e.arg(1);
  Node node;
  node.id = fmt::format("{}_layer{}", e.node.id, layer);
  node.op = kRecurrence;
  node.args = {sides,
               first_states(e, lstm ? given.at(0) : given),
               lstm ? first_states(e, given.at(1)) : Json(),
               int(layers.kind),
               layers.batch_first,
               int64_t(cell)};
  const auto add = [&](const std::string& word, const Shape& shape) {
    const std::string name = fmt::format("{}~{}{}", e.node.id, word, layer);
    node.outputs.push_back(Value{.name = name, .dtype = from.dtype, .shape = shape});
    return name;
  };
  const Shape ends{directions, from.shape[layers.batch_first ? 0 : 1], states};
  std::string all = add("states", {from.shape[0], from.shape[1], directions * states});
  last.push_back(tensor_ref(add("last", ends)));
  if (lstm) last_cells.push_back(tensor_ref(add("last_cell", ends)));
  e.append(std::move(node));
  return all;
}

// Writes an output of the layers: their last states, one layer after another.
void join_layers(Expansion& e, const std::vector<Json>& states, size_t output) {
  if (!e.is_read(output)) return;
  const Value& result = e.result(output);
  if (states.size() == 1)
    e.view(*reference(states[0]), result.shape, result.name);
  else
    e.write("layers", "aten.cat.default", {Json(states), 0}, result.shape, result.name);
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
  for (size_t layer = 0; layer < layers->layers; ++layer)
    x = write_layer(e, *layers, x, layer, last, last_cells);
  if (e.is_read(0)) e.finish(x);
  join_layers(e, last, 1);
  if (kind == CellKind::lstm) join_layers(e, last_cells, 2);
  return true;
}

}  // namespace

std::optional<Recurrence> find_recurrence(const Node& node) {
  if (node.op != kRecurrence) return std::nullopt;
  const auto name = [](const Json& operand) { return reference(operand).value_or(""); };
  Recurrence found{.sides = {},
                   .first = name(node.args[1]),
                   .first_cell = name(node.args[2]),
                   .kind = CellKind(node.args[3].get<int>()),
                   .batch_first = node.args[4].get<bool>(),
                   .cell = node.args[5].get<int64_t>()};
  for (const Json& side : node.args[0])
    found.sides.push_back(
        {.inputs = name(side[0]), .weight = name(side[1]), .bias = name(side[2])});
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
