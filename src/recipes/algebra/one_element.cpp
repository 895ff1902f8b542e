// SPDX-License-Identifier: Apache-2.0
// A sum, mean, maximum, ... over one element is that element; a softmax over one element is 1.
//
// Numerical condition: the axes have one element at every shape of the task. The element itself is
// exact. The softmax of an undefined (NaN) element is NaN, not 1, but the evaluator does not judge
// NaN in the truth.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "recipes/algebra/rules.h"
#include "recipes/graph/pointwise.h"
#include "recipes/graph/reductions.h"

namespace cutegen::recipes {
namespace {

constexpr std::array kSame{"sum", "mean", "max", "amax", "min", "amin", "prod", "logsumexp"};
constexpr std::array kOne{"softmax", "_softmax"};

template <class List>
bool contains(const List& list, const std::string& word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

// Whether nothing reads the node's other outputs, such as the positions that a maximum also
// returns.
bool only_first_read(const Editor& edit, const Node& node) {
  return std::all_of(node.outputs.begin() + 1, node.outputs.end(),
                     [&](const Value& output) { return edit.unread(output.name); });
}

}  // namespace

Effect one_element(Editor& edit) {
  for (const Node& node : edit.graph().nodes) {
    auto r = find_reduction(edit.graph(), node);
    if (!r || !*r || !is_floating(node.outputs.front().dtype)) continue;
    const Reduction& reduction = **r;
    const bool same = contains(kSame, reduction.base), one = contains(kOne, reduction.base);
    if ((!same && !one) || !only_first_read(edit, node) ||
        !std::all_of(reduction.axes.begin(), reduction.axes.end(),
                     [&](int axis) { return edit.is_one(reduction.input, size_t(axis)); }))
      continue;
    if (one)
      edit.replace_node(node.id, "aten.full.default", {Json(node.outputs.front().shape), 1.0});
    else
      edit.replace(node.id, reduction.input);
    return fmt::format("{} over one element is {}", reduction.base, one ? "1" : "that element");
  }
  return std::nullopt;
}

}  // namespace cutegen::recipes
