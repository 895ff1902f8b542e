// SPDX-License-Identifier: Apache-2.0
// Compares the tree of `stark` with a slow reference that knows only each node's parent and
// verdict.
#include "search/tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "search/draws.h"

namespace cutegen::search {
namespace {

struct Slow {
  StarkSettings limits;
  std::vector<int> parents{-1};
  std::vector<Node> nodes{Node{}};

  int size() const { return int(nodes.size()); }
  const Node& at(int i) const { return nodes[size_t(i)]; }
  int up(int i) const { return parents[size_t(i)]; }
  std::set<int> children(int of) const {
    std::set<int> out;
    for (int i = 1; i < size(); ++i)
      if (up(i) == of) out.insert(i);
    return out;
  }
  bool selectable(int i) const {
    const std::set<int> c = children(i);
    const int count = int(c.size());
    const bool all_failed = std::ranges::all_of(c, [&](int k) { return at(k).failed; });
    if (at(i).repeats > limits.node_children) return false;
    return i == 0 ? count < limits.root_children : !(count > limits.node_children && all_failed);
  }
  // The r fastest nodes: those with fewer than r faster ones.
  std::set<int> leaders() const {
    std::set<int> out;
    for (int i = 1; i < size(); ++i) {
      int better = 0;
      for (int k = 1; k < size(); ++k)
        better += at(k).ns < at(i).ns || (at(k).ns == at(i).ns && k < i);
      if (at(i).ns < 1e300 && better < limits.leaders) out.insert(i);
    }
    return out;
  }
  std::set<int> siblings(int i) const {
    std::set<int> out = i == 0 ? std::set<int>{} : children(up(i));
    out.erase(i);
    return out;
  }
  std::set<int> plan_window(int i) const {
    std::set<int> out = children(i);
    out.merge(leaders());
    return with(out, i);
  }
  std::set<int> code_window(int i) const {
    std::set<int> out = children(i), near = siblings(i);
    for (int j = 1; j < size(); ++j)
      if (near.contains(up(j))) out.insert(j);
    return with(out, i);
  }
  std::set<int> debug_window(int i) const { return with(siblings(i), i); }
  int correct_starts() const {
    int out = 0;
    for (int i = 1; i < size(); ++i) {
      std::set<int> above;
      for (int k = up(i); k > 0; k = up(k)) above.insert(k);
      const bool later = std::ranges::any_of(above, [&](int k) { return !at(k).failed; });
      out += !at(i).failed && !later ? 1 : 0;
    }
    return out;
  }
  static std::set<int> with(std::set<int> out, int i) {
    out.insert(i);
    out.erase(0);
    return out;
  }
};

std::set<int> set_of(const std::vector<int>& nodes) {
  std::set<int> out(nodes.begin(), nodes.end());
  EXPECT_EQ(out.size(), nodes.size()) << "a node stands twice";
  return out;
}

void compare(const Tree& tree, const Slow& slow) {
  std::set<int> selectable, leaves;
  for (int i = 0; i < slow.size(); ++i) {
    if (!slow.selectable(i)) continue;
    selectable.insert(i);
    if (slow.children(i).empty()) leaves.insert(i);
  }
  EXPECT_EQ(set_of(tree.selectable()), selectable);
  EXPECT_EQ(set_of(tree.leaves()), leaves);
  if (!selectable.empty()) {
    const int fastest = tree.fastest(tree.selectable());
    EXPECT_TRUE(selectable.contains(fastest));
    const bool newest = slow.limits.drift && slow.at(fastest).ns < 1e300;
    for (int i : selectable) {
      EXPECT_LE(tree.at(fastest).ns, slow.at(i).ns);
      if (newest ? i > fastest : i < fastest) {
        EXPECT_LT(tree.at(fastest).ns, slow.at(i).ns);
      }
    }
  }
  EXPECT_EQ(tree.correct_starts(), slow.correct_starts());
  for (int i = 0; i < slow.size(); ++i) {
    EXPECT_EQ(set_of(tree.plan_window(i)), slow.plan_window(i));
    EXPECT_EQ(set_of(tree.code_window(i)), slow.code_window(i));
    EXPECT_EQ(set_of(tree.debug_window(i)), slow.debug_window(i));
  }
}

TEST(Tree, SelectsThrottlesPrunesAndShowsAsTheReferenceDoes) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    Draws draws(seed);
    StarkSettings limits;
    limits.root_children = 1 + int(draws.below(5));
    limits.node_children = 1 + int(draws.below(3));
    limits.leaders = int(draws.below(5));
    limits.drift = draws.uniform() < 0.5;
    Tree tree(limits);
    Slow slow{limits};
    for (int step = 0; step < 30; ++step) {
      Node node{.id = "c" + std::to_string(slow.size())};
      node.failed = draws.uniform() < 0.6;
      if (!node.failed) node.ns = 10 + double(draws.below(8));
      const int parent = int(draws.below(size_t(slow.size())));
      EXPECT_EQ(tree.add(node, parent), slow.size());
      slow.nodes.push_back(node);
      slow.parents.push_back(parent);
      if (draws.uniform() < 0.3) {
        ++tree.at(parent).repeats;
        ++slow.nodes[size_t(parent)].repeats;
      }
      compare(tree, slow);
      if (HasFailure()) return;
    }
  }
}

TEST(Tree, ANodeStaysOpenWhileOneChildIsCorrect) {
  Tree tree({.node_children = 2});
  const int top = tree.add({.id = "c1", .ns = 50}, 0);
  for (int i = 0; i < 2; ++i) tree.add({.failed = true}, top);
  EXPECT_TRUE(tree.is_selectable(top)) << "two failed children are not more than two";
  tree.add({.failed = true}, top);
  EXPECT_FALSE(tree.is_selectable(top));
  tree.add({.ns = 60}, top);
  EXPECT_TRUE(tree.is_selectable(top));
}

TEST(Draws, AreUniformAndTheSameForTheSameSeed) {
  Draws a(9), b(9);
  std::array<int, 10> counts{};
  for (int i = 0; i < 20000; ++i) {
    const size_t drawn = a.below(10);
    EXPECT_EQ(drawn, b.below(10));
    ++counts.at(drawn);
  }
  for (int count : counts) EXPECT_NEAR(count, 2000, 200);
}

}  // namespace
}  // namespace cutegen::search
