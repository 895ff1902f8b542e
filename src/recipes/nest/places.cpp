// SPDX-License-Identifier: Apache-2.0
// Positions of a Builder: values that depend on where an element lies along an axis, and operators
// that read their input at a computed place along one axis.
#include <fmt/format.h>

#include <algorithm>

#include "recipes/graph/permutation.h"
#include "recipes/nest/builder.h"

namespace cutegen::recipes {
namespace {

constexpr size_t kMostChosen =
    8;  // operands of a join from which a kernel chooses for each element

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

SizeArgument renamed(SizeArgument size, const std::string& tensor) {
  size.tensor = tensor;
  return size;
}

}  // namespace

// An operand without a tensor, whose elements are 0, 1, 2, ... along an axis of the nest.
int Builder::places(int axis, const std::string& extent) {
  const std::string key = fmt::format("{} {}", kPlaces, axis);
  if (auto it = built_.find(key); it != built_.end()) return it->second;
  fused_.names.emplace(kPlaces, "place");
  const int64_t size = fused_.axes[size_t(axis)].size;
  Operand operand{.tensor = kPlaces,
                  .dtype = DType::i64,
                  .shape = {size},
                  .axes = {axis},
                  .original = {size},
                  .counts = true};
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
  return constant(size_parameter(text));
}

// The name of the kernel parameter that gets the value of a plan expression.
std::string Builder::size_parameter(const std::string& expression) {
  const auto known =
      std::find_if(fused_.sizes.begin(), fused_.sizes.end(),
                   [&](const SizeParameter& size) { return size.second == expression; });
  const size_t place = size_t(known - fused_.sizes.begin());
  if (known == fused_.sizes.end())
    fused_.sizes.emplace_back(fmt::format("size{}", fused_.sizes.size()), expression);
  return fused_.sizes[place].first;
}

void Builder::show_sizes(const Node& node, const View& view) {
  const Shape& to = node.outputs.front().shape;
  if (view.reshaped || view.axes.size() != to.size()) return;
  const auto show = [&](size_t item, const std::string& size, bool better) {
    const int axis = view.axes[item];
    if (axis < 0 || to[item] != fused_.axes[size_t(axis)].size) return;
    std::string& shown = fused_.axes[size_t(axis)].shown;
    if (better || shown.empty()) shown = size;
  };
  for (const SizeArgument& of : node.sizes)
    if (const auto known = fused_.names.find(of.tensor);
        known != fused_.names.end() && of.item >= 1 && size_t(of.item) <= to.size())
      show(size_t(of.item) - 1, renamed(of, known->second).text(), true);
  // zeros_like(x) has the sizes of x.
  const std::string self = reference(argument(node, 0, "self")).value_or("");
  if (is_like(node)) {
    for (size_t item = 0; item < to.size(); ++item) {
      const auto extent = extent_of(self, item);
      if (extent) show(item, *extent, true);
      if (!extent && to[item] > 1) unsized_ = self;
    }
    return;
  }
  // A size that no tensor of the task has at all shapes is a number of the module.
  const Shape from = shape_of(self);
  const bool expands = base_name(node.op) == "expand";
  for (size_t item = 0; item < to.size() && (expands || is_fill(node)); ++item) {
    const size_t added = to.size() - std::min(to.size(), from.size());
    if (!expands || item < added || from[item - added] != to[item])
      show(item, std::to_string(to[item]), false);
  }
}

// The size of an axis of a tensor of the task or of a value in scratch, as a plan expression.
std::optional<std::string> Builder::extent_of(const std::string& name, size_t axis) const {
  if (auto kept = region_.kept.find(name); kept != region_.kept.end()) return kept->second[axis];
  if (const Node* node = graph_.producer(name)) {
    const auto input = node->args.empty() ? std::nullopt : reference(node->args[0]);
    if (node->op == kShift && input) return shifted_extent(*node, axis);
    if (is_view(*node) && input && shape_of(*input) == shape_of(name) &&
        permutation(*node, base_name(node->op), shape_of(name).size()).empty())
      return extent_of(*input, axis);
    if (const auto from = input ? axis_before(*node, shape_of(*input).size(), axis) : std::nullopt)
      return extent_of(*input, *from);
    if (base_name(node->op) == "slice" && input && shape_of(*input).size() > axis &&
        shape_of(*input)[axis] == shape_of(name)[axis])
      return extent_of(*input, axis);
    const auto pointwise = lower_pointwise(*node);
    if (!pointwise || !*pointwise) return std::nullopt;
    for (const std::string& operand : (*pointwise)->operands)
      if (shape_of(operand) == shape_of(name))
        if (auto extent = extent_of(operand, axis)) return extent;
    return std::nullopt;
  }
  const auto known = fused_.names.find(name);
  if (known == fused_.names.end()) return std::nullopt;
  return fmt::format("dim({},{})", known->second, axis);
}

// The size of an axis of cutegen.shift's result: of its input, with what a padding or a repetition
// adds.
std::optional<std::string> Builder::shifted_extent(const Node& node, size_t axis) const {
  const std::string from = reference(argument(node, 0, "")).value_or("");
  auto extent = extent_of(from, axis);
  if (!extent || argument(node, 1, "") != axis) return extent;
  const int64_t size = shape_of(from)[axis], wide = node.outputs.front().shape[axis];
  const bool repeats = argument(node, 2, "") == "modulo" && argument(node, 6, "") == 0;
  if (wide == size) return extent;
  if (repeats && size > 0 && wide % size == 0)
    return fmt::format("(({})*{})", *extent, wide / size);
  return fmt::format("(({})+({}))", *extent, wide - size);
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
      extent = renamed(of, known->second).text();
  const Json like = argument(node, 2, "");
  if (like.is_string()) {  // the length of an axis of this value
    const Json length = argument(node, 4, "");
    CG_TRY(extent, with_sizes(like, length.is_string()
                                        ? length.get<std::string>()
                                        : fmt::format("@{}", argument(node, 3, "").get<size_t>())));
  }
  const int axis = view.axes[0];
  if (axis < 0) return constant(literal(number(start).value_or(0)));
  int place = places(axis, extent);
  if (like.is_null() && node.sizes.empty())
    fused_.inputs[size_t(fused_.insts[size_t(place)].operand)].fixed_count = true;
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
  if (const auto extent = shifted_extent(node, dim))
    fused_.axes[size_t(axis)].shown = *extent;
  else if (graph_.producer(*from))
    unsized_ = *from;
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

// The expression with the sizes of a value's axes in place of "@0", "@1", ...
Result<std::string> Builder::with_sizes(const std::string& value, std::string expression) {
  for (size_t axis = 0; axis < shape_of(value).size(); ++axis) {
    const std::string word = fmt::format("@{}", axis);
    for (size_t at = expression.find(word); at != std::string::npos; at = expression.find(word)) {
      const auto extent = extent_of(value, axis);
      if (!extent) {
        if (cut_.empty()) cut_ = value;
        return unsupported_error("a size of " + value + ", which is not known yet");
      }
      expression.replace(at, word.size(), "(" + *extent + ")");
    }
  }
  return expression;
}

int Builder::line(const std::vector<std::pair<int, int64_t>>& terms) {
  std::string key = "line";
  for (const auto& [axis, step] : terms) key += fmt::format(" {}*{}", axis, step);
  if (auto it = built_.find(key); it != built_.end()) return it->second;
  fused_.names.emplace(kPlaces, "place");
  Operand operand{.tensor = kPlaces, .dtype = DType::i64, .counts = true};
  Inst inst;
  inst.kind = InstKind::leaf;
  inst.name = kPlaces;
  inst.operand = int(fused_.inputs.size());
  inst.integer = true;
  for (const auto& [axis, step] : terms) {
    operand.axes.push_back(axis);
    operand.steps.push_back(step);
    operand.shape.push_back(axis < 0 ? 1 : fused_.axes[size_t(axis)].size);
    if (axis >= 0 && fused_.axes[size_t(axis)].reduced) inst.level = Level::element;
  }
  operand.original = operand.shape;
  fused_.inputs.push_back(std::move(operand));
  fused_.insts.push_back(std::move(inst));
  return built_[key] = int(fused_.insts.size()) - 1;
}

// cutegen.filled(number, value, axis, ...)
Result<int> Builder::filled(const Node& node, const View& view) {
  for (size_t i = 0; 2 * i + 2 < node.args.size() && !view.reshaped; ++i) {
    CG_TRY(const std::string extent,
           with_sizes(node.args[2 * i + 1].get<std::string>(),
                      fmt::format("@{}", node.args[2 * i + 2].get<size_t>())));
    if (view.axes[i] >= 0) fused_.axes[size_t(view.axes[i])].shown = extent;
  }
  return constant(literal(number(node.args[0]).value_or(0)));
}

// cutegen.values(list): chooses by the position, because there are few values.
Result<int> Builder::values(const Node& node, const View& view) {
  const Value& result = node.outputs.front();
  if (view.reshaped || !view.starts.empty())
    return cut_at(node, node.op + ": a part or a reshape of constants");
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
  if (terms.empty()) return constant(text(list[0]));
  const int place = line(terms);
  fused_.inputs[size_t(fused_.insts[size_t(place)].operand)].fixed_count = true;
  for (const auto& [axis, of] : terms) {
    std::string& shown = fused_.axes[size_t(axis)].shown;
    if (shown.empty()) shown = std::to_string(fused_.axes[size_t(axis)].size);
  }
  return make("constant", "(" + code + ")", {place}, false, integer);
}

// cutegen.affine(x, axes, sizes, fill)
Result<int> Builder::affine(const Node& node, const View& view) {
  const std::string from = reference(argument(node, 0, "")).value_or("");
  const Json axes = argument(node, 1, ""), sizes = argument(node, 2, ""),
             fill = argument(node, 3, "");
  const bool plain = std::all_of(view.starts.begin(), view.starts.end(), [](const Start& start) {
    return start.index < 0 && start.at == 0 && start.step == 1;
  });
  if (!region_.slices || view.reshaped || !plain)
    return cut_at(node, node.op + ": its result has to be stored first");
  for (size_t i = 0; i < sizes.size(); ++i) {
    const auto size = sizes[i].get<std::string>();
    if (size.empty() || view.axes[i] < 0) continue;
    Axis& axis = fused_.axes[size_t(view.axes[i])];
    CG_TRY(const std::string extent, with_sizes(from, size));
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
    CG_TRY(text, with_sizes(from, std::move(text)));
    if (terms.empty()) {
      start.at = axes[i][2].get<int64_t>();
      start.from = text;
      continue;
    }
    std::vector<std::pair<int, int64_t>> list;
    for (const Json& term : terms)
      list.emplace_back(view.axes[term[0].get<size_t>()], term[1].get<int64_t>());
    lines.emplace_back(line(list), shift);
    along.push_back(i);
    start.index = fused_.insts[size_t(lines.back().first)].operand;
    start.nearest = !fill.is_null();
    if (shift != 0) start.shift = text;
  }
  CG_TRY(int x, value(from, inner));
  if (fill.is_null()) return x;
  std::string inside;
  std::vector<int> inputs{x};
  for (size_t k = 0; k < lines.size(); ++k) {
    CG_TRY(const std::string size, with_sizes(from, fmt::format("@{}", along[k])));
    const std::string place = fmt::format("{{{}}} + {}", inputs.size(), lines[k].second.dump());
    inside += fmt::format("{0}{1} >= 0 && {1} < {2}", inside.empty() ? "" : " && ", place,
                          fmt::format("{{{}}}", inputs.size() + 1));
    inputs.push_back(lines[k].first);
    inputs.push_back(constant(size_parameter(size)));
  }
  const Inst& kind = fused_.insts[size_t(x)];
  const std::string other = literal(number(fill).value_or(0));
  return make("inside",
              fmt::format("({} ? {{0}} : {})", inside,
                          kind.integer ? fmt::format("int64_t({})", other) : other),
              std::move(inputs), kind.boolean, kind.integer);
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
    return cut_at(node, node.op + ": one element would come from one of several operands");
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
  Axis& joined = fused_.axes[size_t(along)];
  if (joined.shown.empty() && joined.size == node.outputs.front().shape[axis])
    joined.shown = stacks ? std::to_string(list.size()) : "(" + before + ")";
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
