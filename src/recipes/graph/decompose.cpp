// SPDX-License-Identifier: Apache-2.0
#include "recipes/graph/decompose.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "recipes/graph/attention.h"
#include "recipes/graph/node_writer.h"
#include "recipes/graph/pointwise.h"
#include "recipes/graph/products.h"
#include "recipes/graph/reshape.h"

namespace cutegen::recipes {
namespace {

// The position of the argument `reduction` of each loss. Its values: 0 none, 1 mean, 2 sum.
const std::map<std::string, size_t>& loss_inputs() {
  static const std::map<std::string, size_t> table{{"mse_loss", 2},
                                                   {"smooth_l1_loss", 2},
                                                   {"huber_loss", 2},
                                                   {"soft_margin_loss", 2},
                                                   {"binary_cross_entropy", 3}};
  return table;
}

// Returns an attribute of the module whose name ends in `word` and that has this value, or else the
// number itself.
std::string expression(const Task& task, const std::string& word, int64_t value) {
  for (const ScalarInfo& s : task.attributes) {
    const auto* number = std::get_if<int64_t>(&s.value);
    bool named = s.name == word || (s.name.size() > word.size() &&
                                    s.name.compare(s.name.size() - word.size() - 1,
                                                   std::string::npos, "." + word) == 0);
    if (number && *number == value && named) return fmt::format("attr({})", s.name);
  }
  return std::to_string(value);
}

// Writes glu(x, dim): one half times the sigmoid of the other.
Result<bool> glu(NodeWriter& write, const Node& node) {
  const Json x = argument(node, 0, "self"), dim = argument(node, 1, "dim");
  const Shape& half = node.outputs[0].shape;
  const std::string value = write.add("value", kPart, {x, dim, 0}, half),
                    gate = write.add("gate", kPart, {x, dim, 1}, half),
                    open = write.add("open", "aten.sigmoid.default", {tensor_ref(gate)}, half);
  write.add("gated", "aten.mul.Tensor", {tensor_ref(value), tensor_ref(open)}, half,
            node.outputs[0].name);
  return true;
}

// Writes a shift along one axis. If the shift fills, the last `end` elements of the result are not
// from x.
std::string shift(NodeWriter& write, const std::string& x, int64_t dim, const std::string& rule,
                  const std::string& by, bool reversed, const Shape& shape, const Json& fill,
                  int64_t before, int64_t after) {
  return write.add("shift", kShift, {tensor_ref(x), dim, rule, by, reversed, fill, before, after},
                   shape);
}

// Axes of `shape` that an argument lists; all without one.
std::vector<int64_t> axes_of(const Json& dims, const Shape& shape) {
  std::vector<int64_t> list;
  if (dims.is_number_integer()) list.push_back(dims.get<int64_t>());
  if (dims.is_array())
    for (const Json& dim : dims) list.push_back(dim.get<int64_t>());
  for (int64_t& dim : list)
    if (dim < 0) dim += int64_t(shape.size());
  return list;
}

// Chooses the nodes that replace a node.
class Rewriter {
 public:
  Rewriter(Decomposed& out, const Graph& graph, const Task& task, const Node& node)
      : out_(out), graph_(graph), task_(task), node_(node), write_(out.graph, graph, node) {}

  // True if the node was replaced.
  Result<bool> run();

 private:
  Result<bool> loss(size_t place);
  Result<bool> nll();
  Result<bool> batch_norm();
  Result<bool> running_statistics(const Value& x, const std::vector<int>& axes);
  Result<bool> group_norm();
  Result<bool> convolution();
  bool instance_norm(const Value& x, double eps, const Json& weight, const Json& bias);
  std::optional<std::string> repeated(const Json& channels, int64_t images) const;
  bool tanh_of_softplus();
  Result<bool> shuffle(bool up);
  Result<bool> channel_shuffle();
  Result<bool> max_with_index(const std::string& base);
  Result<bool> variance_and_mean(const std::string& base);
  Result<bool> moved(const std::string& base);
  Result<bool> roll(const Value& x);
  Result<bool> pad(const Value& x, const std::string& rule);
  Result<bool> repeat(const Value& x);
  Result<bool> triangle(const Value& x, bool upper);
  Result<bool> upsample(const Value& x);
  Result<bool> arange();
  Result<bool> arange_of_sizes(const Json& start, const Json& step);
  Result<bool> steps_to_size(const Json& start, const Json& step);
  Result<bool> eye();
  Result<bool> choice_along(const Value& x, const std::string& base);
  bool feeds_a_window() const;
  bool finish(const std::string& x);
  std::string as(DType dtype, const std::string& value) { return write_.as(dtype, value); }
  const Value* tensor(size_t index, const std::string& keyword) const {
    auto name = reference(argument(node_, index, keyword));
    return name ? graph_.find(*name) : nullptr;
  }
  tl::unexpected<Error> refuse(const std::string& what) const {
    return unsupported_error(node_.op + ": " + what, node_.id);
  }

  Decomposed& out_;
  const Graph& graph_;
  const Task& task_;
  const Node& node_;
  NodeWriter write_;
};

Result<bool> Rewriter::run() {
  if (node_.op.rfind("aten.", 0) != 0 || node_.outputs.empty()) return false;
  std::string base = base_name(node_.op);
  if (auto it = loss_inputs().find(base); it != loss_inputs().end()) return loss(it->second);
  if (base == "nll_loss_forward" || base == "nll_loss2d_forward") return nll();
  if (base == "native_batch_norm" || base == "_native_batch_norm_legit_no_training")
    return batch_norm();
  if (base == "native_group_norm") return group_norm();
  if (base == "convolution") return convolution();
  if (base == "tanh") return tanh_of_softplus();
  if (base == "glu") return glu(write_, node_);
  if (base == "channel_shuffle") return channel_shuffle();
  if (base == "pixel_shuffle" || base == "pixel_unshuffle") return shuffle(base == "pixel_shuffle");
  if ((base == "max" || base == "min") && node_.outputs.size() == 2) return max_with_index(base);
  if (base == "var_mean" || base == "std_mean") return variance_and_mean(base);
  return moved(base);
}

// Makes x, viewed in the result's shape, the node's result.
bool Rewriter::finish(const std::string& x) {
  const Value& result = node_.outputs[0];
  write_.view("result", x, result.shape, result.name);
  return true;
}

// Whether a convolution or pooling reads the result. Its stage can include padding, and stages
// before it store the other values that it reads.
bool Rewriter::feeds_a_window() const {
  const std::string& name = node_.outputs[0].name;
  return std::any_of(graph_.nodes.begin(), graph_.nodes.end(), [&](const Node& reader) {
    const std::string base = base_name(reader.op);
    return (base.find("conv") != std::string::npos || base.find("pool") != std::string::npos) &&
           std::any_of(reader.args.begin(), reader.args.end(),
                       [&](const auto& arg) { return reference(arg) == name; });
  });
}

// Operators that only move elements, and those whose values are positions.
Result<bool> Rewriter::moved(const std::string& base) {
  if (base == "arange") return arange();
  if (base == "eye") return eye();
  const Value* x = tensor(0, "self");
  if (!x || feeds_a_window()) return false;
  if (base == "roll") return roll(*x);
  if (base == "flip") {
    std::string now = x->name;
    for (int64_t dim : axes_of(argument(node_, 1, "dims"), x->shape))
      now = as(x->dtype, shift(write_, now, dim, "", "@-1", true, x->shape, nullptr, 0, 0));
    return finish(now);
  }
  if (base == "constant_pad_nd") return pad(*x, "fill");
  if (base.starts_with("reflection_pad")) return pad(*x, "reflect");
  if (base.starts_with("replication_pad")) return pad(*x, "nearest");
  if (base == "repeat") return repeat(*x);
  if (base == "triu" || base == "tril") return triangle(*x, base == "triu");
  if (base == "upsample_nearest2d" || base == "upsample_nearest1d") return upsample(*x);
  if (base == "topk" || base == "sort" || base == "argsort") return choice_along(*x, base);
  return false;
}

Result<bool> Rewriter::roll(const Value& x) {
  const std::vector<int64_t> dims = axes_of(argument(node_, 2, "dims"), x.shape);
  const Json shifts = argument(node_, 1, "shifts");
  std::string now = x.name;
  Shape shape = x.shape;
  if (dims.empty() && x.shape.size() != 1) return false;
  for (size_t i = 0; i < std::max<size_t>(1, dims.size()); ++i) {
    const Json& given = shifts.is_array() ? shifts.at(i) : shifts;
    if (!given.is_number_integer()) return false;
    const auto by = given.get<int64_t>();
    const std::string from =
        by >= 0 ? fmt::format("@-({}%max(1,@))", by) : fmt::format("({}%max(1,@))", -by);
    now = as(x.dtype, shift(write_, now, dims.empty() ? 0 : dims[i], "cyclic", from, false, shape,
                            nullptr, 0, 0));
  }
  return finish(now);
}

// Pads the last axes, the last one first, by the numbers before and after each.
Result<bool> Rewriter::pad(const Value& x, const std::string& rule) {
  const Json pads = argument(node_, 1, rule == "fill" ? "pad" : "padding");
  Json fill = argument(node_, 2, "value");
  if (fill.is_null()) fill = 0;
  if (!pads.is_array() || pads.size() % 2 != 0 || pads.size() / 2 > x.shape.size()) return false;
  if (rule == "fill" && !number(fill)) return false;
  std::string now = x.name;
  Shape shape = x.shape;
  for (size_t i = 0; i < pads.size(); i += 2) {
    if (!pads[i].is_number_integer() || !pads[i + 1].is_number_integer()) return false;
    const auto before = pads[i].get<int64_t>(), after = pads[i + 1].get<int64_t>();
    if (before == 0 && after == 0) continue;
    const size_t dim = x.shape.size() - 1 - i / 2;
    shape[dim] += before + after;
    now = as(x.dtype, shift(write_, now, int64_t(dim), rule, std::to_string(-before), false, shape,
                            fill, before, after));
  }
  return finish(now);
}

Result<bool> Rewriter::repeat(const Value& x) {
  const Json repeats = argument(node_, 1, "repeats");
  if (!repeats.is_array() || repeats.size() < x.shape.size()) return false;
  Shape shape(repeats.size() - x.shape.size(), 1);
  shape.insert(shape.end(), x.shape.begin(), x.shape.end());
  std::string now = as(x.dtype, write_.view("whole", x.name, shape));
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    if (!repeats[dim].is_number_integer()) return false;
    const auto times = repeats[dim].get<int64_t>();
    if (times == 1) continue;
    const bool one = shape[dim] == 1;
    shape[dim] *= times;
    now =
        as(x.dtype,
           one ? write_.add("expand", "aten.expand.default", {tensor_ref(now), Json(shape)}, shape)
               : shift(write_, now, int64_t(dim), "modulo", "", false, shape, nullptr, 0, 0));
  }
  return finish(now);
}

// tril(x, k) and triu(x, k): zero unless column - row <= k, or >= k.
Result<bool> Rewriter::triangle(const Value& x, bool upper) {
  const auto by = number(argument(node_, 1, "diagonal")).value_or(0);
  if (x.shape.size() < 2) return false;
  const bool product = std::any_of(graph_.nodes.begin(), graph_.nodes.end(), [](const Node& node) {
    return is_product(node) || is_attention(node);
  });
  if (product) return false;  // its kernel skips tiles that the mask hides
  write_.triangle(x, upper, int64_t(by));
  return true;
}

// Interpolation by the nearest element with integer factors: each element repeats. The arguments
// from 2 on are the factors. Without factors, the output may be another multiple of the input at
// other shapes.
Result<bool> Rewriter::upsample(const Value& x) {
  const Shape& to = node_.outputs[0].shape;
  if (to.size() != x.shape.size()) return false;
  for (size_t i = 2; i < to.size(); ++i)
    if (!number(argument(node_, i, ""))) return false;
  Shape thin(x.shape.begin(), x.shape.begin() + 2), wide = thin;
  for (size_t i = 2; i < to.size(); ++i) {
    if (x.shape[i] < 1 || to[i] % x.shape[i] != 0) return false;
    thin.push_back(x.shape[i]), thin.push_back(1);
    wide.push_back(x.shape[i]), wide.push_back(to[i] / x.shape[i]);
  }
  const std::string seen = as(x.dtype, write_.view("seen", x.name, thin));
  return finish(
      as(x.dtype, write_.add("wide", "aten.expand.default", {tensor_ref(seen), Json(wide)}, wide)));
}

// arange(end), arange(start, end, step)
Result<bool> Rewriter::arange() {
  const bool from_zero = node_.op == "aten.arange.default";
  const Json start = from_zero ? Json(0) : argument(node_, 0, "start"),
             given = from_zero ? Json(1) : argument(node_, 2, "step"),
             step = given.is_null() ? Json(1) : given;
  if (!number(start) || !number(step)) return false;
  const Value& result = node_.outputs[0];
  if (result.shape.size() != 1) return false;
  if (from_zero || node_.sizes.empty()) {
    write_.add("counting", kCounting, {start, step}, result.shape, result.name);
    out_.graph.nodes.back().sizes = node_.sizes;
    return true;
  }
  return arange_of_sizes(start, step);
}

// arange(1, n + 1), arange(n - 1, -1, -1): one end is a number, and the step is 1 or -1.
Result<bool> Rewriter::arange_of_sizes(const Json& start, const Json& step) {
  const Value& result = node_.outputs[0];
  const auto from = number(start), to = number(argument(node_, 1, "end"));
  const SizeArgument& size = node_.sizes[0];
  const bool plain = node_.sizes.size() == 1 && size.known() && size.index < 2 && from && to &&
                     (step == 1 || step == -1) && *from == std::round(*from);
  const bool known = std::all_of(node_.sizes.begin(), node_.sizes.end(),
                                 [](const SizeArgument& other) { return other.known(); });
  if (!plain && known) return steps_to_size(start, step);
  if (!plain) {  // assemble() requires the official sizes
    write_.add("counting", kCounting, {start, step}, result.shape, result.name);
    return true;
  }
  const bool up = step == 1;
  if ((size.index == 1) != up) return false;
  SizeArgument count = size;  // the number of positions
  count.plus += int64_t(up ? -*from : -*to);
  const auto counting = [&](const std::string& name) {
    const std::string value =
        write_.add("counting", kCounting, {up ? start : Json(0), step}, result.shape, name);
    out_.graph.nodes.back().sizes = {count};
    return value;
  };
  if (up) {
    counting(result.name);
    return true;
  }
  const std::string places = as(result.dtype, counting(""));
  return finish(as(result.dtype, write_.add("from", "aten.add.Tensor",
                                            {tensor_ref(places), size_ref(size)}, result.shape)));
}

// arange(0, n, 2): only the end is a size, and the step is positive.
Result<bool> Rewriter::steps_to_size(const Json& start, const Json& step) {
  const SizeArgument& size = node_.sizes[0];
  const bool whole = start.is_number_integer() && step.is_number_integer() && step > 0;
  if (node_.sizes.size() != 1 || size.index != 1 || size.dim < 0 || !whole) return false;
  const int64_t by = step.get<int64_t>(), more = size.plus - start.get<int64_t>() + by - 1;
  const std::string count = fmt::format("max(0,(@{}+({}))/{})", size.dim, more, by);
  const Value& result = node_.outputs[0];
  write_.add("counting", kCounting, {start, step, size.tensor, size.dim, count}, result.shape,
             result.name);
  return true;
}

Result<bool> Rewriter::eye() {
  const Value& result = node_.outputs[0];
  if (result.shape.size() != 2) return false;
  std::vector<Json> counting{0, 1};
  if (!node_.sizes.empty()) counting.emplace_back(kAnyCount);
  const std::string column =
      as(DType::i64, write_.add("column", kCounting, counting, {result.shape[1]}));
  std::string row = as(DType::i64, write_.add("row", kCounting, counting, {result.shape[0]}));
  row = as(DType::i64, write_.view("rows", row, {result.shape[0], 1}));
  const std::string same =
      as(DType::boolean,
         write_.add("same", "aten.eq.Tensor", {tensor_ref(column), tensor_ref(row)}, result.shape));
  write_.add("eye", "aten._to_copy.default", {tensor_ref(same)}, result.shape, result.name);
  return true;
}

// topk, sort and argsort along another axis than the last one, which becomes the last one.
Result<bool> Rewriter::choice_along(const Value& x, const std::string& base) {
  if (node_.op.ends_with(".stable") || x.shape.empty()) return false;
  const size_t place = base == "topk" ? 2 : 1;
  const Json given = argument(node_, place, "dim");
  const int64_t last = int64_t(x.shape.size()) - 1;
  int64_t dim = given.is_number_integer() ? given.get<int64_t>() : -1;
  if (dim < 0) dim += last + 1;
  if (dim < 0 || dim >= last) return false;
  const auto turned = [&](Shape shape) {
    std::swap(shape[size_t(dim)], shape[size_t(last)]);
    return shape;
  };
  const std::string rows = as(
      x.dtype,
      write_.add("rows", "aten.transpose.int", {tensor_ref(x.name), dim, last}, turned(x.shape)));
  Node chosen = node_;
  chosen.id += "_last";
  if (!chosen.args.empty()) chosen.args[0] = tensor_ref(rows);
  if (chosen.args.size() > place) chosen.args[place] = -1;
  if (chosen.kwargs.is_object() && chosen.kwargs.contains("dim")) chosen.kwargs["dim"] = -1;
  if (chosen.args.size() <= place && !chosen.kwargs.contains("dim")) return false;
  for (size_t i = 0; i < chosen.outputs.size(); ++i) {
    chosen.outputs[i].name = fmt::format("{}~last{}", node_.outputs[i].name, i);
    chosen.outputs[i].shape = turned(node_.outputs[i].shape);
  }
  out_.graph.nodes.push_back(chosen);
  for (size_t i = 0; i < chosen.outputs.size(); ++i)
    write_.add("back", "aten.transpose.int", {tensor_ref(chosen.outputs[i].name), dim, last},
               node_.outputs[i].shape, node_.outputs[i].name);
  return true;
}

Result<bool> Rewriter::loss(size_t place) {
  auto reduction = number(argument(node_, place, "reduction"));
  if (!reduction) return refuse("its reduction is not a number");
  if (*reduction == 0) return false;
  const Value *a = tensor(0, "self"), *b = tensor(1, "target");
  if (!a || !b) return refuse("its operands are not tensors of the graph");
  const Shape& shape = a->shape.size() >= b->shape.size() ? a->shape : b->shape;
  if (a->shape != b->shape) return refuse("operands of different shapes");
  std::vector<Json> args = node_.args;
  if (place >= args.size()) return refuse("its reduction is not a positional argument");
  args[place] = 0;
  std::string each = write_.add("each", node_.op, std::move(args), shape);
  bool mean = *reduction == 1;
  write_.add(mean ? "mean" : "sum", mean ? "aten.mean.default" : "aten.sum.default",
             {tensor_ref(each)}, {}, node_.outputs[0].name);
  return true;
}

// nll_loss_forward(x, target, weight, reduction, ignore_index): classes along axis 1 (or the only
// one).
Result<bool> Rewriter::nll() {
  const Value *x = tensor(0, "self"), *target = tensor(1, "target");
  if (!x || !target || x->shape.empty()) return refuse("its operands are not tensors of the graph");
  size_t axis = x->shape.size() == 1 ? 0 : 1;
  // A loop nest can read a slice of logits and labels in place, but not their merged rows.
  const Value *rows = before_merge(graph_, x->name), *labels = before_merge(graph_, target->name);
  if (rows && labels && axis == 1 && x->shape.size() == 2 &&
      Shape(rows->shape.begin(), rows->shape.end() - 1) == labels->shape) {
    x = rows, target = labels;
    axis = x->shape.size() - 1;
  }
  const Value* weight = tensor(2, "weight");
  if (weight && x->shape.size() < 2) return refuse("with weights of classes");
  auto reduction = number(argument(node_, 3, "reduction"));
  auto ignored = number(argument(node_, 4, "ignore_index"));
  if (!reduction || !ignored) return refuse("its reduction or ignored class is not a number");
  const Shape& shape = target->shape;
  std::string picked = write_.add("picked", "cutegen.pick",
                                  {tensor_ref(x->name), tensor_ref(target->name), axis}, shape);
  std::string kept =
      write_.add("kept", "aten.ne.Scalar", {tensor_ref(target->name), *ignored}, shape);
  out_.graph.nodes.back().outputs[0].dtype = DType::boolean;
  std::string negated = write_.add("negated", "aten.neg.default", {tensor_ref(picked)}, shape);
  std::string weights;  // of the targets' classes
  if (weight) {
    Shape thin(x->shape.size(), 1);
    thin[axis] = x->shape[axis];
    const std::string all = write_.add(
        "weights", "aten.expand.default",
        {tensor_ref(write_.view("weight", weight->name, thin)), Json(x->shape)}, x->shape);
    weights = write_.add("picked_weight", "cutegen.pick",
                         {tensor_ref(all), tensor_ref(target->name), axis}, shape);
    negated = write_.add("weighted", "aten.mul.Tensor", {tensor_ref(negated), tensor_ref(weights)},
                         shape);
  }
  bool none = *reduction == 0;
  std::string each =
      write_.add("each", "aten.where.ScalarOther", {tensor_ref(kept), tensor_ref(negated), 0},
                 shape, none ? node_.outputs[0].name : "");
  if (none) return true;
  bool mean = *reduction == 1;
  std::string total = write_.add("total", "aten.sum.default", {tensor_ref(each)}, {},
                                 mean ? "" : node_.outputs[0].name);
  if (!mean) return true;
  std::string one =
      weight ? write_.add("counted", "aten.where.ScalarOther",
                          {tensor_ref(kept), tensor_ref(weights), 0}, shape)
             : write_.add("counted", "aten.where.Scalar", {tensor_ref(kept), 1, 0}, shape);
  std::string count = write_.add("count", "aten.sum.default", {tensor_ref(one)}, {});
  write_.add("mean", "aten.div.Tensor", {tensor_ref(total), tensor_ref(count)}, {},
             node_.outputs[0].name);
  return true;
}

// native_batch_norm(x, weight, bias, mean, var, training, momentum, eps); legit_no_training lacks
// `training`.
Result<bool> Rewriter::batch_norm() {
  const Value* x = tensor(0, "input");
  if (!x || x->shape.size() < 2) return refuse("its input is not a tensor with channels");
  bool has_mode = base_name(node_.op) == "native_batch_norm";
  bool training = has_mode && number(argument(node_, 5, "training")).value_or(0) != 0;
  auto eps = number(argument(node_, has_mode ? 7 : 6, "eps"));
  if (!eps) return refuse("eps is not a number");
  Json weight = argument(node_, 1, "weight"), bias = argument(node_, 2, "bias");
  if (training && instance_norm(*x, *eps, weight, bias)) return true;
  if (training) {
    std::vector<int> axes;
    for (size_t i = 0; i < x->shape.size(); ++i)
      if (i != 1) axes.push_back(int(i));
    write_.scaled(write_.standardized(x->name, axes, *eps), weight, bias, 1);
    return running_statistics(*x, axes);
  }
  const Value *mean = tensor(3, "running_mean"), *variance = tensor(4, "running_var");
  if (!mean || !variance) return refuse("without running statistics");
  Shape channels(x->shape.size(), 1);
  channels[1] = x->shape[1];
  std::string m = write_.view("mean", mean->name, channels),
              v = write_.view("variance", variance->name, channels);
  std::string centered =
      write_.add("centered", "aten.sub.Tensor", {tensor_ref(x->name), tensor_ref(m)}, x->shape);
  std::string shifted = write_.add("shifted", "aten.add.Scalar", {tensor_ref(v), *eps}, channels);
  std::string scale = write_.add("scale", "aten.rsqrt.default", {tensor_ref(shifted)}, channels);
  // One factor for each channel, so that kernels compute it once.
  if (auto w = reference(weight))
    scale =
        write_.add("factor", "aten.mul.Tensor",
                   {tensor_ref(scale), tensor_ref(write_.view("weight", *w, channels))}, channels);
  write_.scaled(write_.add("normalized", "aten.mul.Tensor",
                           {tensor_ref(centered), tensor_ref(scale)}, x->shape),
                nullptr, bias, 1);
  return true;
}

// Writes the new running mean and variance of a batch norm in train mode, if the graph reads these
// outputs.
Result<bool> Rewriter::running_statistics(const Value& x, const std::vector<int>& axes) {
  const Value *mean = tensor(3, "running_mean"), *variance = tensor(4, "running_var");
  const auto momentum = number(argument(node_, 6, "momentum"));
  if (node_.outputs.size() < 5) return true;
  if (!mean || !variance || !momentum) return refuse("its running statistics");
  const Shape channels{x.shape[1]};
  const std::string m = write_.add("batch_mean", "aten.mean.dim",
                                   {tensor_ref(x.name), Json(axes), false}, channels),
                    v = write_.add("batch_variance", "aten.var.correction",
                                   {tensor_ref(x.name), Json(axes), 1, false}, channels);
  write_.add("mean", "aten.lerp.Scalar", {tensor_ref(mean->name), tensor_ref(m), *momentum},
             channels, node_.outputs[3].name);
  write_.add("variance", "aten.lerp.Scalar", {tensor_ref(variance->name), tensor_ref(v), *momentum},
             channels, node_.outputs[4].name);
  return true;
}

// If `channels` repeats a tensor for each image, returns this tensor's name, otherwise nullopt.
std::optional<std::string> Rewriter::repeated(const Json& channels, int64_t images) const {
  const auto name = reference(channels);
  const Node* repeat = name ? graph_.producer(*name) : nullptr;
  if (!repeat || repeat->op != "aten.repeat.default" ||
      argument(*repeat, 1, "repeats") != Json::array({images}))
    return std::nullopt;
  return reference(argument(*repeat, 0, "self"));
}

// PyTorch records instance norm as a batch norm of one image with the channels of all images. If
// the norm has weights, which all images share, instance_norm() keeps images and channels as
// separate axes.
bool Rewriter::instance_norm(const Value& x, double eps, const Json& weight, const Json& bias) {
  const Node* view = graph_.producer(x.name);
  const auto from = view && base_name(view->op) == "view" ? reference(view->args[0]) : std::nullopt;
  const Value* images = from ? graph_.find(*from) : nullptr;
  if (!images || images->shape.size() != x.shape.size() || x.shape[0] != 1) return false;
  const Shape& shape = images->shape;
  if (!std::equal(shape.begin() + 2, shape.end(), x.shape.begin() + 2)) return false;
  const auto w = repeated(weight, shape[0]), b = repeated(bias, shape[0]);
  if ((!w && !b) || (!w && !weight.is_null()) || (!b && !bias.is_null())) return false;
  std::vector<int> axes;
  for (size_t i = 2; i < shape.size(); ++i) axes.push_back(int(i));
  Shape channels(shape.size(), 1);
  channels[1] = shape[1];
  std::string result = write_.standardized(*from, axes, eps);
  if (w)
    result =
        write_.add("scaled", "aten.mul.Tensor",
                   {tensor_ref(result), tensor_ref(write_.view("weight", *w, channels))}, shape);
  if (b)
    result = write_.add("biased", "aten.add.Tensor",
                        {tensor_ref(result), tensor_ref(write_.view("bias", *b, channels))}, shape);
  write_.view("images", result, x.shape, node_.outputs[0].name);
  return true;
}

// native_group_norm(x, weight, bias, N, C, HxW, group, eps)
Result<bool> Rewriter::group_norm() {
  const Value* x = tensor(0, "input");
  auto groups = number(argument(node_, 6, "group")), eps = number(argument(node_, 7, "eps"));
  if (!x || x->shape.size() < 2 || !groups || !eps) return refuse("its arguments");
  auto g = int64_t(*groups);
  if (g < 1 || x->shape[1] % g != 0) return refuse("channels that do not make whole groups");
  int64_t pixels = 1;
  for (size_t i = 2; i < x->shape.size(); ++i) pixels *= x->shape[i];
  std::string seen = write_.view("groups", x->name, {x->shape[0], g, x->shape[1] / g, pixels});
  out_.extents[seen][1] = expression(task_, "num_groups", g);
  std::string normal = write_.standardized(seen, {2, 3}, *eps);
  write_.scaled(write_.view("channels", normal, x->shape), argument(node_, 1, "weight"),
                argument(node_, 2, "bias"), 1);
  return true;
}

// convolution(x, weight, bias, ...): the bias becomes pointwise work.
Result<bool> Rewriter::convolution() {
  if (argument(node_, 2, "bias").is_null()) return false;
  const Value* bias = tensor(2, "bias");
  const Value& result = node_.outputs[0];
  if (!bias || bias->shape.size() != 1 || result.shape.size() < 3) return refuse("its bias");
  std::vector<Json> args = node_.args;
  if (args.size() <= 2) return refuse("its bias is not a positional argument");
  args[2] = nullptr;
  std::string window = write_.add("window", node_.op, std::move(args), result.shape);
  out_.graph.nodes.back().outputs[0].dtype = result.dtype;
  out_.graph.nodes.back().kwargs = node_.kwargs;
  write_.scaled(window, nullptr, argument(node_, 2, "bias"), 1);
  return true;
}

// Mish written out: tanh(softplus(x)) has a form with one exponential.
bool Rewriter::tanh_of_softplus() {
  const auto name = reference(argument(node_, 0, "self"));
  const Node* softplus = name ? graph_.producer(*name) : nullptr;
  if (!softplus || softplus->op.rfind("aten.softplus.", 0) != 0) return false;
  const auto x = reference(argument(*softplus, 0, "self"));
  const double beta = number(argument(*softplus, 1, "beta")).value_or(1),
               threshold = number(argument(*softplus, 2, "threshold")).value_or(20);
  if (!x || beta != 1 || threshold != 20) return false;
  write_.add("mish", "aten.tanh_softplus.default", {tensor_ref(*x)}, node_.outputs[0].shape,
             node_.outputs[0].name);
  return true;
}

// channel_shuffle(x, g): the channels of g groups take turns.
Result<bool> Rewriter::channel_shuffle() {
  const Value* x = tensor(0, "self");
  const auto groups = number(argument(node_, 1, "groups"));
  if (!x || !groups || x->shape.size() < 2) return refuse("its arguments");
  const auto g = int64_t(*groups), each = x->shape[1] / g;
  Shape split{x->shape[0], g, each}, turned{x->shape[0], each, g};
  std::vector<size_t> order{0, 2, 1};
  for (size_t i = 2; i < x->shape.size(); ++i) {
    split.push_back(x->shape[i]), turned.push_back(x->shape[i]);
    order.push_back(i + 1);
  }
  const std::string seen = write_.view("groups", x->name, split);
  const std::string swapped =
      write_.add("turned", "aten.permute.default", {tensor_ref(seen), Json(order)}, turned);
  out_.extents[swapped][2] = std::to_string(g);
  write_.view("shuffled", swapped, x->shape, node_.outputs[0].name);
  return true;
}

// pixel_shuffle(x, r) moves blocks of r x r channels into the image; pixel_unshuffle moves them
// back.
Result<bool> Rewriter::shuffle(bool up) {
  const Value* x = tensor(0, "self");
  const auto factor = number(argument(node_, 1, up ? "upscale_factor" : "downscale_factor"));
  if (!x || !factor || x->shape.size() < 3) return refuse("its arguments");
  const auto r = int64_t(*factor);
  const Shape& small = up ? x->shape : node_.outputs[0].shape;  // with the channels of the blocks
  const size_t channels = small.size() - 3;
  Shape split(small.begin(), small.begin() + long(channels)), moved = split;
  const int64_t c = small[channels] / (r * r), h = small[channels + 1], w = small[channels + 2];
  const Shape blocks{c, r, r, h, w}, image{c, h, r, w, r};
  split.insert(split.end(), up ? blocks.begin() : image.begin(), up ? blocks.end() : image.end());
  moved.insert(moved.end(), up ? image.begin() : blocks.begin(), up ? image.end() : blocks.end());
  std::vector<size_t> order(split.size());
  for (size_t i = 0; i < channels; ++i) order[i] = i;
  const Shape to = up ? Shape{0, 3, 1, 4, 2} : Shape{0, 2, 4, 1, 3};
  for (size_t i = 0; i < to.size(); ++i) order[channels + i] = channels + size_t(to[i]);
  const std::string seen = write_.view("blocks", x->name, split);
  const std::string turned =
      write_.add("turned", "aten.permute.default", {tensor_ref(seen), Json(order)}, moved);
  for (size_t axis : up ? std::array<size_t, 2>{2, 4} : std::array<size_t, 2>{1, 2})
    out_.extents[turned][channels + axis] = std::to_string(r);
  write_.view("shuffled", turned, node_.outputs[0].shape, node_.outputs[0].name);
  return true;
}

// max(x, dim, keepdim): values and positions.
Result<bool> Rewriter::max_with_index(const std::string& base) {
  const Value* x = tensor(0, "self");
  if (!x) return refuse("its input is not a tensor of the graph");
  Json dim = argument(node_, 1, "dim"), keep = argument(node_, 2, "keepdim");
  const Value &value = node_.outputs[0], &index = node_.outputs[1];
  write_.add("value", base == "max" ? "aten.amax.default" : "aten.amin.default",
             {tensor_ref(x->name), Json::array({dim}), keep}, value.shape, value.name);
  write_.add("index", base == "max" ? "aten.argmax.default" : "aten.argmin.default",
             {tensor_ref(x->name), dim, keep}, index.shape, index.name);
  return true;
}

Result<bool> Rewriter::variance_and_mean(const std::string& base) {
  const Value* x = tensor(0, "self");
  if (!x) return refuse("its input is not a tensor of the graph");
  Json dim = argument(node_, 1, "dim"), correction = argument(node_, 2, "correction"),
       keep = argument(node_, 3, "keepdim");
  const Value &spread = node_.outputs[0], &mean = node_.outputs[1];
  write_.add("spread", base == "var_mean" ? "aten.var.correction" : "aten.std.correction",
             {tensor_ref(x->name), dim, correction, keep}, spread.shape, spread.name);
  write_.add("mean", "aten.mean.dim", {tensor_ref(x->name), dim, keep}, mean.shape, mean.name);
  return true;
}

}  // namespace

Result<Decomposed> decompose(const Graph& graph, const Task& task) {
  Decomposed out;
  out.graph.placeholders = graph.placeholders;
  out.graph.outputs = graph.outputs;
  for (const Node& node : graph.nodes) {
    CG_TRY(bool replaced, Rewriter(out, graph, task, node).run());
    if (!replaced) out.graph.nodes.push_back(node);
  }
  return out;
}

}  // namespace cutegen::recipes
