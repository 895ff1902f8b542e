// SPDX-License-Identifier: Apache-2.0
#include "recipes/fuse/extents.h"

#include <fmt/format.h>

#include <algorithm>

#include "recipes/graph/reshape.h"

namespace cutegen::recipes {
namespace {

using NoGroups = std::vector<AxisGroup>;

std::string times(const std::string& a, const std::string& b) {
  return a.empty() ? b : a + "*" + b;
}

// Takes the extents of the nest's axes from the tensor axes along them.
void from_axes(Fused& fused, const Operand& operand) {
  for (size_t i = 0; i < operand.axes.size(); ++i) {
    if (operand.axes[i] < 0) continue;
    Axis& axis = fused.axes[size_t(operand.axes[i])];
    if (axis.extent.empty() && axis.size == operand.shape[i])
      axis.extent = size_of_axis(fused, operand, i);
  }
}

// Sets the length of a slice if no tensor has this length along an axis: an equal part of the
// sliced axis, the length that the slice's bounds give, the rest of the axis, or a number.
void from_slice(Fused& fused, const Operand& operand) {
  for (size_t i = 0; i < operand.axes.size(); ++i) {
    if (operand.axes[i] < 0) continue;
    Axis& axis = fused.axes[size_t(operand.axes[i])];
    const Start& start = operand.starts[i];
    if (!axis.extent.empty() || axis.size < 1 || start.open_end) continue;
    const int64_t size = operand.shape[i];
    const std::string whole = size_of_axis(fused, operand, i);
    const bool follows = !start.from.empty();  // the start follows the sizes
    if (follows && !axis.shown.empty()) {
      axis.extent = axis.shown;
    } else if (follows) {
      continue;
    } else if (size % axis.size == 0) {
      start.by_number ? demand_size(fused, operand, i) : demand_parts(fused, operand, i);
      axis.extent = fmt::format("({})/{}", whole, size / axis.size);
    } else if (!axis.shown.empty()) {
      axis.extent = axis.shown;
    } else if (start.at + axis.size == size) {
      if (!start.to_end) demand_size(fused, operand, i);
      axis.extent = fmt::format("(({})-{})", whole, start.at);
    } else {  // the plan requires a long enough axis: PyTorch shortens the slice of a shorter one
      axis.extent = std::to_string(axis.size);
      const int64_t end = start.at + (axis.size - 1) * start.step + 1;
      if (start.index < 0) demand(fused, fmt::format("{} >= {}", whole, end));
    }
  }
}

// For each axis of the group, multiplies the extents of the merged axes that make up the axis.
// Returns an empty list if the merged axes do not line up with the axes of the group.
std::vector<std::string> extents_of_parts(const Operand& operand, const AxisGroup& group,
                                          const std::vector<Axis>& parts) {
  std::vector<std::string> extents;
  size_t next = 0;
  for (size_t to : group.to) {
    std::string extent = next < parts.size() ? parts[next].extent : "1";
    int64_t size = next < parts.size() ? parts[next++].size : 1;
    for (; size < operand.shape[to] && next < parts.size(); ++next) {
      size *= parts[next].size;
      extent = times(extent, parts[next].extent);
    }
    if (size != operand.shape[to]) return {};
    extents.push_back(extent);
  }
  return next == parts.size() ? extents : std::vector<std::string>{};
}

// If an axis was merged from the sizes that the reshape splits it into, takes the extents of the
// merged axes.
void from_parts(Fused& fused, const Operand& operand, const AxisGroup& group) {
  const auto parts =
      group.from.size() == 1 ? operand.parts.find(group.from[0]) : operand.parts.end();
  if (parts == operand.parts.end()) return;
  const std::vector<std::string> extents = extents_of_parts(operand, group, parts->second);
  for (size_t i = 0; i < extents.size(); ++i) {
    const int id = operand.axes[group.to[i]];
    if (id < 0) continue;
    Axis& axis = fused.axes[size_t(id)];
    if (axis.extent.empty()) axis.extent = extents[i];
  }
}

// In each group of axes that a reshape converts, derives the one extent that is not known yet.
void from_reshape(Fused& fused, const Operand& operand) {
  auto groups = group_axes(operand.original, operand.shape);
  if (!groups) return;
  for (const AxisGroup& group : *groups) {
    from_parts(fused, operand, group);
    std::string known;
    std::vector<Axis*> missing;
    for (size_t to : group.to) {
      if (operand.axes[to] < 0) {  // a slice: one of several equal parts
        if (operand.shape[to] != 1) known = times(known, std::to_string(operand.shape[to]));
        continue;
      }
      Axis& axis = fused.axes[size_t(operand.axes[to])];
      if (axis.extent.empty() && axis.size == 1 && group.to.size() > 1) axis.extent = "1";
      if (axis.extent.empty())
        missing.push_back(&axis);
      else if (axis.extent != "1")
        known = times(known, axis.extent);
    }
    std::string total = total_of(fused, operand, group);
    if (missing.size() != 1 || total.empty()) continue;
    missing[0]->extent = known.empty() ? total : fmt::format("({})/max(1,{})", total, known);
  }
}

// In a group of axes, no tensor or reshape may determine the sizes (the windows of an image, the
// heads of attention). All axes but the first then keep their official sizes. Because these sizes
// may depend on the task's sizes, the plan requires the official size of the group.
void from_numbers(Fused& fused, const Operand& operand) {
  for (const AxisGroup& group : group_axes(operand.original, operand.shape).value_or(NoGroups{})) {
    size_t unknown = 0;
    int64_t size = 1;
    for (size_t to : group.to) {
      size *= operand.shape[to];
      if (operand.axes[to] < 0) continue;
      Axis& axis = fused.axes[size_t(operand.axes[to])];
      if (axis.extent.empty() && ++unknown > 1) axis.extent = std::to_string(axis.size);
    }
    const std::string total = total_of(fused, operand, group);
    if (unknown > 1 && !total.empty()) demand(fused, fmt::format("{} == {}", total, size));
  }
  from_reshape(fused, operand);
}

// Returns where the operand has an axis of the nest; nothing if it does not vary along it.
std::optional<size_t> place_of(const Operand& operand, int axis) {
  const auto it = std::find(operand.axes.begin(), operand.axes.end(), axis);
  if (it == operand.axes.end()) return std::nullopt;
  return size_t(it - operand.axes.begin());
}

// Whether the operand has none of the axes from `first` to `last`, or has them side by side in one
// group of axes that a reshape converts.
bool sees_as_one(const Operand& operand, int first, int last) {
  const auto place = place_of(operand, first);
  for (int axis = first; axis <= last; ++axis) {
    const auto other = place_of(operand, axis);
    if (other.has_value() != place.has_value()) return false;
    if (place && *other != *place + size_t(axis - first)) return false;
  }
  if (!place) return true;
  if (!operand.reshaped) return false;
  const auto last_place = *place + size_t(last - first);
  const auto groups = group_axes(operand.original, operand.shape).value_or(NoGroups{});
  return std::any_of(groups.begin(), groups.end(), [&](const AxisGroup& group) {
    return group.to.front() <= *place && last_place <= group.to.back();
  });
}

// Merges the axes from `first` to `last` into the first one; the others get the size 1.
void merge(Fused& fused, const std::vector<Operand*>& operands, int first, int last) {
  int64_t size = 1;
  for (int axis = first; axis <= last; ++axis) {
    Axis& merged = fused.axes[size_t(axis)];
    size *= merged.size;
    merged.size = 1;
    merged.extent = axis == first ? "" : "1";
  }
  fused.axes[size_t(first)].size = size;
  for (Operand* operand : operands)
    if (const auto place = place_of(*operand, first))
      for (int axis = first; axis <= last; ++axis)
        operand->shape[*place + size_t(axis - first)] = axis == first ? size : 1;
}

// Merges neighbouring reduced axes without extents if all operands see them as one axis: then only
// the product of their sizes matters, and an operand gives this product.
void merge_hidden(Fused& fused) {
  std::vector<Operand*> operands;
  operands.reserve(fused.inputs.size() + fused.outputs.size());
  for (Operand& operand : fused.inputs) operands.push_back(&operand);
  for (FusedOutput& output : fused.outputs) operands.push_back(&output.operand);
  auto hidden = [&](size_t i) { return fused.axes[i].reduced && fused.axes[i].extent.empty(); };
  for (size_t i = 0; i < fused.axes.size(); ++i) {
    size_t end = i;
    while (end < fused.axes.size() && hidden(end)) ++end;
    if (end - i < 2) continue;
    const int first = int(i), last = int(end) - 1;
    if (std::all_of(operands.begin(), operands.end(),
                    [&](const Operand* operand) { return sees_as_one(*operand, first, last); }))
      merge(fused, operands, first, last);
    i = end - 1;
  }
}

// Finds an input that the nest sees through the same reshape as `output`, with the same sizes.
const Operand* twin_of(const Fused& fused, const Operand& output) {
  for (const Operand& input : fused.inputs)
    if (input.reshaped && input.original == output.original && input.shape == output.shape &&
        input.axes == output.axes && fused.names.count(input.tensor))
      return &input;
  return nullptr;
}

// Returns the condition that a slice is one of several equal parts of the axes that a reshape
// converts; empty if there is no slice.
std::string parts_of_group(const Fused& fused, const Operand& operand, const AxisGroup& group) {
  std::string parts, rest;
  for (size_t to : group.to) {
    if (operand.axes[to] >= 0)
      rest += "*(" + fused.axes[size_t(operand.axes[to])].extent + ")";
    else if (operand.shape[to] != 1)
      parts = times(parts, std::to_string(operand.shape[to]));
  }
  return parts.empty() ? ""
                       : fmt::format("{} == {}{}", total_of(fused, operand, group), parts, rest);
}

// Positions whose number the module fixes may run along an axis whose size depends on the task's
// tensors. The plan then requires that the axis has the fixed size.
void demand_fixed_counts(Fused& fused) {
  for (const Operand& operand : fused.inputs) {
    for (int i : operand.axes) {
      if (!operand.fixed_count || i < 0) continue;
      const Axis& axis = fused.axes[size_t(i)];
      if (axis.extent.find("dim(") != std::string::npos)
        demand(fused, fmt::format("{} == {}", axis.extent, axis.size));
    }
  }
}

}  // namespace

std::string size_of_axis(const Fused& fused, const Operand& operand, size_t axis) {
  if (operand.kept) return operand.extents[axis];
  return fmt::format("dim({},{})", fused.names.at(operand.tensor), axis);
}

std::string total_of(const Fused& fused, const Operand& operand, const AxisGroup& group) {
  std::string total;
  for (size_t from : group.from)
    if (group.from.size() == 1 || operand.original[from] != 1)
      total = times(total, size_of_axis(fused, operand, from));
  return total;
}

void demand(Fused& fused, const std::string& text) {
  if (std::find(fused.demands.begin(), fused.demands.end(), text) == fused.demands.end())
    fused.demands.push_back(text);
}

Result<void> find_extents(Fused& fused) {
  std::vector<const Operand*> operands;
  for (const Operand& operand : fused.inputs)
    if (fused.names.count(operand.tensor) && !operand.counts) operands.push_back(&operand);
  for (const FusedOutput& output : fused.outputs)
    if (!output.operand.kept) operands.push_back(&output.operand);
  // The task's tensors first: their sizes are the shortest expressions.
  std::stable_partition(operands.begin(), operands.end(),
                        [](const Operand* operand) { return !operand->kept; });
  for (const Operand* operand : operands)
    if (!operand->reshaped) from_axes(fused, *operand);
  for (const Operand* operand : operands)
    if (operand->reshaped) from_reshape(fused, *operand);
  merge_hidden(fused);
  for (const Operand* operand : operands)
    if (operand->reshaped) from_reshape(fused, *operand);
  for (const Operand& operand : fused.inputs)
    if (operand.sliced() && !operand.reshaped && fused.names.count(operand.tensor))
      from_slice(fused, operand);
  for (const FusedOutput& output : fused.outputs)
    if (output.operand.sliced())  // a part of a joined tensor: its length may be a constant
      for (Axis& axis : fused.axes)
        if (axis.extent.empty())
          axis.extent = axis.shown.empty() ? std::to_string(axis.size) : axis.shown;
  // An axis of size 1 that no tensor has was added by the graph (unsqueeze), so it stays 1.
  for (size_t i = 0; i < fused.axes.size(); ++i)
    if (fused.axes[i].size == 1 && fused.axes[i].extent.empty() &&
        std::none_of(operands.begin(), operands.end(), [&](const Operand* operand) {
          return std::find(operand->axes.begin(), operand->axes.end(), int(i)) !=
                 operand->axes.end();
        }))
      fused.axes[i].extent = "1";
  for (const Operand& operand : fused.inputs)
    if (operand.counts && !operand.extents.empty())
      if (Axis& axis = fused.axes[size_t(operand.axes[0])]; axis.extent.empty())
        axis.extent = operand.extents[0];
  for (Axis& axis : fused.axes)
    if (axis.extent.empty()) axis.extent = axis.shown;
  for (const Operand* operand : operands)
    if (operand->reshaped) from_reshape(fused, *operand);
  for (const Operand* operand : operands)
    if (operand->reshaped) from_numbers(fused, *operand);
  for (size_t i = 0; i < fused.axes.size(); ++i)
    if (fused.axes[i].extent.empty())
      return unsupported_error(fmt::format("the size of axis {} is not a tensor's", i));
  demand_fixed_counts(fused);
  return {};
}

std::vector<std::string> fixed_sizes(const Fused& fused) {
  std::vector<std::string> list = fused.demands;
  const auto add = [&](const std::string& text) {
    if (!text.empty() && std::find(list.begin(), list.end(), text) == list.end())
      list.push_back(text);
  };
  for (const Operand& operand : fused.inputs) {
    if (!operand.reshaped) continue;
    for (const AxisGroup& group :
         group_axes(operand.original, operand.shape).value_or(NoGroups{})) {
      add(parts_of_group(fused, operand, group));
      for (size_t to : group.to) {
        if (operand.axes[to] < 0 || group.to.size() < 2) continue;
        const Axis& axis = fused.axes[size_t(operand.axes[to])];
        bool fixed = axis.extent.find("dim(") == std::string::npos && axis.size > 1;
        if (fixed)
          add(fmt::format("({}) % max(1,{}) == 0", total_of(fused, operand, group), axis.extent));
      }
    }
  }
  return list;
}

void demand_size(Fused& fused, const Operand& operand, size_t axis) {
  demand(fused, fmt::format("{} == {}", size_of_axis(fused, operand, axis), operand.shape[axis]));
}

void demand_equal_sizes(Fused& fused) {
  for (const Operand& operand : fused.inputs) {
    if (operand.reshaped || operand.sliced() || operand.counts ||
        !fused.names.count(operand.tensor))
      continue;
    for (size_t i = 0; i < operand.axes.size(); ++i) {
      if (operand.axes[i] < 0) continue;
      const Axis& axis = fused.axes[size_t(operand.axes[i])];
      const std::string size = size_of_axis(fused, operand, i);
      if (operand.shape[i] == axis.size && size != axis.extent)
        demand(fused, fmt::format("{} == {}", size, axis.extent));
    }
  }
}

void demand_elements(Fused& fused, const Operand& operand, size_t axis) {
  demand(fused, size_of_axis(fused, operand, axis) + " >= 1");
}

void demand_parts(Fused& fused, const Operand& operand, size_t axis) {
  const int along = operand.axes[axis];
  const int64_t length = along < 0 ? 1 : fused.axes[size_t(along)].size;
  demand(fused, fmt::format("({}) % {} == 0", size_of_axis(fused, operand, axis),
                            operand.shape[axis] / std::max<int64_t>(1, length)));
}

Result<std::vector<std::string>> extents_of(const Fused& fused, const FusedOutput& output) {
  const Operand& operand = output.operand;
  std::vector<std::string> list(operand.original.size(), "1");
  auto extent = [&](size_t i) {
    int axis = operand.axes[i];
    return axis < 0 ? std::string("1") : fused.axes[size_t(axis)].extent;
  };
  if (!operand.reshaped) {
    for (size_t i = 0; i < list.size(); ++i) list[i] = extent(i);
    return list;
  }
  if (const Operand* twin = twin_of(fused, operand)) {
    for (size_t i = 0; i < list.size(); ++i) list[i] = size_of_axis(fused, *twin, i);
    return list;
  }
  auto groups = group_axes(operand.original, operand.shape);
  CG_ASSERT(groups);
  for (const AxisGroup& group : *groups) {
    if (group.from.size() != 1)
      return unsupported_error("the sizes of " + operand.tensor +
                               " cannot be derived: a reshape hides them");
    std::string total;
    for (size_t to : group.to) total = times(total, extent(to));
    list[group.from[0]] = total.empty() ? "1" : total;
  }
  return list;
}

}  // namespace cutegen::recipes
