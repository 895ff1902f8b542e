// SPDX-License-Identifier: Apache-2.0
#include "recipes/fuse/nest_sizes.h"

#include <fmt/format.h>

#include <algorithm>

#include "recipes/fuse/views.h"
#include "recipes/graph/permutation.h"
#include "recipes/graph/pointwise.h"
#include "recipes/views/slice_part.h"

namespace cutegen::recipes {
namespace {

// The axis of the operand of select() or of a transposition that becomes `axis` of the result.
std::optional<size_t> axis_before(const Node& node, size_t rank, size_t axis) {
  const std::string base = base_name(node.op);
  if (const auto order = permutation(node, base, rank); !order.empty()) return order[axis];
  const Json dim = argument(node, 1, "dim");
  if (base != "select" || !dim.is_number_integer()) return std::nullopt;
  const int64_t given = dim.get<int64_t>();
  const auto dropped = size_t(given < 0 ? given + int64_t(rank) : given);
  return axis < dropped ? axis : axis + 1;
}

}  // namespace

SizeArgument renamed(SizeArgument size, const std::string& tensor) {
  size.tensor = tensor;
  return size;
}

std::optional<std::string> NestSizes::extent_of(const std::string& name, size_t axis) const {
  if (auto kept = nest_.region().kept.find(name); kept != nest_.region().kept.end())
    return kept->second[axis];
  if (const Node* node = nest_.graph().producer(name)) {
    const auto input = node->args.empty() ? std::nullopt : reference(node->args[0]);
    if (node->op == kShift && input) return shifted_extent(*node, axis);
    if (is_view(*node) && input && nest_.shape_of(*input) == nest_.shape_of(name) &&
        permutation(*node, base_name(node->op), nest_.shape_of(name).size()).empty())
      return extent_of(*input, axis);
    if (const auto from =
            input ? axis_before(*node, nest_.shape_of(*input).size(), axis) : std::nullopt)
      return extent_of(*input, *from);
    if (input && is_slice(*node)) return slice_extent(*node, name, *input, axis);
    const auto pointwise = lower_pointwise(*node);
    if (!pointwise || !*pointwise) return std::nullopt;
    for (const std::string& operand : (*pointwise)->operands)
      if (nest_.shape_of(operand) == nest_.shape_of(name))
        if (auto extent = extent_of(operand, axis)) return extent;
    return std::nullopt;
  }
  const auto known = nest_.fused().names.find(name);
  if (known == nest_.fused().names.end()) return std::nullopt;
  return fmt::format("dim({},{})", known->second, axis);
}

std::optional<std::string> NestSizes::slice_extent(const Node& node, const std::string& name,
                                                   const std::string& input, size_t axis) const {
  const Shape &whole = nest_.shape_of(input), &own = nest_.shape_of(name);
  if (whole.size() != own.size()) return std::nullopt;
  const auto extent = extent_of(input, axis);
  if (!extent || own[axis] == whole[axis]) return extent;
  size_t output = 0;
  while (node.outputs[output].name != name) ++output;
  const auto part = part_of(node, output, whole);
  const bool equal = part && !part->by_number && part->step == 1 && own[axis] > 0;
  if (!equal || whole[axis] % own[axis] != 0) return std::nullopt;
  return fmt::format("(({})/{})", *extent, whole[axis] / own[axis]);
}

std::optional<std::string> NestSizes::shifted_extent(const Node& node, size_t axis) const {
  const std::string from = reference(argument(node, 0, "")).value_or("");
  auto extent = extent_of(from, axis);
  if (!extent || argument(node, 1, "") != axis) return extent;
  const int64_t size = nest_.shape_of(from)[axis], wide = node.outputs.front().shape[axis];
  const bool repeats = argument(node, 2, "") == "modulo" && argument(node, 6, "") == 0;
  if (wide == size) return extent;
  if (repeats && size > 0 && wide % size == 0)
    return fmt::format("(({})*{})", *extent, wide / size);
  return fmt::format("(({})+({}))", *extent, wide - size);
}

Result<std::string> NestSizes::with_sizes(const std::string& value, std::string expression) {
  for (size_t axis = 0; axis < nest_.shape_of(value).size(); ++axis) {
    const std::string word = fmt::format("@{}", axis);
    for (size_t at = expression.find(word); at != std::string::npos; at = expression.find(word)) {
      const auto extent = extent_of(value, axis);
      if (!extent) {
        nest_.cut_before(value);
        return unsupported_error("a size of " + value + ", which is not known yet");
      }
      expression.replace(at, word.size(), "(" + *extent + ")");
    }
  }
  return expression;
}

Result<int> NestSizes::size(const std::string& text) {
  const size_t space = text.find(' ');
  size_t end = 0;
  SizeArgument of{.tensor = text.substr(space + 1), .dim = std::stoi(text, &end)};
  if (end < space) of.plus = std::stoll(text.substr(end, space - end));
  if (nest_.graph().producer(of.tensor)) {  // of a value
    const auto extent = extent_of(of.tensor, size_t(of.dim));
    if (!extent) nest_.cut_before(of.tensor);
    if (!extent) return unsupported_error("a size of " + of.tensor + ", which is not known yet");
    return nest_.constant(fmt::format("float({})", size_parameter(*extent)));
  }
  auto known = nest_.fused().names.find(of.tensor);
  if (known == nest_.fused().names.end())
    return unsupported_error("a size of " + of.tensor + ", which is not a tensor of the task");
  of.tensor = known->second;
  const std::string word = fmt::format("size{}_of_{}", nest_.fused().sizes.size(), of.tensor);
  nest_.fused().sizes.emplace_back(word, of.text());
  return nest_.constant(fmt::format("float({})", word));
}

Result<int> NestSizes::size_of(const SizeArgument& size) {
  return this->size(reference(size_ref(size)).value_or("").substr(kSize.size()));
}

int NestSizes::size_along(int axis, const std::string& expression) {
  std::string text = expression;
  if (const size_t at = text.find('@'); at != std::string::npos)
    text.replace(at, 1, fmt::format("@{}", axis));
  return nest_.constant(size_parameter(text));
}

std::string NestSizes::size_parameter(const std::string& expression) {
  const auto known =
      std::find_if(nest_.fused().sizes.begin(), nest_.fused().sizes.end(),
                   [&](const SizeParameter& size) { return size.second == expression; });
  const size_t place = size_t(known - nest_.fused().sizes.begin());
  if (known == nest_.fused().sizes.end())
    nest_.fused().sizes.emplace_back(fmt::format("size{}", nest_.fused().sizes.size()), expression);
  return nest_.fused().sizes[place].first;
}

void NestSizes::show_sizes(const Node& node, const View& view) {
  const Shape& to = node.outputs.front().shape;
  if (view.reshaped || view.axes.size() != to.size()) return;
  const auto show = [&](size_t item, const std::string& size, bool better) {
    const int axis = view.axes[item];
    if (axis < 0 || to[item] != nest_.fused().axes[size_t(axis)].size) return;
    std::string& shown = nest_.fused().axes[size_t(axis)].shown;
    if (better || shown.empty()) shown = size;
  };
  for (const SizeArgument& of : node.sizes)
    if (const auto known = nest_.fused().names.find(of.tensor);
        known != nest_.fused().names.end() && of.item >= 1 && size_t(of.item) <= to.size())
      show(size_t(of.item) - 1, renamed(of, known->second).text(), true);
  // zeros_like(x) has the sizes of x.
  const std::string self = reference(argument(node, 0, "self")).value_or("");
  if (is_like(node)) {
    for (size_t item = 0; item < to.size(); ++item) {
      const auto extent = extent_of(self, item);
      if (extent) show(item, *extent, true);
      if (!extent && to[item] > 1) nest_.set_unsized(self);
    }
    return;
  }
  // A size that no tensor of the task has at all shapes is a number of the module.
  const Shape from = nest_.shape_of(self);
  const bool expands = base_name(node.op) == "expand";
  for (size_t item = 0; item < to.size() && (expands || is_fill(node)); ++item) {
    const size_t added = to.size() - std::min(to.size(), from.size());
    if (!expands || item < added || from[item - added] != to[item])
      show(item, std::to_string(to[item]), false);
  }
}

}  // namespace cutegen::recipes
