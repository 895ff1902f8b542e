// SPDX-License-Identifier: Apache-2.0
// Editor: the functions with which the rewrite rules (rewrites.h) read and change a graph.
//
// Contract: the graph must come from prepare() (recipes/fuse/fused.h), which removes in-place
// operators. add() collects new nodes. replace() inserts the collected nodes before a node of the
// graph, and turns this node into a view of their result. The first output of a replaced node keeps
// its name, so nodes that read the output need no change. drop_unread() removes nodes whose results
// no node reads.
//
// Example:
//   Editor edit(task, graph); auto w = edit.add("total", "aten.sum.dim_IntList", ...);
//   edit.replace(node, w);
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/task.h"

namespace cutegen::recipes {

Json value_ref(const std::string& name);

class Editor {
 public:
  Editor(const Task& task, Graph& graph);

  const Graph& graph() const { return graph_; }
  const Task& task() const { return task_; }
  const Value* find(const std::string& name) const;  // also finds the values of added nodes
  const Shape& shape(const std::string& name) const;
  // Returns the node that computes a value or, if the value is a copy, the node that computes the
  // original. Returns null if no node computes the value: for an input or a weight of the task.
  const Node* source(const std::string& name) const;
  // Returns the name of the original if the value is a copy, or a copy of a copy, and so on, and
  // `name` for other values.
  std::string root(const std::string& name) const;
  // Returns whether only one node reads the value, and the value is not a result of the task.
  bool read_once(const std::string& name) const;
  bool unread(const std::string& name) const;
  // Returns whether the axis has size 1 at every shape of the task.
  bool is_one(const std::string& name, size_t axis) const;

  // Adds a node with a float32 result to the nodes that replace() will insert, and returns the name
  // of the result.
  std::string add(const std::string& word, const std::string& op, std::vector<Json> args,
                  Shape shape);
  // Does what add() does; `sizes` lists the arguments that are sizes of the task's tensors.
  std::string add_sized(const std::string& word, const std::string& op, std::vector<Json> args,
                        Shape shape, std::vector<SizeArgument> sizes);
  // Inserts the added nodes before the node `node_id` and turns this node into a view of `value`.
  void replace(const std::string& node_id, const std::string& value);
  void discard() { added_.clear(); }  // drops the added nodes
  // Replaces a node by another node with the same outputs.
  void replace_node(const std::string& node_id, const std::string& op, std::vector<Json> args);
  void drop_unread();
  // Adds a condition on the task's sizes, as an expression of the launch plan. Programs of the
  // changed graph are correct only if the condition holds.
  void require(const std::string& expression);
  // Adds the condition that the tensor's axis has its size in the task file.
  void require_size(const std::string& tensor, size_t axis);
  const std::vector<std::string>& requirements() const { return requirements_; }

 private:
  const Task& task_;
  Graph& graph_;
  std::vector<Node> added_;
  std::map<std::string, int> reads_;
  std::vector<std::string> requirements_;
  size_t count_ = 0;
};

// Returns whether the operator only copies its first argument to the same shape, perhaps with
// another dtype.
bool copies(const Editor& edit, const Node& node);

}  // namespace cutegen::recipes
