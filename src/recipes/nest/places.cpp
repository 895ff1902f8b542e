// SPDX-License-Identifier: Apache-2.0
// Positions of a Builder: values that depend on where an element lies along an axis, and operators
// that read their input at a computed place along one axis.
#include <fmt/format.h>

#include <algorithm>

#include "recipes/nest/builder.h"

namespace cutegen::recipes {
namespace {

constexpr size_t kMostChosen =
    8;  // operands of a join from which a kernel chooses for each element

}  // namespace

// An operand without a tensor, whose elements are 0, 1, 2, ... along an axis of the nest.
int Builder::places(int axis, const std::string& extent) {
  const std::string key = fmt::format("{} {}", kPlaces, axis);
  if (auto it = built_.find(key); it != built_.end()) return it->second;
  fused_.names.emplace(kPlaces, "place");
  const int64_t size = fused_.axes[size_t(axis)].size;
  Operand operand{kPlaces, DType::i64, {size}, {axis}, false, {size}, false, {}, {}};
  operand.counts = true;
  if (!extent.empty()) operand.extents = {extent};
  Inst inst;
  inst.kind = InstKind::leaf;
  inst.name = kPlaces;
  inst.operand = int(fused_.inputs.size());
  inst.integer = true;
  if (fused_.axes[size_t(axis)].reduced) inst.level = Level::element;
  fused_.inputs.push_back(std::move(operand));
  fused_.insts.push_back(std::move(inst));
  return built_[key] = int(fused_.insts.size()) - 1;
}

// A kernel parameter: an expression in which "@" is the size of an axis of the nest.
int Builder::size_along(int axis, const std::string& expression) {
  std::string text = expression;
  if (const size_t at = text.find('@'); at != std::string::npos)
    text.replace(at, 1, fmt::format("@{}", axis));
  const auto known = std::find_if(fused_.sizes.begin(), fused_.sizes.end(),
                                  [&](const SizeParameter& size) { return size.second == text; });
  const size_t place = size_t(known - fused_.sizes.begin());
  if (known == fused_.sizes.end())
    fused_.sizes.emplace_back(fmt::format("size{}", fused_.sizes.size()), text);
  return constant(fused_.sizes[place].first);
}

// The size of an axis of a tensor of the task or of a value in scratch, as a plan expression.
std::optional<std::string> Builder::extent_of(const std::string& name, size_t axis) const {
  if (auto kept = region_.kept.find(name); kept != region_.kept.end()) return kept->second[axis];
  if (graph_.producer(name)) return std::nullopt;
  const auto known = fused_.names.find(name);
  if (known == fused_.names.end()) return std::nullopt;
  return fmt::format("dim({},{})", known->second, axis);
}

// cutegen.counting(start, step)
Result<int> Builder::counting(const Node& node, const View& view) {
  const Value& result = node.outputs.front();
  if (view.reshaped || (!view.starts.empty() && view.starts[0].index >= 0))
    return cut_at(node, "a reshape of positions");
  const Json start = argument(node, 0, ""), step = argument(node, 1, "");
  const bool whole = start.is_number_integer() && step.is_number_integer();
  const int64_t at = view.starts.empty() ? 0 : view.starts[0].at;
  if (at > 0 || (!view.starts.empty() && view.starts[0].step > 1))
    return cut_at(node, "a part of positions");
  std::string extent = std::to_string(result.shape[0]);
  for (const SizeArgument& of : node.sizes)
    if (const auto known = fused_.names.find(of.tensor); known != fused_.names.end())
      extent = SizeArgument{0, known->second, of.dim}.text();
  const int axis = view.axes[0];
  if (axis < 0) return constant(literal(number(start).value_or(0)));
  int place = places(axis, extent);
  if (is_integer(result.dtype)) {
    if (start == 0 && step == 1) return place;
    if (!whole) return unsupported_error(node.op + ": steps that are no integers", node.id);
    return make("number",
                fmt::format("({} + {} * {{0}})", start.get<int64_t>(), step.get<int64_t>()),
                {place}, false, true);
  }
  place = make("number", "float({0})", {place});
  if (start == 0 && step == 1) return place;
  return make("number",
              fmt::format("({} + {} * {{0}})", literal(number(start).value_or(0)),
                          literal(number(step).value_or(1))),
              {place});
}

// cutegen.shift(x, dim, rule, shift, reversed, fill)
Result<int> Builder::shifted(const Node& node, const View& view) {
  const auto from = reference(argument(node, 0, ""));
  const auto dim = argument(node, 1, "").get<size_t>();
  const auto rule = argument(node, 2, "").get<std::string>(),
             shift = argument(node, 3, "").get<std::string>();
  const bool plain =
      view.starts.empty() ||
      (view.starts[dim].index < 0 && view.starts[dim].at == 0 && view.starts[dim].step == 1);
  if (!from || !region_.slices || view.reshaped || !plain || view.axes[dim] < 0)
    return cut_at(node, node.op + ": its result has to be stored first");
  const int axis = view.axes[dim], place = places(axis);
  View inner = view;
  inner.starts.resize(view.axes.size());
  inner.axes[dim] = -1;
  Start& start = inner.starts[dim];
  start.index = fused_.insts[size_t(place)].operand;
  start.shift = shift;
  start.reversed = argument(node, 4, "") == true;
  start.cyclic = rule == "cyclic";
  start.modulo = rule == "modulo";
  start.reflects = rule == "reflect";
  start.nearest = rule == "nearest" || rule == "fill";
  CG_TRY(int x, value(*from, inner));
  if (rule != "fill") return x;
  const auto before = number(argument(node, 6, "")).value_or(0),
             after = number(argument(node, 7, "")).value_or(0);
  const int end = size_along(axis, fmt::format("@-({})", int64_t(after)));
  const std::string fill = literal(number(argument(node, 5, "")).value_or(0));
  const bool boolean = fused_.insts[size_t(x)].boolean, integer = fused_.insts[size_t(x)].integer;
  return make("padded",
              fmt::format("({{1}} >= {} && {{1}} < {{2}} ? {{0}} : {})", int64_t(before),
                          integer ? fmt::format("int64_t({})", fill) : fill),
              {x, place, end}, boolean, integer);
}

// Chooses the operand of a joined tensor for each element by its position. Each operand is read at
// the nearest of its elements.
Result<int> Builder::chosen(const Node& node, const View& view, size_t axis) {
  const Json list = argument(node, 0, "tensors");
  const bool stacks = base_name(node.op) == "stack";
  const bool plain = view.starts.empty() || view.starts[axis].at == 0;
  const int along = view.axes[axis];
  // Without reductions, a stage for each part of the output reads less.
  const bool reduces =
      std::any_of(fused_.axes.begin(), fused_.axes.end(), [](const Axis& a) { return a.reduced; });
  if (!region_.slices || !plain || !reduces || along < 0 || list.size() > kMostChosen)
    return unsupported_error(node.op + ": one element would come from one of several operands",
                             node.id);
  std::vector<int> values, ends;
  std::string before;
  const int place = places(along, stacks ? std::to_string(list.size()) : "");
  for (const Json& item : list) {
    const auto name = reference(item);
    View inner = view;
    inner.starts.resize(view.axes.size());
    if (stacks) {
      inner.axes.erase(inner.axes.begin() + long(axis));
      inner.starts.erase(inner.starts.begin() + long(axis));
      if (view.starts.empty()) inner.starts.clear();
    } else {
      inner.axes[axis] = -1;
      inner.starts[axis] = {};
      inner.starts[axis].index = fused_.insts[size_t(place)].operand;
      inner.starts[axis].nearest = true;
      inner.starts[axis].shift = before.empty() ? "" : fmt::format("0-({})", before);
      const auto extent = extent_of(*name, axis);
      if (!extent) {
        if (cut_.empty()) cut_ = *name;
        return unsupported_error(node.op + ": an operand of unknown size", node.id);
      }
      before += (before.empty() ? "" : "+") + *extent;
    }
    CG_TRY(int value, this->value(*name, inner));
    values.push_back(value);
    ends.push_back(stacks ? -1 : size_along(along, before));
  }
  int result = values.back();
  for (size_t i = values.size() - 1; i-- > 0;) {
    const Inst& kind = fused_.insts[size_t(result)];
    result = stacks ? make("chosen", fmt::format("({{0}} <= {} ? {{1}} : {{2}})", i),
                           {place, values[i], result}, kind.boolean, kind.integer)
                    : make("chosen", "({0} < {1} ? {2} : {3})", {place, ends[i], values[i], result},
                           kind.boolean, kind.integer);
  }
  return result;
}

}  // namespace cutegen::recipes
