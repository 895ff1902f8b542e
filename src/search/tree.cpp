// SPDX-License-Identifier: Apache-2.0
#include "search/tree.h"

#include <algorithm>
#include <cmath>

namespace cutegen::search {
namespace {

// Appends the nodes that the window lacks; never the root.
void extend(std::vector<int>& window, const std::vector<int>& nodes) {
  for (int node : nodes)
    if (node != 0 && std::ranges::find(window, node) == window.end()) window.push_back(node);
}

}  // namespace

Tree::Tree(const StarkSettings& limits) : limits_(limits) {
  nodes_.push_back({});
  parents_.push_back(-1);
  failed_children_.push_back(0);
  children_.emplace_back();
}

int Tree::add(Node node, int parent) {
  const int added = size();
  const auto above = size_t(parent);
  failed_children_[above] += node.failed ? 1 : 0;
  children_[above].push_back(added);
  nodes_.push_back(std::move(node));
  parents_.push_back(parent);
  failed_children_.push_back(0);
  children_.emplace_back();
  return added;
}

std::vector<int> Tree::siblings(int node) const {
  if (node == 0) return {};
  std::vector<int> out = children(parent(node));
  std::erase(out, node);
  return out;
}

std::optional<int> Tree::find(const std::string& id) const {
  for (int node = 1; node < size(); ++node)
    if (at(node).id == id) return node;
  return std::nullopt;
}

bool Tree::is_selectable(int node) const {
  const auto i = size_t(node);
  const int count = int(children_[i].size());
  if (nodes_[i].repeats > limits_.node_children) return false;
  if (node == 0) return count < limits_.root_children;
  return count <= limits_.node_children || failed_children_[i] < count;
}

std::vector<int> Tree::selectable() const {
  std::vector<int> out;
  for (int node = 0; node < size(); ++node)
    if (is_selectable(node)) out.push_back(node);
  return out;
}

std::vector<int> Tree::leaves() const {
  std::vector<int> out = selectable();
  std::erase_if(out, [&](int node) { return !children(node).empty(); });
  return out;
}

int Tree::fastest(const std::vector<int>& nodes) const {
  const int best = *std::ranges::min_element(nodes, {}, [&](int node) { return at(node).ns; });
  const double ns = at(best).ns;
  if (!limits_.drift || !std::isfinite(ns)) return best;
  return *std::ranges::max_element(nodes, {}, [&](int n) { return at(n).ns == ns ? n : -1; });
}

int Tree::correct_starts() const {
  int out = 0;
  for (int node = 1; node < size(); ++node) {
    int from = parent(node);
    while (from != 0 && at(from).failed) from = parent(from);
    out += from == 0 && !at(node).failed ? 1 : 0;
  }
  return out;
}

std::vector<int> Tree::leaders() const {
  std::vector<int> out;
  for (int node = 1; node < size(); ++node)
    if (std::isfinite(at(node).ns)) out.push_back(node);
  std::ranges::stable_sort(out, {}, [&](int node) { return at(node).ns; });
  if (out.size() > size_t(limits_.leaders)) out.resize(size_t(limits_.leaders));
  return out;
}

std::vector<int> Tree::plan_window(int node) const {
  std::vector<int> out;
  extend(out, {node});
  extend(out, children(node));
  extend(out, leaders());
  return out;
}

std::vector<int> Tree::code_window(int node) const {
  std::vector<int> out;
  extend(out, {node});
  extend(out, children(node));
  for (int sibling : siblings(node)) extend(out, children(sibling));
  return out;
}

std::vector<int> Tree::debug_window(int node) const {
  std::vector<int> out;
  extend(out, {node});
  extend(out, siblings(node));
  return out;
}

}  // namespace cutegen::search
