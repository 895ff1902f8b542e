// SPDX-License-Identifier: Apache-2.0
#include "recipes/fuse/cuts.h"

#include <set>

#include "recipes/graph/pointwise.h"
#include "recipes/graph/reshape.h"

namespace cutegen::recipes {
namespace {

constexpr int64_t kSmall = 4;  // a value this many times smaller is cheaper to keep

// Views that give a value another shape and keep the order of its elements.
bool reshapes(const Node& node) {
  static const std::set<std::string> kNames{"view",           "reshape", "_unsafe_view",
                                            "_reshape_alias", "flatten", "unflatten"};
  return node.op.rfind("aten.", 0) == 0 && kNames.count(base_name(node.op)) > 0;
}

class Cutter {
 public:
  Cutter(const Region& region, const std::vector<Reducing>& found)
      : region_(region), found_(found) {}

  std::string run() const {
    for (const Reducing& reducing : found_)
      if (alike(reducing.r, found_.back().r) && depends(reducing.r.input))
        return before_reshapes(small_source(reducing.r.input));
    for (const Reducing& reducing : found_)
      if (!alike(reducing.r, found_.back().r)) return reducing.node->outputs.front().name;
    return "";
  }

 private:
  const Node* producer(const std::string& name) const {
    return region_.kept.count(name) ? nullptr : region_.source.graph.producer(name);
  }
  const Reducing* reducing(const Node* node) const {
    for (const Reducing& r : found_)
      if (r.node == node) return &r;
    return nullptr;
  }

  // Whether the value depends on a reduction over other axes or another shape.
  bool depends(const std::string& value) const {
    std::set<const Node*> seen;
    std::vector<std::string> work{value};
    while (!work.empty()) {
      const Node* node = producer(work.back());
      work.pop_back();
      if (!node || !seen.insert(node).second) continue;
      const Reducing* r = reducing(node);
      if (r && !alike(r->r, found_.back().r)) return true;
      for (const std::string& input : inputs_of(*node)) work.push_back(input);
    }
    return false;
  }

  // Returns the value that reshapes turn into `value`. A stage that computes the returned value
  // knows the sizes of its axes.
  std::string before_reshapes(std::string value) const {
    for (const Node* node = producer(value); node && reshapes(*node); node = producer(value)) {
      const auto inputs = inputs_of(*node);
      if (inputs.size() != 1 || !producer(inputs.front())) break;
      value = inputs.front();
    }
    return value;
  }

  // Returns `value`, or a much smaller value from which pointwise operators compute it.
  std::string small_source(const std::string& value) const {
    const Graph& graph = region_.source.graph;
    int64_t size = product(graph.find(value)->shape);
    std::set<const Node*> seen;
    std::vector<std::string> work{value};
    std::string small;
    while (!work.empty()) {
      std::string name = work.back();
      work.pop_back();
      const Node* node = producer(name);
      if (!node || !depends(name)) continue;
      if (product(graph.find(name)->shape) * kSmall <= size) {
        small = name;
      } else if (reducing(node)) {
        return value;
      } else if (seen.insert(node).second) {
        for (const std::string& input : inputs_of(*node)) work.push_back(input);
      }
    }
    return small.empty() ? value : small;
  }

  const Region& region_;
  const std::vector<Reducing>& found_;
};

}  // namespace

bool alike(const Reduction& a, const Reduction& b) {
  const bool same_way = !a.scan || !b.scan || a.scan->reversed == b.scan->reversed;
  return a.shape == b.shape && a.axes == b.axes && a.scan.has_value() == b.scan.has_value() &&
         same_way;
}

std::vector<std::string> inputs_of(const Node& node) {
  std::vector<std::string> names;
  std::vector<const Json*> work;
  work.reserve(node.args.size() + node.kwargs.size());
  for (const Json& arg : node.args) work.push_back(&arg);
  for (const auto& [key, arg] : node.kwargs.items()) work.push_back(&arg);
  while (!work.empty()) {
    const Json* arg = work.back();
    work.pop_back();
    if (auto ref = reference(*arg)) names.push_back(*ref);
    if (arg->is_array())
      for (const Json& item : *arg) work.push_back(&item);
  }
  return names;
}

std::string find_cut(const Region& region, const std::vector<Reducing>& found) {
  return Cutter(region, found).run();
}

}  // namespace cutegen::recipes
