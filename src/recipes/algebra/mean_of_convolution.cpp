// SPDX-License-Identifier: Apache-2.0
// mean(conv(x, w)) over all positions = products of sums of x and sums of w: each filter tap meets
// the same range of inputs for every output channel. Taps with the same range form a class.
//
// Numerical condition: float32 sums that carry their rounding errors are at least as accurate as
// the convolution's sums. With an infinite input, both means are infinite or undefined.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "recipes/algebra/linear.h"
#include "recipes/algebra/rules.h"
#include "recipes/graph/decompose.h"
#include "recipes/graph/pointwise.h"
#include "recipes/graph/reductions.h"
#include "recipes/spatial/windows.h"

namespace cutegen::recipes {
namespace {

constexpr size_t kMostClasses = 9;  // each adds two sums to one kernel

// One axis of a class: how many inputs at its start (`low`) and end (`high`) the class's taps do
// not read, and the first and last tap.
struct Range {
  int64_t low = 0, high = 0;
  int64_t first = 0, last = 0;
};
using Class = std::vector<Range>;  // one for each axis

int64_t missing(int64_t inputs, int64_t stride) {
  return inputs <= 0 ? 0 : (inputs + stride - 1) / stride;
}

std::vector<Range> ranges_of(const Window& w, size_t axis) {
  const int64_t pad = w.padding[axis], step = w.dilation[axis], kernel = w.kernel[axis];
  std::vector<Range> list;
  for (int64_t r = 0; r < kernel; ++r) {
    const int64_t before = r * step, after = (kernel - 1 - r) * step;
    Range range{.low = std::max<int64_t>(0, before - pad),
                .high = std::max<int64_t>(0, after - pad),
                .first = r,
                .last = r};
    if (w.kind == WindowKind::transposed) {
      range.low = missing(pad - before, w.stride[axis]);
      range.high = missing(pad - w.output_padding[axis] - after, w.stride[axis]);
    }
    if (!list.empty() && list.back().low == range.low && list.back().high == range.high)
      list.back().last = r;
    else
      list.push_back(range);
  }
  return list;
}

std::vector<Class> classes_of(const Window& w) {
  std::vector<Class> classes{{}};
  for (size_t axis = 0; axis < w.rank(); ++axis) {
    std::vector<Class> longer;
    for (const Class& known : classes)
      for (const Range& range : ranges_of(w, axis)) {
        longer.push_back(known);
        longer.back().push_back(range);
      }
    classes = std::move(longer);
  }
  return classes;
}

// A tensor with zeros outside the class's inputs, or outside its filter taps.
std::string inside(Editor& edit, const std::string& tensor, const std::vector<int64_t>& low,
                   const std::vector<int64_t>& high) {
  auto none = [](const std::vector<int64_t>& list) {
    return std::all_of(list.begin(), list.end(), [](int64_t n) { return n == 0; });
  };
  if (none(low) && none(high)) return tensor;
  return edit.add("inside", kInside, {value_ref(tensor), Json(low), Json(high)},
                  edit.shape(tensor));
}

std::vector<int> spatial(size_t rank) {
  std::vector<int> axes;
  axes.reserve(rank);
  for (size_t axis = 0; axis < rank; ++axis) axes.push_back(int(axis) + 2);
  return axes;
}

std::string seen(Editor& edit, const std::string& value, const Shape& shape) {
  return edit.add("seen", "aten.view.default", {value_ref(value), Json(shape)}, shape);
}

// Returns the number of inputs divided by the number of results.
std::string inputs_per_result(Editor& edit, const Window& w) {
  auto with_size = [&](const std::string& from, const char* op, size_t axis) {
    const int64_t size = edit.shape(w.input)[axis + 2];
    return edit.add_sized("places", op, {value_ref(from), size}, {},
                          {SizeArgument{.index = 1, .tensor = w.input, .dim = int(axis) + 2}});
  };
  std::string ratio = edit.add("one", "aten.full.default", {Json(Shape{}), 1.0}, {});
  for (size_t axis = 0; axis < w.rank(); ++axis) {
    const int64_t wide = w.dilation[axis] * (w.kernel[axis] - 1), pad = 2 * w.padding[axis];
    const bool transposed = w.kind == WindowKind::transposed;
    std::string results = edit.add("one", "aten.full.default", {Json(Shape{}), 1.0}, {});
    results = with_size(results, "aten.mul.Tensor", axis);
    if (transposed && w.stride[axis] != 1)
      results = edit.add("places", "aten.mul.Tensor", {value_ref(results), w.stride[axis]}, {});
    const int64_t more =
        transposed ? wide + 1 + w.output_padding[axis] - pad - w.stride[axis] : pad - wide;
    results = edit.add("places", "aten.add.Tensor", {value_ref(results), more}, {});
    ratio = with_size(ratio, "aten.mul.Tensor", axis);
    ratio = edit.add("ratio", "aten.div.Tensor", {value_ref(ratio), value_ref(results)}, {});
  }
  return ratio;
}

// Returns the axis of the input channels in the products, which have the axes [batch, out, in]. In
// a transposed convolution they have [batch, in, out], because its weights have [in, out].
int input_axis(const Window& w) {
  return w.kind == WindowKind::transposed ? 1 : 2;
}

// The means of one class's inputs, with the input channels along input_axis().
std::string means_of(Editor& edit, const Window& w, const Class& places) {
  std::vector<int64_t> low, high;
  for (const Range& range : places) low.push_back(range.low), high.push_back(range.high);
  const Shape& x = edit.shape(w.input);
  Shape kept(x.size(), 1);
  kept[0] = x[0], kept[1] = x[1];
  const std::string means =
      edit.add("mean", "aten.mean.dim",
               {value_ref(inside(edit, w.input, low, high)), Json(spatial(w.rank())), true}, kept);
  Shape shape{kept[0], 1, 1};
  shape[size_t(input_axis(w))] = kept[1];
  return seen(edit, means, shape);
}

// The sums of the weights of one class's taps, with one element for the batch.
std::string weights_of(const LinearSum& sum, const Window& w, const Class& places,
                       const Factors& factors) {
  Editor& edit = sum.edit();
  std::vector<int64_t> first, last;
  for (size_t axis = 0; axis < w.rank(); ++axis) {
    first.push_back(places[axis].first);
    last.push_back(w.kernel[axis] - 1 - places[axis].last);
  }
  const Shape& weight = edit.shape(w.weight);
  Shape kept(weight.size(), 1);
  kept[0] = weight[0], kept[1] = weight[1];
  std::string sums = edit.add(
      "sum", "aten.sum.dim_IntList",
      {value_ref(inside(edit, w.weight, first, last)), Json(spatial(w.rank())), true}, kept);
  return seen(edit, sum.times(sums, factors), {1, kept[0], kept[1]});
}

// Multiplies each class's means by its sums of weights, and adds the products over all classes and
// input channels: one value for each image and channel of the result.
std::string products_of(const LinearSum& sum, const Window& w, const std::vector<Class>& classes,
                        const Factors& factors) {
  Editor& edit = sum.edit();
  std::vector<std::string> means, weights;
  for (const Class& places : classes) means.push_back(means_of(edit, w, places));
  for (const Class& places : classes) weights.push_back(weights_of(sum, w, places, factors));
  const Shape weight = edit.shape(weights[0]);
  Shape shape{edit.shape(means[0])[0], weight[1], weight[2]};
  std::string terms;
  for (size_t i = 0; i < classes.size(); ++i) {
    const std::string next =
        edit.add("terms", "aten.mul.Tensor", {value_ref(means[i]), value_ref(weights[i])}, shape);
    terms = i == 0
                ? next
                : edit.add("terms", "aten.add.Tensor", {value_ref(terms), value_ref(next)}, shape);
  }
  const int axis = input_axis(w);
  shape[size_t(axis)] = 1;
  return edit.add("total", "aten.sum.dim_IntList", {value_ref(terms), Json::array({axis}), true},
                  shape);
}

std::optional<Window> covered(const Editor& edit, const Node& node, const std::vector<int>& axes) {
  auto found = find_window(edit.graph(), node);
  if (!found || !*found || (*found)->pools()) return std::nullopt;
  const Window& w = **found;
  const bool plain = w.kind == WindowKind::convolution;
  const bool steps =
      std::any_of(w.stride.begin(), w.stride.end(), [](int64_t s) { return s != 1; });
  // A plan knows the sizes of the task's tensors only.
  const bool tensors = edit.task().find(w.input) && edit.task().find(w.weight);
  if (w.groups != 1 || (plain && steps) || !tensors || axes != spatial(w.rank()))
    return std::nullopt;
  return w;
}

std::optional<std::string> convolution_base(const LinearSum& sum, const Node& node,
                                            const std::vector<int>& axes, const Factors& factors) {
  if (base_name(node.op) != "convolution") return std::nullopt;
  Editor& edit = sum.edit();
  auto window = covered(edit, node, axes);
  if (!window) return std::nullopt;
  const std::vector<Class> classes = classes_of(*window);
  if (classes.size() > kMostClasses) return std::nullopt;
  const Shape& shape = node.outputs.front().shape;
  std::string total = products_of(sum, *window, classes, factors);
  const std::string ratio = inputs_per_result(edit, *window);
  total =
      edit.add("mean", "aten.mul.Tensor", {value_ref(total), value_ref(ratio)}, edit.shape(total));
  Shape kept(shape.size(), 1), channels(shape.size(), 1);
  kept[0] = shape[0], kept[1] = channels[1] = shape[1];
  total = seen(edit, total, kept);
  for (size_t axis = 0; axis < window->rank(); ++axis) edit.require_size(window->weight, axis + 2);
  auto bias = reference(argument(node, 2, "bias"));
  if (!bias) return total;
  const std::string shift = sum.times(
      edit.add("bias", "aten.view.default", {value_ref(*bias), Json(channels)}, channels), factors);
  return edit.add("biased", "aten.add.Tensor", {value_ref(total), value_ref(shift)}, kept);
}

}  // namespace

Effect mean_of_convolution(Editor& edit) {
  for (const Node& node : edit.graph().nodes) {
    auto r = find_reduction(edit.graph(), node);
    if (!r || !*r || (*r)->base != "mean" || node.outputs.size() != 1) continue;
    const Reduction& reduction = **r;
    auto found = LinearSum(edit, true, convolution_base).of(reduction.input, reduction.axes);
    if (!found) {
      edit.discard();
      continue;
    }
    int64_t results = 1;
    for (int axis : reduction.axes) results *= reduction.shape[size_t(axis)];
    edit.replace(node.id, *found);
    return fmt::format(
        "the mean over {} positions of a convolution becomes means of its input times sums of its "
        "weights",
        results);
  }
  return std::nullopt;
}

}  // namespace cutegen::recipes
