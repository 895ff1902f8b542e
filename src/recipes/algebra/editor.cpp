// SPDX-License-Identifier: Apache-2.0
#include "recipes/algebra/editor.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/result.h"
#include "recipes/graph/names.h"
#include "recipes/graph/pointwise.h"
#include "recipes/graph/reductions.h"
#include "recipes/graph/scales.h"

namespace cutegen::recipes {
namespace {

// Whether the task's tensor has size 1 along the axis at every shape.
bool tensor_is_one(const Task& task, const std::string& name, size_t axis) {
  return std::all_of(task.shapes.begin(), task.shapes.end(), [&](const ShapeCase& shape) {
    auto found = shape.tensors.find(name);
    return found != shape.tensors.end() && axis < found->second.size() && found->second[axis] == 1;
  });
}

Node* node_of(Graph& graph, const std::string& id) {
  for (Node& node : graph.nodes)
    if (node.id == id) return &node;
  return nullptr;
}

}  // namespace

Json value_ref(const std::string& name) {
  return {{"ref", name}};
}

bool copies(const Editor& edit, const Node& node) {
  const auto from = reference(argument(node, 0, "self"));
  return keeps_elements(node) && from && edit.shape(*from) == node.outputs.front().shape;
}

Editor::Editor(const Task& task, Graph& graph)
    : task_(task), graph_(graph), reads_(reads_of_values(graph)) {}

const Value* Editor::find(const std::string& name) const {
  for (const Node& node : added_)
    if (node.outputs.front().name == name) return &node.outputs.front();
  return graph_.find(name);
}

const Shape& Editor::shape(const std::string& name) const {
  static const Shape kNone;
  const Value* value = find(name);
  return value ? value->shape : kNone;
}

std::string Editor::root(const std::string& name) const {
  std::string value = name;
  const Node* node = graph_.producer(value);
  while (node && copies(*this, *node)) {
    value = *reference(argument(*node, 0, "self"));
    node = graph_.producer(value);
  }
  return value;
}

const Node* Editor::source(const std::string& name) const {
  return graph_.producer(root(name));
}

bool Editor::read_once(const std::string& name) const {
  auto found = reads_.find(name);
  return found != reads_.end() && found->second == 1 &&
         std::find(graph_.outputs.begin(), graph_.outputs.end(), name) == graph_.outputs.end();
}

bool Editor::unread(const std::string& name) const {
  auto found = reads_.find(name);
  return found == reads_.end() || found->second == 0;
}

bool Editor::is_one(const std::string& name, size_t axis) const {
  const Shape& own = shape(name);
  if (axis >= own.size() || own[axis] != 1) return false;
  const Node* node = graph_.producer(name);
  if (!node) return tensor_is_one(task_, name, axis);
  if (copies(*this, *node)) return is_one(*reference(argument(*node, 0, "self")), axis);
  auto reduction = find_reduction(graph_, *node);
  if (!reduction) return false;
  if (*reduction) {
    const Reduction& r = **reduction;
    if (r.elementwise) return is_one(r.input, axis);
    if (!r.keepdim) return false;
    return std::count(r.axes.begin(), r.axes.end(), int(axis)) > 0 || is_one(r.input, axis);
  }
  auto pointwise = lower_pointwise(*node);
  if (!pointwise || !*pointwise) return false;
  return std::all_of((*pointwise)->operands.begin(), (*pointwise)->operands.end(),
                     [&](const std::string& operand) {
                       if (operand.starts_with(kSize)) return true;
                       const size_t missing = own.size() - shape(operand).size();
                       return axis < missing || is_one(operand, axis - missing);
                     });
}

std::string Editor::add(const std::string& word, const std::string& op, std::vector<Json> args,
                        Shape shape) {
  Node node;
  do node.id = fmt::format("{}_rewritten{}", word, count_++);
  while (find(node.id));
  node.op = op;
  node.args = std::move(args);
  node.outputs = {Value{.name = node.id, .dtype = DType::f32, .shape = std::move(shape)}};
  added_.push_back(node);
  return node.id;
}

std::string Editor::add_sized(const std::string& word, const std::string& op,
                              std::vector<Json> args, Shape shape,
                              std::vector<SizeArgument> sizes) {
  std::string value = add(word, op, std::move(args), std::move(shape));
  added_.back().sizes = std::move(sizes);
  return value;
}

void Editor::replace(const std::string& node_id, const std::string& value) {
  Node* node = node_of(graph_, node_id);
  CG_ASSERT(node != nullptr);
  const Shape shape = node->outputs.front().shape;
  node->op = this->shape(value) == shape ? "aten.alias.default" : "aten.view.default";
  node->args = {value_ref(value)};
  if (node->op == "aten.view.default") node->args.emplace_back(shape);
  node->kwargs = Json::object();
  node->sizes.clear();
  node->outputs.resize(1);
  const auto at = std::find_if(graph_.nodes.begin(), graph_.nodes.end(),
                               [&](const Node& n) { return n.id == node_id; });
  graph_.nodes.insert(at, added_.begin(), added_.end());
  added_.clear();
  drop_unread();
}

void Editor::replace_node(const std::string& node_id, const std::string& op,
                          std::vector<Json> args) {
  Node* node = node_of(graph_, node_id);
  CG_ASSERT(node != nullptr);
  node->op = op;
  node->args = std::move(args);
  node->kwargs = Json::object();
  node->sizes.clear();
  drop_unread();
}

void Editor::require(const std::string& expression) {
  if (std::find(requirements_.begin(), requirements_.end(), expression) == requirements_.end())
    requirements_.push_back(expression);
}

void Editor::require_size(const std::string& tensor, size_t axis) {
  const std::string name = short_names(task_).at(tensor);
  require(fmt::format("dim({},{}) == {}", name, axis, shape(tensor)[axis]));
}

void Editor::drop_unread() {
  for (;;) {
    reads_ = reads_of_values(graph_);
    const auto unread = [&](const Node& node) {
      return std::all_of(node.outputs.begin(), node.outputs.end(),
                         [&](const Value& output) { return reads_.at(output.name) == 0; });
    };
    if (std::erase_if(graph_.nodes, unread) == 0) return;
  }
}

}  // namespace cutegen::recipes
