// SPDX-License-Identifier: Apache-2.0
#include "recipes/fuse/ties.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "recipes/fuse/extents.h"
#include "recipes/graph/reshape.h"

namespace cutegen::recipes {
namespace {

// A number of a class of sizes for each axis of the nest; -1: the value does not vary along it.
using Classes = std::vector<int>;

// The size of a reshaped operand's axis, as a text that only equal sizes have. Texts without blanks
// are plan expressions.
std::string reshaped_size(const Fused& fused, const Operand& operand, size_t axis) {
  for (const AxisGroup& group :
       group_axes(operand.original, operand.shape).value_or(std::vector<AxisGroup>{}))
    if (group.to == std::vector<size_t>{axis}) return total_of(fused, operand, group);
  return fmt::format("{} as {} along {}", operand.tensor, to_string(operand.shape), axis);
}

// The number of elements that the nest reads along an operand's axis, as a text that only equal
// numbers have. Slices of one tensor with the same official length have the same length.
std::string read_size(const Fused& fused, const Operand& operand, size_t axis) {
  const std::string whole =
      operand.reshaped ? reshaped_size(fused, operand, axis) : size_of_axis(fused, operand, axis);
  const int64_t length = fused.axes[size_t(operand.axes[axis])].size, size = operand.shape[axis];
  const Start start = operand.sliced() ? operand.starts[axis] : Start{};
  if (!start.length.empty()) return start.length;
  if (length == size) return whole;
  if (length > 0 && size % length == 0 && !start.by_number)
    return fmt::format("({})/{}", whole, size / length);
  return fmt::format("{} of {}{}", length, whole, start.from);
}

class Ties {
 public:
  Ties(const Fused& fused, const Region& region)
      : fused_(fused), same_(region.same), axes_(fused.axes.size()) {
    for (const auto& [a, b] : region.equal)
      for (size_t axis = 0; axis < axes_; ++axis) join(class_of(axis, a), class_of(axis, b));
    for (const Operand& operand : fused.inputs) operands_.push_back(classes_of(operand));
    for (size_t i = 0; i < fused.inputs.size(); ++i)
      for (const Start& start : fused.inputs[i].starts)
        if (start.index >= 0) tie(operands_[i], operands_[size_t(start.index)]);
    tie_indexed();
    for (const Inst& inst : fused.insts) insts_.push_back(classes_of(inst));
    for (const FusedOutput& output : fused.outputs) tie_output(output);
  }

  // For each axis, the classes of all operands from which the instruction is computed.
  std::vector<std::set<int>> needed(int inst) {
    std::vector<std::set<int>> classes(axes_);
    std::set<int> seen;
    std::vector<int> work{inst};
    while (!work.empty()) {
      const int next = work.back();
      work.pop_back();
      if (!seen.insert(next).second) continue;
      for (size_t axis = 0; axis < axes_; ++axis)
        if (const int id = insts_[size_t(next)][axis]; id >= 0) classes[axis].insert(root(id));
      const auto& inputs = fused_.insts[size_t(next)].inputs;
      work.insert(work.end(), inputs.begin(), inputs.end());
    }
    return classes;
  }

  std::vector<std::set<int>> all_needed() {
    std::vector<std::set<int>> all(axes_);
    for (const FusedOutput& output : fused_.outputs) {
      const auto own = needed(output.inst);
      for (size_t axis = 0; axis < axes_; ++axis)
        all[axis].insert(own[axis].begin(), own[axis].end());
    }
    return all;
  }

  // Returns the shortest plan expression of a size of the class, or "" if no text of the class is a
  // plan expression.
  std::string expression(size_t axis, int id) {
    std::string shortest;
    for (const auto& [size, other] : known_)
      if (size.first == axis && root(other) == id && size.second.find(' ') == std::string::npos &&
          (shortest.empty() || size.second.size() < shortest.size()))
        shortest = size.second;
    return shortest;
  }

  // For each axis of an output, the texts of the sizes that are equal to the axis' size.
  std::vector<std::set<std::string>> texts(const FusedOutput& output) {
    const Operand& operand = output.operand;
    std::vector<std::set<std::string>> texts(operand.axes.size());
    for (size_t i = 0; i < texts.size(); ++i) {
      const int id =
          reads_all(operand, i) ? insts_[size_t(output.inst)][size_t(operand.axes[i])] : -1;
      for (const auto& [size, other] : known_)
        if (id >= 0 && int(size.first) == operand.axes[i] && root(other) == root(id))
          texts[i].insert(size.second);
    }
    return texts;
  }

 private:
  int root(int id) {
    while (parents_[size_t(id)] != id) id = parents_[size_t(id)];
    return id;
  }

  int class_of(size_t axis, const std::string& size) {
    const auto [known, added] =
        known_.emplace(std::pair{axis, size}, static_cast<int>(parents_.size()));
    if (added) parents_.push_back(known->second);
    return known->second;
  }

  // Makes `b` and `a` the same along all axes that both have, and adds to `a` the axes of `b`.
  void tie(Classes& a, const Classes& b) {
    for (size_t axis = 0; axis < axes_; ++axis) {
      if (b[axis] < 0) continue;
      if (a[axis] < 0) a[axis] = b[axis];
      join(a[axis], b[axis]);
    }
  }

  void join(int a, int b) { parents_[size_t(root(b))] = root(a); }

  bool has_sizes(const Operand& operand) const {
    return operand.kept || fused_.names.count(operand.tensor) > 0;
  }

  Classes classes_of(const Operand& operand) {
    Classes classes(axes_, -1);
    if (operand.counts || !has_sizes(operand)) return classes;
    for (size_t i = 0; i < operand.axes.size(); ++i)
      if (const int axis = operand.axes[i]; axis >= 0)
        classes[size_t(axis)] = class_of(size_t(axis), read_size(fused_, operand, i));
    if (const auto same = same_.find(operand.tensor); operand.kept && same != same_.end())
      for (size_t i = 0; i < same->second.size(); ++i)
        if (reads_all(operand, i))
          for (const std::string& text : same->second[i])
            join(classes[size_t(operand.axes[i])], class_of(size_t(operand.axes[i]), text));
    return classes;
  }

  // Whether the nest reads all elements along an axis of a tensor that is not reshaped.
  bool reads_all(const Operand& operand, size_t i) const {
    return !operand.reshaped && operand.axes[i] >= 0 &&
           fused_.axes[size_t(operand.axes[i])].size == operand.shape[i];
  }

  Classes classes_of(const Inst& inst) {
    Classes classes(axes_, -1);
    if (inst.kind == InstKind::leaf) return operands_[size_t(inst.operand)];
    for (int input : inst.inputs) tie(classes, insts_[size_t(input)]);
    for (size_t axis = 0; inst.kind == InstKind::reduction && axis < axes_; ++axis)
      if (fused_.axes[axis].reduced) classes[axis] = -1;
    return classes;
  }

  // If one index tensor selects elements along axes of equal official size, such as the classes of
  // logits and of weights, the axes have the same size.
  void tie_indexed() {
    std::map<std::pair<int, int64_t>, std::string> texts;  // by index operand and official size
    for (const Operand& operand : fused_.inputs)
      for (size_t i = 0; i < operand.starts.size(); ++i) {
        if (operand.starts[i].index < 0 || operand.reshaped || !has_sizes(operand)) continue;
        const std::string own = size_of_axis(fused_, operand, i);
        const auto [first, added] =
            texts.emplace(std::pair{operand.starts[i].index, operand.shape[i]}, own);
        for (size_t axis = 0; !added && axis < axes_; ++axis)
          join(class_of(axis, first->second), class_of(axis, own));
      }
  }

  // The parts of one output have the output's sizes along all other axes.
  void tie_output(const FusedOutput& output) {
    const Operand& operand = output.operand;
    if (operand.kept || operand.gathered() || operand.mode != WriteMode::store) return;
    Classes classes(axes_, -1);
    for (size_t i = 0; i < operand.axes.size(); ++i) {
      const int axis = operand.axes[i];
      if (axis < 0) continue;
      // The part of a joined axis has a size of its own, unless parts have their elements in turn.
      const bool turns = operand.sliced() && operand.starts[i].step > 1;
      if (turns || operand.shape[i] == fused_.axes[size_t(axis)].size)
        classes[size_t(axis)] = class_of(size_t(axis), read_size(fused_, operand, i));
    }
    tie(classes, insts_[size_t(output.inst)]);
  }

  const Fused& fused_;
  const SizeTexts& same_;
  size_t axes_;
  std::map<std::pair<size_t, std::string>, int> known_;
  std::vector<int> parents_;  // of classes; a class that is its own parent stands for all below it
  std::vector<Classes> operands_, insts_;
};

// Adds the classes of `more` unless some axis would then have two.
bool add(std::vector<std::set<int>>& classes, const std::vector<std::set<int>>& more) {
  std::vector<std::set<int>> both = classes;
  for (size_t axis = 0; axis < both.size(); ++axis) {
    both[axis].insert(more[axis].begin(), more[axis].end());
    if (both[axis].size() > 1 && both[axis] != more[axis]) return false;
  }
  classes = std::move(both);
  return true;
}

}  // namespace

std::vector<std::vector<size_t>> tied_outputs(const Fused& fused, const Region& region) {
  Ties ties(fused, region);
  std::vector<std::vector<size_t>> groups;
  std::vector<std::vector<std::set<int>>> classes;
  for (size_t i = 0; i < fused.outputs.size(); ++i) {
    const auto own = ties.needed(fused.outputs[i].inst);
    size_t group = 0;
    while (group < groups.size() && !add(classes[group], own)) ++group;
    if (group == groups.size()) {
      groups.emplace_back();
      classes.push_back(own);
    }
    groups[group].push_back(i);
  }
  return groups;
}

bool has_one_size(const Fused& fused, const Region& region) {
  const auto all = Ties(fused, region).all_needed();
  return std::all_of(all.begin(), all.end(), [](const auto& sizes) { return sizes.size() < 2; });
}

EqualSizes untied_sizes(const Fused& fused, const Region& region) {
  Ties ties(fused, region);
  EqualSizes pairs;
  const auto all = ties.all_needed();
  for (size_t axis = 0; axis < all.size(); ++axis) {
    if (all[axis].size() < 2) continue;
    const std::string first = ties.expression(axis, *all[axis].begin());
    for (auto id = std::next(all[axis].begin()); id != all[axis].end(); ++id) {
      const std::string other = ties.expression(axis, *id);
      if (first.empty() || other.empty()) return {};
      pairs.emplace_back(first, other);
    }
  }
  return pairs;
}

std::vector<std::set<std::string>> equal_sizes(const Fused& fused, const FusedOutput& output,
                                               const Region& region) {
  return Ties(fused, region).texts(output);
}

}  // namespace cutegen::recipes
