// SPDX-License-Identifier: Apache-2.0
// Tree: holds the programs of the strategy `stark`. The parent of a program is the program that the
// model changed to write it.
//
// Contract: node 0 is the root and stands for the reference; it has no program. Nodes are never
// removed. The search may select a node unless a limit excludes it. The root is excluded when it
// has root_children children. Another node is excluded when it has more than node_children children
// and all of them failed. Any node is excluded when more than node_children answers for it repeated
// a known program. If several nodes are equally fast, fastest() returns the newest with `drift`, so
// that a search can cross a plateau; otherwise it returns the oldest. A window lists the nodes that
// a question to one role shows. It contains each node once, and not the root, because every
// question shows the reference anyway.
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
  double ns = std::numeric_limits<double>::infinity();  // infinite if it failed or has no time
  bool failed = false;
  double nearness = 0;  // how close a failed program is to a correct one, from 0 to 1
  std::string plan = {}, hash = {};
  std::optional<Family> family = {};  // the kind of change; a repair has the kind of its parent
  double before_ns = std::numeric_limits<double>::infinity();  // time before the change
  int repeats = 0;  // number of answers that repeated a known program
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
  // Returns the node with this candidate id; empty if there is none.
  std::optional<int> find(const std::string& id) const;

  bool is_selectable(int node) const;
  std::vector<int> selectable() const;
  std::vector<int> leaves() const;  // the selectable nodes without children
  // Returns the fastest of these nodes. `nodes` must not be empty.
  int fastest(const std::vector<int>& nodes) const;
  // Returns the number of correct programs that have no correct ancestor.
  int correct_starts() const;

  // The windows of planner, coder and debugger. Each begins with the node itself. The planner also
  // sees the node's children and the run's fastest programs, the coder its children and the
  // children of its siblings, and the debugger its siblings.
  std::vector<int> plan_window(int node) const;
  std::vector<int> code_window(int node) const;
  std::vector<int> debug_window(int node) const;

 private:
  std::vector<int> leaders() const;

  StarkSettings limits_;
  std::vector<Node> nodes_;
  std::vector<int> parents_, failed_children_;
  std::vector<std::vector<int>> children_;
};

}  // namespace cutegen::search
