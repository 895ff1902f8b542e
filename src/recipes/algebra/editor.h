// SPDX-License-Identifier: Apache-2.0
// Editor: how the rules of algebra read and change a graph.
//
// Contract: the graph is one that prepare() returned: no node writes its arguments. replace()
// replaces one node by others and keeps the name of its first output, so that nodes which read it
// need no change. drop_unread() removes nodes whose results nothing reads.
//
// Example: Editor edit(task, graph); auto w = edit.add("total", "aten.sum.dim_IntList", ...);
//          edit.replace(node, w);
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
  const Value* find(const std::string& name) const;  // new values, too
  const Shape& shape(const std::string& name) const;
  // The node that computes a value or, if the value is a copy, its original. Null for a tensor of
  // the task.
  const Node* source(const std::string& name) const;
  // If the value is a copy (of a copy ...), the name of the original.
  std::string root(const std::string& name) const;
  // Whether only one node reads the value, and the value is not a result of the task.
  bool read_once(const std::string& name) const;
  bool unread(const std::string& name) const;
  // Whether the axis has size 1 at every shape of the task.
  bool is_one(const std::string& name, size_t axis) const;

  // Adds a float32 node to the nodes that replace() will insert, and returns its value.
  std::string add(const std::string& word, const std::string& op, std::vector<Json> args,
                  Shape shape);
  // Like add(), with arguments that are sizes of the task's tensors.
  std::string add_sized(const std::string& word, const std::string& op, std::vector<Json> args,
                        Shape shape, std::vector<SizeArgument> sizes);
  // Inserts the added nodes before the node, which becomes a view of `value`.
  void replace(const std::string& node_id, const std::string& value);
  void discard() { added_.clear(); }  // forgets the added nodes
  // Replaces one node by another with the same outputs.
  void replace_node(const std::string& node_id, const std::string& op, std::vector<Json> args);
  void drop_unread();
  // A condition on the task's sizes that a program of the changed graph needs, as a plan
  // expression.
  void require(const std::string& expression);
  // Requires that the tensor has its official size along the axis.
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

// Whether the operator only copies its first argument, with the same shape, and perhaps rounds it.
bool copies(const Editor& edit, const Node& node);

}  // namespace cutegen::recipes
