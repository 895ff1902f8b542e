// SPDX-License-Identifier: Apache-2.0
// Tree: holds the programs of the strategy `stark`. The parent of a program is the program that the
// model changed to write it.
//
// Contract: node 0 is the root and stands for the reference; it has no program. The tree never
// removes a node. The search may select a node unless one of three limits excludes it:
// - The root has root_children children.
// - A node other than the root has more than node_children children, and all of them failed.
// - More than node_children of the model's changes to the node's program gave programs that the run
//   already knew.
// If several nodes are equally fast, fastest() returns the newest node with `drift`, so that a
// search can cross a plateau, and the oldest node without `drift`. A window lists the nodes that a
// question to one role shows, each node once. A window omits the root, because every question shows
// the reference anyway.
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
  double ns = std::numeric_limits<double>::infinity();  // infinite without a time
  bool failed = false;
  double nearness = 0;  // how close a failed program is to a correct one, from 0 to 1
  std::string plan = {}, hash = {};
  std::optional<Family> family = {};  // the kind of change; a repair has its parent's kind
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
  // Returns the node with this candidate id; empty if no node has it.
  std::optional<int> find(const std::string& id) const;

  bool is_selectable(int node) const;
  std::vector<int> selectable() const;
  std::vector<int> leaves() const;  // the selectable nodes without children
  // Returns the fastest of `nodes`, which must not be empty.
  int fastest(const std::vector<int>& nodes) const;
  // Returns the number of correct programs that have no correct ancestor.
  int correct_starts() const;

  // Return the windows of planner, coder and debugger. Each window begins with `node` itself. The
  // planner also sees the node's children and the run's fastest programs. The coder also sees the
  // node's children and the children of its siblings. The debugger also sees the node's siblings.
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
