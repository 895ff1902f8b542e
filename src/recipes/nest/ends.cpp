// SPDX-License-Identifier: Apache-2.0
#include "recipes/nest/ends.h"

#include <algorithm>
#include <set>

#include "recipes/fuse/builder.h"
#include "recipes/fuse/cuts.h"
#include "recipes/fuse/views.h"
#include "recipes/graph/pointwise.h"
#include "recipes/graph/products.h"
#include "recipes/graph/reductions.h"
#include "recipes/graph/reshape.h"

namespace cutegen::recipes {
namespace {

constexpr size_t kMostEnds = 64;  // values that are tried, the nearest to the product

bool is_pointwise(const Graph& graph, const Node& node) {
  if (is_window(node) || is_product(node) || node.outputs.size() != 1) return false;
  if (is_view(node)) return true;
  auto reduction = find_reduction(graph, node);
  if (!reduction || *reduction) return false;
  auto pointwise = lower_pointwise(node);
  return pointwise && *pointwise;
}

class Ends {
 public:
  Ends(const Region& region, const std::vector<std::string>& wanted, const std::string& product)
      : graph_(region.source.graph),
        nodes_(nodes_above(graph_, wanted, region.kept)),
        wanted_(wanted),
        product_(product) {}

  std::vector<std::string> run() const {
    std::vector<std::string> ends{product_};
    std::set<std::string> within{product_}, dependent{product_};
    const int64_t elements = product(graph_.find(product_)->shape);
    for (const Node* node : nodes_) {
      bool depends = false, inside = is_pointwise(graph_, *node);
      for (const std::string& input : inputs_of(*node)) {
        depends |= dependent.count(input) > 0;
        inside &= !dependent.count(input) || within.count(input);
      }
      if (!depends) continue;
      for (const Value& output : node->outputs) dependent.insert(output.name);
      const Value& result = node->outputs.front();
      if (!inside || product(result.shape) != elements) continue;
      within.insert(result.name);
      if (!is_view(*node) && is_floating(result.dtype) && !passes_by(result.name))
        ends.push_back(result.name);
      if (ends.size() > kMostEnds) break;
    }
    std::reverse(ends.begin(), ends.end());
    return ends;
  }

 private:
  // Whether a path from the product to a wanted value avoids `end`.
  bool passes_by(const std::string& end) const {
    std::set<std::string> reached{product_};
    for (const Node* node : nodes_) {
      const auto inputs = inputs_of(*node);
      const bool reads = std::any_of(inputs.begin(), inputs.end(),
                                     [&](const auto& input) { return reached.count(input) > 0; });
      if (!reads) continue;
      for (const Value& output : node->outputs)
        if (output.name != end) reached.insert(output.name);
    }
    return std::any_of(wanted_.begin(), wanted_.end(),
                       [&](const std::string& value) { return reached.count(value) > 0; });
  }

  const Graph& graph_;
  std::vector<const Node*> nodes_;
  const std::vector<std::string>& wanted_;
  const std::string& product_;
};

}  // namespace

std::vector<std::string> ends_of(const Region& region, const std::vector<std::string>& wanted,
                                 const std::string& product) {
  return Ends(region, wanted, product).run();
}

}  // namespace cutegen::recipes
