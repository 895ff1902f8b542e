// SPDX-License-Identifier: Apache-2.0
// Tree: the programs of the strategy `stark`. A program's parent is the program that it changes.
//
// Contract: node 0 is the root, the reference; it has no program. Nodes never leave the tree. A
// node is selectable unless a limit closes it. The root closes with root_children children. Another
// node closes when it has more than node_children children and all failed, or when more than
// node_children answers for it repeated a known program. With `drift`, the newest of equally fast
// nodes is the fastest, so that a search can cross a plateau; otherwise the oldest is. A window
// lists the nodes that one role sees, each once, without the root, because every question shows the
// reference.
//
// Example: Tree tree({.root_children = 5}); int n = tree.add({.id = "c1", .ns = 80}, 0);
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "search/families.h"
#include "search/strategy.h"

namespace cutegen::search {

struct Node {
  std::string id;
  double ns = std::numeric_limits<double>::infinity();  // infinite: failed, or no time is known
  bool failed = false;
  double nearness = 0;  // how nearly correct a failed program is: from 0 (far) to 1
  std::string plan = {}, hash = {};
  std::optional<Family> family = {};  // the kind of the change that led here; repairs keep it
  double before_ns = std::numeric_limits<double>::infinity();  // time before the change
  int repeats = 0;  // answers that repeated a known program
};

class Tree {
 public:
  explicit Tree(const StarkSettings& limits);

  int add(Node node, int parent);
  Node& at(int node) { return nodes_[size_t(node)]; }
  const Node& at(int node) const { return nodes_[size_t(node)]; }
  int size() const { return int(nodes_.size()); }
  int parent(int node) const { return parents_[size_t(node)]; }
  const std::vector<int>& children(int node) const { return children_[size_t(node)]; }
  std::vector<int> siblings(int node) const;
  // Empty if no node has the id.
  std::optional<int> find(const std::string& id) const;

  bool is_selectable(int node) const;
  std::vector<int> selectable() const;
  std::vector<int> leaves() const;  // the selectable nodes without children
  // The fastest of these nodes. `nodes` must not be empty.
  int fastest(const std::vector<int>& nodes) const;
  // Number of correct programs without a correct ancestor.
  int correct_starts() const;

  // The windows of the roles. Each begins with the node itself.
  std::vector<int> plan_window(int node) const;   // children and the fastest programs of the run
  std::vector<int> code_window(int node) const;   // children and the children of siblings
  std::vector<int> debug_window(int node) const;  // siblings

 private:
  std::vector<int> leaders() const;

  StarkSettings limits_;
  std::vector<Node> nodes_;
  std::vector<int> parents_, failed_children_;
  std::vector<std::vector<int>> children_;
};

}  // namespace cutegen::search
