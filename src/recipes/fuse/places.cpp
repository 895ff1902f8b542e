// SPDX-License-Identifier: Apache-2.0
// Values of a Builder that depend on where an element lies along an axis, and operators that read
// their input at a computed place along one axis.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "recipes/fuse/extents.h"
#include "recipes/fuse/operators.h"
#include "recipes/graph/reshape.h"

namespace cutegen::recipes {

// cutegen.counting(start, step)
Result<int> build_counting(Builder& builder, const Node& node, const View& view) {
  NestWriter& nest = builder.nest();
  const Value& result = node.outputs.front();
  if (view.reshaped || (!view.starts.empty() && view.starts[0].index >= 0))
    return nest.cut_at(node, "a reshape of positions");
  const Json start = argument(node, 0, ""), step = argument(node, 1, "");
  const bool whole = start.is_number_integer() && step.is_number_integer();
  const int64_t at = view.starts.empty() ? 0 : view.starts[0].at;
  if (at > 0 || (!view.starts.empty() && view.starts[0].step > 1))
    return nest.cut_at(node, "a part of positions");
  std::string extent = std::to_string(result.shape[0]);
  for (const SizeArgument& of : node.sizes)
    if (const auto known = nest.fused().names.find(of.tensor); known != nest.fused().names.end())
      extent = renamed(of, known->second).text();
  const Json like = argument(node, 2, "");
  if (like.is_string()) {  // the length of an axis of this value
    const Json length = argument(node, 4, "");
    CG_TRY(extent,
           builder.sizes().with_sizes(
               like, length.is_string() ? length.get<std::string>()
                                        : fmt::format("@{}", argument(node, 3, "").get<size_t>())));
  }
  const int axis = view.axes[0];
  if (axis < 0) return nest.constant(literal(number(start).value_or(0)));
  int place = nest.places(axis, extent);
  if (like.is_null() && node.sizes.empty())
    nest.fused().inputs[size_t(nest.fused().insts[size_t(place)].operand)].fixed_count = true;
  if (is_integer(result.dtype)) {
    if (start == 0 && step == 1) return place;
    if (!whole) return unsupported_error(node.op + ": steps that are no integers", node.id);
    return nest.make("number",
                     fmt::format("({} + {} * {{0}})", start.get<int64_t>(), step.get<int64_t>()),
                     {place}, false, true);
  }
  place = nest.make("number", "float({0})", {place});
  if (start == 0 && step == 1) return place;
  return nest.make("number",
                   fmt::format("({} + {} * {{0}})", literal(number(start).value_or(0)),
                               literal(number(step).value_or(1))),
                   {place});
}

namespace {

// Sets the sizes of the nest's axes into which a view splits an axis of the size `whole`. If
// several of these sizes are not known, all but the first unknown one are the official sizes.
void set_split_sizes(Fused& fused, const View& view, const AxisGroup& group, int64_t size,
                     const std::string& whole) {
  Axis* missing = nullptr;
  std::string known;
  bool guessed = false;
  for (size_t to : group.to) {
    if (view.axes[to] < 0) continue;
    Axis& axis = fused.axes[size_t(view.axes[to])];
    if (axis.extent.empty()) axis.extent = axis.shown;
    if (axis.extent.empty() && !missing) {
      missing = &axis;
      continue;
    }
    guessed |= axis.extent.empty();
    if (axis.extent.empty()) axis.extent = std::to_string(axis.size);
    known += fmt::format("{}({})", known.empty() ? "" : "*", axis.extent);
  }
  if (guessed) demand(fused, fmt::format("{} == {}", whole, size));
  if (missing) missing->extent = known.empty() ? whole : fmt::format("({})/({})", whole, known);
}

// The view of a tensor that a reshape sees with split axes, as a view of the tensor's own axes: the
// place along a split axis is a sum of places along its parts. Returns nothing for other reshapes.
Result<std::optional<View>> own_axes(Builder& builder, const std::string& name, const View& view) {
  NestWriter& nest = builder.nest();
  std::optional<View> none;
  const Shape shape = nest.shape_of(name);
  const auto groups = group_axes(shape, *view.reshaped);
  if (!groups || !view.starts.empty()) return none;
  for (const AxisGroup& group : *groups)
    for (size_t to : group.to)
      if (group.from.size() != 1 || (view.axes[to] < 0 && (*view.reshaped)[to] > 1) ||
          (view.axes[to] >= 0 && nest.fused().axes[size_t(view.axes[to])].reduced &&
           group.to.size() > 1))
        return none;
  View own{.axes = std::vector<int>(shape.size(), -1),
           .reshaped = {},
           .starts = std::vector<Start>(shape.size())};
  for (const AxisGroup& group : *groups) {
    const size_t from = group.from[0];
    std::vector<std::pair<int, int64_t>> terms;
    int64_t step = 1;
    for (size_t k = group.to.size(); k-- > 0; step *= (*view.reshaped)[group.to[k]])
      if (view.axes[group.to[k]] >= 0) terms.emplace_back(view.axes[group.to[k]], step);
    if (terms.size() == 1 && terms[0].second == 1) own.axes[from] = terms[0].first;
    if (terms.empty() || own.axes[from] >= 0) continue;
    CG_TRY(const std::string whole, builder.sizes().with_sizes(name, fmt::format("@{}", from)));
    set_split_sizes(nest.fused(), view, group, shape[from], whole);
    step = 1;
    for (size_t k = group.to.size(); k-- > 1; step *= (*view.reshaped)[group.to[k]]) {
      const int axis = view.axes[group.to[k]];
      const std::string extent = axis < 0 ? "1" : nest.fused().axes[size_t(axis)].extent;
      const std::string size = std::to_string((*view.reshaped)[group.to[k]]);
      if (extent != size) demand(nest.fused(), fmt::format("{} == {}", extent, size));
    }
    own.starts[from].index = nest.fused().insts[size_t(nest.line(terms))].operand;
  }
  return std::optional<View>(std::move(own));
}

// Whether a shift may apply to the places that the view reads along an axis.
bool may_shift(NestWriter& nest, const View& view, size_t dim) {
  if (view.starts.empty()) return view.axes[dim] >= 0;
  const Start& start = view.starts[dim];
  if (start.at != 0 || start.step != 1) return false;
  if (start.index < 0) return view.axes[dim] >= 0;
  // The view splits the axis, and no other shift has changed the places.
  const Operand& places = nest.fused().inputs[size_t(start.index)];
  return places.counts && start.shift.empty() && !start.reversed &&
         std::string(start.rule()) == "false";
}

// Whether the operand of a filling shift keeps its axis (Start::moves). Where the fill replaces an
// element, the kernel then reads the element at the result's own position. Only loops of pointwise
// work can do this.
bool moves_inside(NestWriter& nest, const Node& node, size_t dim) {
  const Value& result = node.outputs.front();
  const std::string from = reference(argument(node, 0, "")).value_or("");
  const auto& axes = nest.fused().axes;
  return nest.shape_of(from) == result.shape && dim + 1 < result.shape.size() &&
         is_floating(result.dtype) && argument(node, 4, "") != true &&
         std::none_of(axes.begin(), axes.end(), [](const Axis& axis) { return axis.reduced; });
}

// Requires that 32 bits count the positions along the axis of a shift.
void demand_narrow(Builder& builder, const Node& node, size_t dim) {
  if (const auto extent = builder.sizes().shifted_extent(node, dim))
    demand(builder.fused(), *extent + " <= 2000000000");
}

}  // namespace

// cutegen.shift(x, dim, rule, shift, reversed, fill)
Result<int> build_shift(Builder& builder, const Node& node, const View& seen) {
  NestWriter& nest = builder.nest();
  const auto from = reference(argument(node, 0, ""));
  const auto dim = argument(node, 1, "").get<size_t>();
  const auto rule = argument(node, 2, "").get<std::string>(),
             shift = argument(node, 3, "").get<std::string>();
  View view = seen;
  const bool moves = from && rule != "fill" && nest.shape_of(*from) == node.outputs[0].shape;
  if (view.reshaped && moves && nest.region().slices) {
    CG_TRY(auto own, own_axes(builder, *from, view));
    if (own) view = *own;
  }
  if (!from || !nest.region().slices || view.reshaped || !may_shift(nest, view, dim))
    return nest.cut_at(node, node.op + ": its result has to be stored first");
  View inner = view;
  inner.starts.resize(view.axes.size());
  Start& start = inner.starts[dim];
  const bool split = start.index >= 0;
  if (split && !moves) return nest.cut_at(node, node.op + ": its result has to be stored first");
  const int axis = view.axes[dim];
  if (!split) {
    const int place = nest.places(axis);
    if (const auto extent = builder.sizes().shifted_extent(node, dim))
      nest.fused().axes[size_t(axis)].shown = *extent;
    else if (nest.graph().producer(*from))
      nest.set_unsized(*from);
    start.index = nest.fused().insts[size_t(place)].operand;
  }
  start.moves = rule == "fill" && moves_inside(nest, node, dim);
  if (!start.moves) inner.axes[dim] = -1;
  start.shift = shift;
  if (split) {  // the size of the whole axis, which is the size of no axis of the nest
    CG_TRY(start.shift,
           builder.sizes().with_sizes(*from, replace_all(shift, "@", fmt::format("@{}", dim))));
  }
  start.reversed = argument(node, 4, "") == true;
  start.cyclic = rule == "cyclic";
  start.modulo = rule == "modulo";
  start.reflects = rule == "reflect";
  start.nearest = rule == "nearest" || (rule == "fill" && !start.moves);
  const bool narrow = start.moves;
  CG_TRY(int x, builder.value(*from, inner));
  if (rule != "fill") return x;
  const auto before = number(argument(node, 6, "")).value_or(0),
             after = number(argument(node, 7, "")).value_or(0);
  const int end = builder.sizes().size_along(axis, fmt::format("@-({})", int64_t(after)));
  const std::string fill = literal(number(argument(node, 5, "")).value_or(0));
  if (narrow) {  // the plan requires that 32 bits count the positions
    demand_narrow(builder, node, dim);
    const std::string begins =
        before > 0 ? fmt::format("int({{1}}) >= {} && ", int64_t(before)) : "";
    return nest.make("padded",
                     fmt::format("({}int({{1}}) < int({{2}}) ? {{0}} : {})", begins, fill),
                     {x, nest.places(axis), end});
  }
  const bool boolean = nest.fused().insts[size_t(x)].boolean,
             integer = nest.fused().insts[size_t(x)].integer;
  return nest.make("padded",
                   fmt::format("({{1}} >= {} && {{1}} < {{2}} ? {{0}} : {})", int64_t(before),
                               integer ? fmt::format("int64_t({})", fill) : fill),
                   {x, nest.places(axis), end}, boolean, integer);
}

// cutegen.filled(number, value, axis, ...)
Result<int> build_filled(Builder& builder, const Node& node, const View& view) {
  NestWriter& nest = builder.nest();
  for (size_t i = 0; 2 * i + 2 < node.args.size() && !view.reshaped; ++i) {
    CG_TRY(const std::string extent,
           builder.sizes().with_sizes(node.args[2 * i + 1].get<std::string>(),
                                      fmt::format("@{}", node.args[2 * i + 2].get<size_t>())));
    if (view.axes[i] >= 0) nest.fused().axes[size_t(view.axes[i])].shown = extent;
  }
  return nest.constant(literal(number(node.args[0]).value_or(0)));
}

// cutegen.values(list): chooses by the position, because there are few values.
Result<int> build_values(Builder& builder, const Node& node, const View& view) {
  NestWriter& nest = builder.nest();
  const Value& result = node.outputs.front();
  if (view.reshaped || !view.starts.empty())
    return nest.cut_at(node, node.op + ": a part or a reshape of constants");
  std::vector<std::pair<int, int64_t>> terms;
  int64_t step = 1;
  for (size_t i = result.shape.size(); i-- > 0; step *= result.shape[i])
    if (view.axes[i] >= 0) terms.emplace_back(view.axes[i], step);
  const bool integer = is_integer(result.dtype);
  const auto text = [&](const Json& value) {
    return integer ? std::to_string(value.get<int64_t>()) : literal(value.get<double>());
  };
  const Json list = argument(node, 0, "");
  const auto known = [](const Json& value) { return value.is_number() || value.is_boolean(); };
  if (!list.is_array() || list.empty() || int64_t(list.size()) != step ||
      !std::all_of(list.begin(), list.end(), known))
    return unsupported_error(node.op + ": not one number for each element", node.id);
  std::string code = text(list.back());
  for (size_t i = list.size() - 1; i-- > 0;)
    code = fmt::format("{{0}} == {} ? {} : {}", i, text(list[i]), code);
  if (terms.empty()) return nest.constant(text(list[0]));
  const int place = nest.line(terms);
  nest.fused().inputs[size_t(nest.fused().insts[size_t(place)].operand)].fixed_count = true;
  for (const auto& [axis, of] : terms) {
    std::string& shown = nest.fused().axes[size_t(axis)].shown;
    if (shown.empty()) shown = std::to_string(nest.fused().axes[size_t(axis)].size);
  }
  return nest.make("constant", "(" + code + ")", {place}, false, integer);
}

// cutegen.affine(x, axes, sizes, fill)
Result<int> build_affine(Builder& builder, const Node& node, const View& view) {
  NestWriter& nest = builder.nest();
  const std::string from = reference(argument(node, 0, "")).value_or("");
  const Json axes = argument(node, 1, ""), sizes = argument(node, 2, ""),
             fill = argument(node, 3, "");
  const bool plain = std::all_of(view.starts.begin(), view.starts.end(), [](const Start& start) {
    return start.index < 0 && start.at == 0 && start.step == 1;
  });
  if (!nest.region().slices || view.reshaped || !plain)
    return nest.cut_at(node, node.op + ": its result has to be stored first");
  for (size_t i = 0; i < sizes.size(); ++i) {
    const auto size = sizes[i].get<std::string>();
    if (size.empty() || view.axes[i] < 0) continue;
    Axis& axis = nest.fused().axes[size_t(view.axes[i])];
    CG_TRY(const std::string extent, builder.sizes().with_sizes(from, size));
    if (axis.extent.empty()) axis.extent = extent;
  }
  View inner{.axes = std::vector<int>(axes.size(), -1),
             .reshaped = {},
             .starts = std::vector<Start>(axes.size())};
  std::vector<std::pair<int, Json>> lines;  // instructions that give places, what to add to them
  std::vector<size_t> along;
  for (size_t i = 0; i < axes.size(); ++i) {
    const Json &terms = axes[i][0], &shift = axes[i][1];
    // If several axes of the operand follow one axis, a tensor with strides cannot describe it.
    const bool shared = std::count_if(axes.begin(), axes.end(), [&](const Json& other) {
                          return !terms.empty() && !other[0].empty() && other[0][0] == terms[0];
                        }) > 1;
    if (terms.size() == 1 && terms[0][1] == 1 && shift == 0 && !shared) {
      inner.axes[i] = view.axes[terms[0][0].get<size_t>()];
      continue;
    }
    Start& start = inner.starts[i];
    std::string text = shift.is_string() ? shift.get<std::string>() : shift.dump();
    CG_TRY(text, builder.sizes().with_sizes(from, std::move(text)));
    if (terms.empty()) {
      start.at = axes[i][2].get<int64_t>();
      start.from = text;
      continue;
    }
    std::vector<std::pair<int, int64_t>> list;
    for (const Json& term : terms)
      list.emplace_back(view.axes[term[0].get<size_t>()], term[1].get<int64_t>());
    lines.emplace_back(nest.line(list), shift);
    along.push_back(i);
    start.index = nest.fused().insts[size_t(lines.back().first)].operand;
    start.nearest = !fill.is_null();
    if (shift != 0) start.shift = text;
  }
  CG_TRY(int x, builder.value(from, inner));
  if (fill.is_null()) return x;
  std::string inside;
  std::vector<int> inputs{x};
  for (size_t k = 0; k < lines.size(); ++k) {
    CG_TRY(const std::string size, builder.sizes().with_sizes(from, fmt::format("@{}", along[k])));
    const std::string place = fmt::format("{{{}}} + {}", inputs.size(), lines[k].second.dump());
    inside += fmt::format("{0}{1} >= 0 && {1} < {2}", inside.empty() ? "" : " && ", place,
                          fmt::format("{{{}}}", inputs.size() + 1));
    inputs.push_back(lines[k].first);
    inputs.push_back(nest.constant(builder.sizes().size_parameter(size)));
  }
  const Inst& kind = nest.fused().insts[size_t(x)];
  const std::string other = literal(number(fill).value_or(0));
  return nest.make("inside",
                   fmt::format("({} ? {{0}} : {})", inside,
                               kind.integer ? fmt::format("int64_t({})", other) : other),
                   std::move(inputs), kind.boolean, kind.integer);
}

}  // namespace cutegen::recipes
