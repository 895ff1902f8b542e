// SPDX-License-Identifier: Apache-2.0
#include "recipes/nest/builder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

#include "recipes/graph/permutation.h"
#include "recipes/graph/reshape.h"
#include "recipes/nest/extents.h"

namespace cutegen::recipes {
namespace {

using Words = std::vector<std::string>;
// Views that keep the order of their elements, views that rearrange or reshape them, and operators
// that fill a tensor with one constant.
const Words kSameOrder{"alias",      "detach",          "clone", "contiguous",
                       "lift_fresh", "lift_fresh_copy", "expand"};
const Words kRearranging{
    "unsqueeze", "squeeze", "view",      "reshape", "_unsafe_view", "_reshape_alias", "flatten",
    "unflatten", "permute", "transpose", "t",       "numpy_T",      "swapaxes"};
const Words kSlices{"slice", "narrow",           "select",
                    "split", "split_with_sizes", "unbind",
                    "part",  "unsafe_split",     "unsafe_split_with_sizes"};
// Uninitialised tensors count as zeros, because nothing should read them.
const Words kFills{"full",       "ones",          "zeros",      "full_like", "ones_like",
                   "zeros_like", "scalar_tensor", "new_zeros",  "new_ones",  "new_full",
                   "new_empty",  "empty",         "empty_like", "fill",      "zero"};

constexpr int64_t kMostPieces = 8;  // a larger number is probably a size of the task

bool contains(const Words& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// Returns the index of a value among its node's outputs.
size_t output_index(const Node& node, const std::string& name) {
  for (size_t i = 0; i < node.outputs.size(); ++i)
    if (node.outputs[i].name == name) return i;
  return 0;
}

// Whether a slice has all elements of its tensor.
bool is_whole(const Operand& operand, const std::vector<Axis>& axes) {
  for (size_t i = 0; i < operand.starts.size(); ++i) {
    if (operand.starts[i].index >= 0) return false;
    const int64_t length = operand.axes[i] < 0 ? 1 : axes[size_t(operand.axes[i])].size;
    if (operand.starts[i].at > 0 || length != operand.shape[i]) return false;
  }
  return true;
}

// Whether a slice takes one part along some axes of `shape` and all elements along the others. The
// number of parts is the module's, so the plan may demand it.
bool takes_parts(const Fused& fused, const View& view, const Shape& shape) {
  for (size_t i = 0; i < shape.size(); ++i) {
    const Start& start = view.starts[i];
    const int64_t length = view.axes[i] < 0 ? 1 : fused.axes[size_t(view.axes[i])].size;
    if (start.index >= 0 || start.step > 1) return false;
    if (length != shape[i] && (length > 1 || shape[i] > kMostPieces)) return false;
  }
  return true;
}

}  // namespace

bool is_view(const Node& node) {
  std::string base = base_name(node.op);
  return contains(kSameOrder, base) || contains(kRearranging, base);
}

bool is_slice(const Node& node) {
  const bool known = node.op.rfind("aten.", 0) == 0 || node.op == kPart;
  return known && contains(kSlices, base_name(node.op));
}

bool is_join(const Node& node) {
  const std::string base = base_name(node.op);
  return node.op.rfind("aten.", 0) == 0 && (base == "cat" || base == "stack");
}

std::optional<Stacked> stacked(const Node& node) {
  if (!is_join(node) || base_name(node.op) != "stack") return std::nullopt;
  const Json list = argument(node, 0, "tensors");
  const Json dim = argument(node, 1, "dim");
  const int64_t rank = int64_t(node.outputs[0].shape.size()),
                given = dim.is_null() ? 0 : dim.get<int64_t>(),
                axis = given < 0 ? given + rank : given;
  const bool tensors = std::all_of(list.begin(), list.end(),
                                   [](const Json& item) { return reference(item).has_value(); });
  if (axis < 1 || !tensors) return std::nullopt;
  return Stacked{.axis = size_t(axis), .count = int64_t(list.size())};
}

Shape merged_turns(const Stacked& turns, Shape shape) {
  shape[turns.axis - 1] *= turns.count;
  shape.erase(shape.begin() + long(turns.axis));
  return shape;
}

bool is_fill(const Node& node) {
  return contains(kFills, base_name(node.op));
}

bool is_like(const Node& node) {
  return is_fill(node) && base_name(node.op).ends_with("_like");
}

Builder::Builder(const Region& region, std::vector<Axis> axes)
    : region_(region), graph_(region.source.graph) {
  fused_.axes = std::move(axes);
  fused_.names = region.names;
}

Shape Builder::shape_of(const std::string& name) const {
  const Value* value = graph_.find(name);
  return value ? value->shape : Shape{};
}

tl::unexpected<Error> Builder::cut_at(const Node& node, const std::string& why) {
  if (cut_.empty()) cut_ = node.outputs.front().name;
  return unsupported_error(why, node.id);
}

int Builder::make(const std::string& name, const std::string& code, std::vector<int> inputs,
                  bool boolean, bool integer) {
  const std::string key = fmt::format("make {} {} {}", code, fmt::join(inputs, ","),
                                      boolean   ? "boolean"
                                      : integer ? "integer"
                                                : "");
  if (auto it = built_.find(key); it != built_.end()) return it->second;
  Inst inst;
  inst.kind = InstKind::pointwise;
  inst.name = name;
  inst.code = code;
  inst.boolean = boolean;
  inst.integer = integer;
  for (int input : inputs) {
    const Inst& i = fused_.insts[size_t(input)];
    if (i.level == Level::element) inst.level = Level::element;
    inst.depth = std::max(inst.depth, i.depth);
  }
  inst.inputs = std::move(inputs);
  fused_.insts.push_back(std::move(inst));
  return built_[key] = int(fused_.insts.size()) - 1;
}

int Builder::reduce(const std::string& name, ReduceKind kind, int input) {
  std::string key = fmt::format("reduce {} {}", int(kind), input);
  if (auto it = built_.find(key); it != built_.end()) return it->second;
  Inst inst;
  inst.kind = InstKind::reduction;
  inst.name = name;
  inst.reduce = kind;
  inst.integer = kind == ReduceKind::argmax || kind == ReduceKind::argmin ||
                 kind == ReduceKind::total || kind == ReduceKind::largest ||
                 kind == ReduceKind::smallest;
  inst.depth = fused_.insts[size_t(input)].depth + 1;
  inst.inputs = {input};
  fused_.insts.push_back(std::move(inst));
  return built_[key] = int(fused_.insts.size()) - 1;
}

int Builder::constant(const std::string& code) {
  Inst inst;
  inst.kind = InstKind::constant;
  inst.code = code;
  fused_.insts.push_back(std::move(inst));
  return int(fused_.insts.size()) - 1;
}

int Builder::position() {
  if (auto it = built_.find("position"); it != built_.end()) return it->second;
  Inst inst;
  inst.kind = InstKind::position;
  inst.level = Level::element;
  inst.name = "position";
  inst.integer = true;
  fused_.insts.push_back(std::move(inst));
  return built_["position"] = int(fused_.insts.size()) - 1;
}

Result<int> Builder::value(const std::string& name, const View& seen) {
  View view = seen;
  if (view.reshaped && *view.reshaped == shape_of(name)) view.reshaped.reset();
  std::string key = fmt::format("{} {}", name, fmt::join(view.axes, ","));
  if (view.reshaped) key += " as " + to_string(*view.reshaped);
  for (const Start& start : view.starts) {
    key += fmt::format(" from {}{} by {}", start.at, start.from, start.step);
    if (start.index >= 0)
      key += fmt::format("+{} {} {}{}", start.index, start.rule(), start.shift,
                         start.reversed ? "-" : "+");
  }
  if (auto it = built_.find(key); it != built_.end()) return it->second;
  CG_TRY(int inst, build(name, graph_.producer(name), view));
  return built_[key] = inst;
}

Result<int> Builder::build(const std::string& name, const Node* node, const View& view) {
  if (name.starts_with(kSize)) return size(name.substr(kSize.size()));
  if (!node || region_.kept.count(name)) return leaf(name, view);
  if (node->op.find("getitem") != std::string::npos) {
    auto from = reference(argument(*node, 0, ""));
    Json index = argument(*node, 1, "");
    if (from && index.is_number_integer())
      return value(fmt::format("{}.{}", *from, index.get<int64_t>()), view);
  }
  if (is_slice(*node)) return sliced(*node, output_index(*node, name), view);
  if (is_join(*node)) return joined(*node, view);
  CG_TRY(auto gather, find_gather(graph_, *node));
  if (gather) return gathered(*node, *gather, view);
  if (output_index(*node, name) != 0)
    return unsupported_error(fmt::format("output {} of {}", output_index(*node, name), node->op),
                             node->id);
  CG_TRY(auto seen, through_view(*node, view));
  if (seen) return *seen;
  if (node->op == kInside) return inside(*node, view);
  if (node->op == kShift) return shifted(*node, view);
  if (node->op == kCounting) return counting(*node, view);
  if (node->op == kAffine) return affine(*node, view);
  if (node->op == kFilled) return filled(*node, view);
  if (node->op == kValues) return values(*node, view);
  CG_TRY(auto reducing, find_reduction(graph_, *node));
  if (reducing) return reduction(*node, *reducing, view);
  CG_TRY(auto p, lower_pointwise(*node));
  if (!p) return unsupported_error("no recipe covers " + node->op, node->id);
  return pointwise(*node, *p, view);
}

// Adds a kernel parameter for a size such as "0 fc.weight" or "-1 x", which the plan computes.
Result<int> Builder::size(const std::string& text) {
  const size_t space = text.find(' ');
  size_t end = 0;
  SizeArgument of{.tensor = text.substr(space + 1), .dim = std::stoi(text, &end)};
  if (end < space) of.plus = std::stoll(text.substr(end, space - end));
  if (graph_.producer(of.tensor)) {  // of a value
    const auto extent = extent_of(of.tensor, size_t(of.dim));
    if (!extent && cut_.empty()) cut_ = of.tensor;
    if (!extent) return unsupported_error("a size of " + of.tensor + ", which is not known yet");
    return constant(fmt::format("float({})", size_parameter(*extent)));
  }
  auto known = fused_.names.find(of.tensor);
  if (known == fused_.names.end())
    return unsupported_error("a size of " + of.tensor + ", which is not a tensor of the task");
  of.tensor = known->second;
  const std::string word = fmt::format("size{}_of_{}", fused_.sizes.size(), of.tensor);
  fused_.sizes.emplace_back(word, of.text());
  return constant(fmt::format("float({})", word));
}

Result<int> Builder::leaf(const std::string& name, const View& view) {
  const Value* value = graph_.find(name);
  if (!value) return unsupported_error("the graph has no value " + name);
  if (device_type(value->dtype).empty())
    return unsupported_error(fmt::format("{} of dtype {}", name, to_string(value->dtype)));
  Operand operand{.tensor = name,
                  .dtype = value->dtype,
                  .shape = value->shape,
                  .axes = view.axes,
                  .reshaped = false,
                  .original = value->shape,
                  .kept = false,
                  .extents = {},
                  .parts = {}};
  if (auto kept = region_.kept.find(name); kept != region_.kept.end()) {
    operand.kept = true;
    operand.extents = kept->second;
    if (auto parts = region_.parts.find(name); parts != region_.parts.end())
      operand.parts = parts->second;
  }
  if (view.reshaped && *view.reshaped != value->shape) {
    operand.reshaped = true;
    operand.shape = *view.reshaped;
  }
  operand.starts = view.starts;
  if (is_whole(operand, fused_.axes)) operand.starts.clear();
  for (size_t i = 0; i < operand.starts.size(); ++i)
    if (operand.starts[i].multiple > 0)
      operand.starts[i].by_number ? demand_size(fused_, operand, i)
                                  : demand_parts(fused_, operand, i);
  for (size_t i = 0; i < operand.starts.size(); ++i)
    if (operand.starts[i].step > 1) demand_parts(fused_, operand, i);
  for (size_t i = 0; i < operand.starts.size(); ++i)
    if (operand.starts[i].nearest && fused_.names.count(name)) demand_elements(fused_, operand, i);
  Inst inst;
  inst.kind = InstKind::leaf;
  inst.name = name;
  inst.operand = int(fused_.inputs.size());
  inst.boolean = value->dtype == DType::boolean;
  inst.integer = is_integer(value->dtype);
  for (size_t i = 0; i < operand.axes.size(); ++i) {
    int axis = operand.axes[i];
    if (axis >= 0 && fused_.axes[size_t(axis)].reduced) inst.level = Level::element;
  }
  if (gathers_along(fused_, operand)) inst.level = Level::element;
  fused_.inputs.push_back(std::move(operand));
  fused_.insts.push_back(std::move(inst));
  return int(fused_.insts.size()) - 1;
}

View Builder::broadcast(const Shape& from, const Shape& to, const View& view) const {
  View inner;
  for (size_t i = 0; i < from.size(); ++i) {
    size_t j = i + to.size() - from.size();
    const bool fixed = from[i] == 1 && to[j] != 1;
    inner.axes.push_back(fixed ? -1 : view.axes[j]);
    if (!view.starts.empty()) inner.starts.push_back(fixed ? Start{} : view.starts[j]);
  }
  return inner;
}

// Broadcasts an operand whose result is reshaped. Of each group of axes that the reshape converts,
// the operand must have all or none. If none, it does not vary along the group's new axes.
std::optional<View> Builder::broadcast_reshaped(const Shape& from, const Shape& to,
                                                const View& view) const {
  Shape padded(to.size() - from.size(), 1);
  padded.insert(padded.end(), from.begin(), from.end());
  auto groups = group_axes(to, *view.reshaped);
  if (!groups) return std::nullopt;
  View inner = view;
  for (const AxisGroup& group : *groups) {
    bool all = true, none = true;
    for (size_t i : group.from) {
      all &= padded[i] == to[i];
      none &= padded[i] == 1;
    }
    if (all) continue;
    if (!none) return std::nullopt;
    for (size_t j : group.to) {
      inner.axes[j] = -1;
      (*inner.reshaped)[j] = 1;
      if (!inner.starts.empty()) inner.starts[j] = {};
    }
  }
  return inner;
}

// Converts integers and truth values, which take part in arithmetic as floats.
std::vector<int> Builder::as_numbers(const Node& node, const Pointwise& p,
                                     std::vector<int> inputs) {
  bool copies = (p.code == "{0}" && is_floating(node.outputs.front().dtype)) ||
                base_name(node.op) == "_to_copy";
  bool divides = p.code.find('/') != std::string::npos;
  for (int& input : inputs) {
    const Inst& i = fused_.insts[size_t(input)];
    if ((i.integer && !p.boolean) || (i.boolean && (copies || divides)))
      input = make("number", "float({0})", {input});
  }
  return inputs;
}

Result<int> Builder::pointwise(const Node& node, const Pointwise& p, const View& view) {
  const Shape& to = node.outputs.front().shape;
  DType dtype = node.outputs.front().dtype;
  const bool casts = is_integer(dtype) && base_name(node.op) == "_to_copy";
  if (!is_floating(dtype) && dtype != DType::boolean && !casts && !p.integer)
    return unsupported_error(fmt::format("{} of dtype {}", node.op, to_string(dtype)), node.id);
  std::vector<int> inputs;
  for (const std::string& operand : p.operands) {
    Shape from = shape_of(operand);
    if (from.size() > to.size())
      return unsupported_error(node.op + ": shapes do not broadcast", node.id);
    View inner = view;
    if (!view.reshaped) {
      inner = broadcast(from, to, view);
    } else {
      auto seen = broadcast_reshaped(from, to, view);
      if (!seen) return cut_at(node, "a reshape of a broadcast result");
      inner = *seen;
    }
    CG_TRY(int input, value(operand, inner));
    // A size is a number of 64 bits, which arithmetic on floats converts.
    if (p.integer && operand.starts_with(kSize))
      input = constant("int64_t" + fused_.insts[size_t(input)].code.substr(strlen("float")));
    inputs.push_back(input);
  }
  if (casts && fused_.insts[size_t(inputs.front())].integer) {
    if (dtype == DType::i64) return inputs.front();
    if (device_type(dtype).empty())
      return unsupported_error(fmt::format("{} of integers to {}", node.op, to_string(dtype)),
                               node.id);
    return make("number", fmt::format("int64_t({}({{0}}))", device_type(dtype)), inputs, false,
                true);
  }
  if (p.integer) {
    for (int& input : inputs) {
      const Inst& i = fused_.insts[size_t(input)];
      if (!i.integer && !i.boolean && i.kind != InstKind::constant)
        input = make("number", "int64_t({0})", {input}, false, true);
    }
    return make(node.id, p.code, std::move(inputs), false, true);
  }
  inputs = as_numbers(node, p, std::move(inputs));
  if (p.code == "{0}") return inputs.front();
  return make(node.id, p.code, std::move(inputs), p.boolean);
}

Result<int> Builder::size_of(const SizeArgument& size) {
  return this->size(reference(size_ref(size)).value_or("").substr(kSize.size()));
}

// Reads torch.tensor() of a Python number.
Result<int> Builder::lifted(const Node& node) {
  for (const SizeArgument& of : node.sizes)
    if (of.index == 0 && of.known()) return size_of(of);
  auto made = number(argument(node, 0, "self"));
  if (!made) return unsupported_error(node.op + ": its value is not a number", node.id);
  return constant(literal(*made));
}

// A view changes where the kernel reads a value, not the value.
Result<std::optional<int>> Builder::through_view(const Node& node, const View& view) {
  std::optional<int> none;
  if (node.op.rfind("aten.", 0) != 0 || node.outputs.empty()) return none;
  std::string base = base_name(node.op);
  const Shape& to = node.outputs.front().shape;
  if (contains(kFills, base)) {
    static const Words kZero{"zeros",     "zeros_like", "new_zeros", "zero",
                             "new_empty", "empty",      "empty_like"};
    const size_t place = base == "scalar_tensor" ? 0 : base == "new_full" ? 2 : 1;
    auto fill = base.rfind("ones", 0) == 0 || base == "new_ones" ? std::optional<double>(1)
                : contains(kZero, base)
                    ? std::optional<double>(0)
                    : number(argument(node, place, base == "fill" ? "value" : "fill_value"));
    show_sizes(node, view);
    if (!fill) return unsupported_error(node.op + ": its value is not a number", node.id);
    for (const SizeArgument& of : node.sizes)
      if (of.index == place && of.item == 0 && of.known()) {
        CG_TRY(int inst, size_of(of));
        return std::optional<int>(inst);
      }
    return std::optional<int>(constant(literal(*fill)));
  }
  if (!is_view(node)) return none;
  bool keeps = contains(kSameOrder, base);
  auto from = reference(argument(node, 0, "self"));
  if (!from && base.starts_with("lift_fresh")) {
    CG_TRY(int inst, lifted(node));
    return std::optional<int>(inst);
  }
  if (!from) return unsupported_error(node.op + ": its input is not a tensor", node.id);
  Shape shape = shape_of(*from);
  show_sizes(node, view);
  if (shape == to && (keeps || permutation(node, base, to.size()).empty())) {
    CG_TRY(int inst, value(*from, view));
    return std::optional<int>(inst);
  }
  auto order = permutation(node, base, shape.size());
  if (view.reshaped && moves_ones_only(order, shape)) {  // the order of the elements stays
    CG_TRY(int inst, value(*from, view));
    return std::optional<int>(inst);
  }
  View inner;
  if (view.reshaped && base == "expand") {
    auto seen = broadcast_reshaped(shape, to, view);
    if (!seen) return cut_at(node, "a reshape of an expanded result");
    inner = *seen;
  } else if (view.reshaped && !order.empty()) {
    return cut_at(node, "a reshape of a transposed result");
  } else if (base == "expand") {
    inner = broadcast(shape, to, view);
  } else if (!order.empty()) {
    inner.axes.resize(shape.size());
    inner.starts.resize(view.starts.size());
    for (size_t i = 0; i < order.size(); ++i) inner.axes[order[i]] = view.axes[i];
    for (size_t i = 0; i < view.starts.size(); ++i) inner.starts[order[i]] = view.starts[i];
  } else {
    CG_TRY(int inst, reshape(node, *from, view));
    return std::optional<int>(inst);
  }
  CG_TRY(int inst, value(*from, inner));
  return std::optional<int>(inst);
}

// Reads a part of a joined tensor from the operand that it comes from.
Result<int> Builder::joined(const Node& node, const View& view) {
  const Json list = argument(node, 0, "tensors");
  const auto dim = integer(argument(node, 1, "dim").is_null() ? Json(0) : argument(node, 1, "dim"),
                           node.outputs[0].shape.size());
  if (!list.is_array() || !dim || view.reshaped) return cut_at(node, node.op + " is reshaped");
  const auto axis = size_t(*dim);
  if (!view.starts.empty() && (view.starts[axis].index >= 0 || view.starts[axis].step > 1))
    return cut_at(node, node.op + ": a part of its elements is read");
  const bool stacks = base_name(node.op) == "stack";
  const int along = view.axes[axis];
  const int64_t length = along < 0 ? 1 : fused_.axes[size_t(along)].size,
                at = view.starts.empty() ? 0 : view.starts[axis].at;
  int64_t before = 0;
  for (const Json& item : list) {
    const auto name = reference(item);
    if (!name) return unsupported_error(node.op + ": an operand is not a tensor", node.id);
    const Shape shape = shape_of(*name);
    if (!stacks && shape.size() <= axis)  // cat accepts an empty tensor of one axis
      return unsupported_error(node.op + ": operands of different ranks", node.id);
    const int64_t size = stacks ? 1 : shape[axis];
    if (at >= before && at + length <= before + size) {
      View inner = view;
      const Start given = view.starts.empty() ? Start{} : view.starts[axis];
      const bool last = &item == &list.back();
      if (at > before && (!given.from.empty() || (given.from_end > 0 && !last)))
        return cut_at(node, node.op + ": a slice that begins at another element at other sizes");
      if (!inner.starts.empty())
        inner.starts[axis] =
            at == before ? Start{} : Start{.at = at - before, .from_end = given.from_end};
      if (stacks) {
        inner.axes.erase(inner.axes.begin() + long(axis));
        if (!inner.starts.empty()) inner.starts.erase(inner.starts.begin() + long(axis));
      }
      return value(*name, inner);
    }
    before += size;
  }
  return chosen(node, view, axis);
}

// A reshape may add and drop axes of size 1. Other reshapes need a whole contiguous tensor.
Result<int> Builder::reshape(const Node& node, const std::string& from, const View& view) {
  Shape shape = shape_of(from);
  const Shape& to = node.outputs.front().shape;
  if (view.reshaped) return value(from, view);
  std::vector<size_t> a, b;  // axes that are not of size 1
  for (size_t i = 0; i < shape.size(); ++i)
    if (shape[i] != 1) a.push_back(i);
  for (size_t i = 0; i < to.size(); ++i)
    if (to[i] != 1) b.push_back(i);
  bool same = a.size() == b.size();
  for (size_t i = 0; same && i < a.size(); ++i) same = shape[a[i]] == to[b[i]];
  if (!same && !view.starts.empty() && takes_parts(fused_, view, to))
    return value(from, {.axes = view.axes, .reshaped = to, .starts = view.starts});
  if (!same && !view.starts.empty()) return interleaved(node, from, view);
  if (!same) return value(from, {.axes = view.axes, .reshaped = to});
  View inner{.axes = std::vector<int>(shape.size(), -1), .reshaped = {}};
  if (!view.starts.empty()) inner.starts.resize(shape.size());
  for (size_t i = 0; i < a.size(); ++i) {
    inner.axes[a[i]] = view.axes[b[i]];
    if (!view.starts.empty()) inner.starts[a[i]] = view.starts[b[i]];
  }
  return value(from, inner);
}

// Whether indices choose elements of each row from a result that varies along the reduced axes. The
// kernel then reads only these elements again.
bool Builder::takes_elements(const Reduction& r, const View& view) const {
  if (!r.elementwise || r.scan || view.reshaped || view.starts.empty()) return false;
  if (r.shape.size() != fused_.axes.size()) return false;
  for (size_t i = 0; i < view.axes.size(); ++i) {
    const Start& start = view.starts[i];
    const bool reduced = std::find(r.axes.begin(), r.axes.end(), int(i)) != r.axes.end();
    if (start.at > 0 || reduced != (start.index >= 0)) return false;
    if (!reduced && view.axes[i] != int(i) && r.shape[i] != 1) return false;
  }
  return true;
}

// The reduction must run over the nest's own axes, and its result must lie along the kept ones.
Result<void> Builder::check_axes(const Node& node, const Reduction& r, const View& view) const {
  auto clash = [&] {
    return unsupported_error(node.op + ": its result is used along axes that it does not have",
                             node.id);
  };
  if (view.reshaped) return unsupported_error("a reshape of a reduced value", node.id);
  if (!view.starts.empty()) return unsupported_error("a slice of a reduced value", node.id);
  if (r.shape.size() != fused_.axes.size()) return clash();
  size_t v = 0;
  for (size_t e = 0; e < fused_.axes.size(); ++e) {
    bool reduced = std::find(r.axes.begin(), r.axes.end(), int(e)) != r.axes.end();
    if (reduced && !r.keepdim && !r.elementwise) continue;
    if (v >= view.axes.size()) return clash();
    int axis = view.axes[v++];
    bool may_drop = r.shape[e] == 1 || (reduced && !r.elementwise);
    if (axis != int(e) && !(axis == -1 && may_drop)) return clash();
  }
  return {};
}

Result<int> Builder::reduction(const Node& node, const Reduction& r, const View& view) {
  DType in = graph_.find(r.input)->dtype, out = node.outputs.front().dtype;
  const bool counts =
      r.base == "sum" || r.base == "count_nonzero" || r.base == "any" || r.base == "all";
  const bool best = r.base == "amax" || r.base == "amin" || r.base == "max" || r.base == "min";
  const bool integers = best && is_integer(in);
  bool whole_numbers = is_integer(in) && !counts && !best;
  bool place = r.base == "argmax" || r.base == "argmin";
  if (!r.scan && (whole_numbers || (!is_floating(out) && !place && !counts && !integers)))
    return unsupported_error(
        fmt::format("{} of dtype {}", node.op, to_string(whole_numbers ? in : out)), node.id);
  const bool takes = takes_elements(r, view);
  if (auto fits = check_axes(node, r, view); !fits && !takes)
    return cut_at(node, fits.error().message);
  View whole;
  for (size_t i = 0; i < fused_.axes.size(); ++i) whole.axes.push_back(int(i));
  CG_TRY(int x, value(r.input, whole));
  if (r.scan) return scan(node, r, x);
  if (counts && !is_floating(out)) return counted(node, r, x);
  if (integers) {
    if (!fused_.insts[size_t(x)].integer) x = make("number", "int64_t({0})", {x}, false, true);
    const bool most = r.base == "amax" || r.base == "max";
    return reduce("best", most ? ReduceKind::largest : ReduceKind::smallest, x);
  }
  if (r.index) {
    CG_TRY(int index, value(*r.index, rows_view()));
    if (const int element = picked(r, index); element >= 0) return element;
    // Sums the row with all elements but the chosen one set to zero.
    x = make("chosen", "({0} == {1} ? {2} : 0.0f)", {position(), index, x});
  }
  int at = x;
  if (takes) {
    CG_TRY(at, value(r.input, view));
  }
  int result = expanded(r, x, at);
  if (result < 0)
    return unsupported_error(fmt::format("{} of order {}", node.op, r.parameter), node.id);
  return affine(r, takes ? view : whole, result);
}

// A sum of integers or truth values, or whether any or all values of a row are true.
Result<int> Builder::counted(const Node& node, const Reduction& r, int x) {
  if (r.base == "sum" && node.outputs.front().dtype != DType::i64)
    return unsupported_error(
        fmt::format("{} of dtype {}", node.op, to_string(node.outputs.front().dtype)), node.id);
  if (r.base == "sum") return reduce("total", ReduceKind::total, x);
  const bool all = r.base == "all";
  const int hit = make("hit", all ? "({0} == 0)" : "({0} != 0)", {x}, true);
  if (r.base == "count_nonzero") return reduce("total", ReduceKind::total, hit);
  return make(r.base, all ? "({0} == 0)" : "({0} != 0)", {reduce("hits", ReduceKind::total, hit)},
              true);
}

// One pass computes all scans, so an earlier stage keeps what a scan of a scan reads.
Result<int> Builder::scan(const Node& node, const Reduction& r, int input) {
  if (fused_.insts[size_t(input)].depth > 0) {
    if (cut_.empty()) cut_ = r.input;
    return unsupported_error(node.op + " of a scan", node.id);
  }
  const Inst& kind = fused_.insts[size_t(input)];
  if (r.scan->takes_integers() && !kind.integer)
    input = make("number", "int64_t({0})", {input}, false, true);
  Inst inst;
  inst.integer = r.scan->gives_integers();
  inst.kind = InstKind::scan;
  inst.level = Level::element;
  inst.name = "scan";
  inst.scan = *r.scan;
  inst.depth = 1;
  inst.inputs = {input};
  fused_.insts.push_back(std::move(inst));
  return int(fused_.insts.size()) - 1;
}

// cutegen.inside(x, low, high): a kernel knows the position among all elements of a row, so the row
// must consist of the axes behind the first two.
Result<int> Builder::inside(const Node& node, const View& view) {
  const std::string from = reference(argument(node, 0, "")).value_or("");
  const Json low = argument(node, 1, ""), high = argument(node, 2, "");
  const size_t rank = view.axes.size();
  bool rows = !view.reshaped && view.starts.empty() && rank == fused_.axes.size();
  for (size_t i = 0; rows && i < rank; ++i)
    rows = view.axes[i] == int(i) && fused_.axes[i].reduced == (i >= 2);
  if (!rows) return cut_at(node, node.op + ": its axes are not the reduced ones");
  CG_TRY(int x, value(from, view));
  std::vector<int> inputs{x, position()};
  std::string at = "int({1})", test;
  for (size_t axis = rank; axis-- > 2;) {
    CG_TRY(int extent, size(fmt::format("{} {}", axis, from)));
    const std::string wide = fmt::format("int({{{}}})", inputs.size());
    inputs.push_back(extent);
    const std::string here = axis == 2 ? at : fmt::format("{} % {}", at, wide);
    test += fmt::format("{0}{1} >= {2} && {1} < {3} - {4}", test.empty() ? "" : " && ", here,
                        low.at(axis - 2).get<int64_t>(), wide, high.at(axis - 2).get<int64_t>());
    at = fmt::format("{} / {}", at, wide);
  }
  return make("inside", fmt::format("({} ? {{0}} : 0.0f)", test), std::move(inputs));
}

// Adds weight * normalized + bias; weight and bias lie along the last axes.
Result<int> Builder::affine(const Reduction& r, const View& view, int normalized) {
  for (size_t i = 0; i < r.affine.size(); ++i) {
    if (!r.affine[i]) continue;
    CG_TRY(int w, value(*r.affine[i], broadcast(shape_of(*r.affine[i]), r.shape, view)));
    normalized =
        make(i == 0 ? "scaled" : "shifted", i == 0 ? "{0} * {1}" : "{0} + {1}", {normalized, w});
  }
  return normalized;
}

}  // namespace cutegen::recipes
