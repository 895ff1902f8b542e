// SPDX-License-Identifier: Apache-2.0
// Operators that only move elements: diagonals, sliding windows, turned images.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "recipes/composites/expansion.h"

namespace cutegen::recipes {
namespace {

// An axis of cutegen.affine's operand that follows axis `to` of the result.
Json along(size_t to) {
  return {{{to, 1}}, 0};
}

// diagonal(x, offset, dim1, dim2): the diagonal becomes the last axis.
std::optional<std::string> diagonal_of(Expansion& e, const Value& x, int64_t offset, size_t first,
                                       size_t second, const std::string& name) {
  if (first == second) return std::nullopt;
  Json axes = Json::array(), sizes = Json::array();
  Shape shape;
  for (size_t i = 0; i < x.shape.size(); ++i) {
    axes.push_back(along(shape.size()));
    if (i == first || i == second) continue;
    shape.push_back(x.shape[i]);
    sizes.push_back("");
  }
  const int64_t down = std::max<int64_t>(0, -offset), right = std::max<int64_t>(0, offset);
  shape.push_back(std::max<int64_t>(0, std::min(x.shape[first] - down, x.shape[second] - right)));
  sizes.push_back(fmt::format("min(@{}-{},@{}-{})", first, down, second, right));
  axes[first] = {{{shape.size() - 1, 1}}, down};
  axes[second] = {{{shape.size() - 1, 1}}, right};
  const std::string made =
      e.write("diagonal", kAffine, {tensor_ref(x.name), axes, sizes, nullptr}, shape, name);
  return name.empty() ? e.as(x.dtype, made) : made;
}

bool diagonal(Expansion& e) {
  const Value* x = e.input(0);
  const auto first = e.axis(2, x), second = e.axis(3, x);
  if (!first || !second) return false;
  return diagonal_of(e, *x, int64_t(e.number_at(1).value_or(0)), *first, *second, e.result().name)
      .has_value();
}

bool trace(Expansion& e) {
  const Value* x = e.input(0);
  if (!x || x->shape.size() != 2) return false;
  const auto elements = diagonal_of(e, *x, 0, 0, 1, "");
  e.write("sum", "aten.sum.default", {tensor_ref(*elements)}, {}, e.result().name);
  return true;
}

// diag_embed(x, offset, dim1, dim2): a matrix with x on a diagonal, along the last two axes.
bool diag_embed(Expansion& e) {
  const Value* x = e.input(0);
  const int64_t offset = int64_t(e.number_at(1).value_or(0));
  const size_t rank = e.result().shape.size();
  // Keep the matrix for a product, because a product with a diagonal matrix becomes pointwise work.
  if (std::any_of(e.graph.nodes.begin(), e.graph.nodes.end(), [&](const Node& reader) {
        const std::string base = base_name(reader.op);
        return (base == "mm" || base == "bmm") && (reference(reader.args[0]) == e.result().name ||
                                                   reference(reader.args[1]) == e.result().name);
      }))
    return false;
  if (!x || offset != 0 || e.axis(2, rank) != rank - 2 || e.axis(3, rank) != rank - 1) return false;
  const size_t last = x->shape.size() - 1;
  const int64_t n = x->shape[last];
  const std::string column = e.counting(*x, last);
  const std::string row = e.as(DType::i64, e.view(e.counting(*x, last), {n, 1}));
  const std::string same =
      e.map("eq.Tensor", {tensor_ref(column), tensor_ref(row)}, {n, n}, DType::boolean);
  Shape rows = x->shape;
  rows.insert(rows.end() - 1, 1);
  const std::string wide =
      e.as(x->dtype, e.write("rows", "aten.unsqueeze.default", {tensor_ref(x->name), -2}, rows));
  e.write("matrix", "aten.where.ScalarOther", {tensor_ref(same), tensor_ref(wide), 0},
          e.result().shape, e.result().name);
  return true;
}

// One of several axes along which windows slide.
struct Frames {
  int64_t size = 1, stride = 1, padding = 0, dilation = 1;
  int64_t count(int64_t length) const {
    return (length + 2 * padding - dilation * (size - 1) - 1) / stride + 1;
  }
  // The same as an expression of the axis' size.
  std::string count_text(size_t axis) const {
    const int64_t less = dilation * (size - 1) + 1 - 2 * padding;
    const std::string whole = fmt::format("(@{}-({}))", axis, less);
    return stride == 1 ? fmt::format("({}+1)", whole) : fmt::format("({}/{}+1)", whole, stride);
  }
  Json axis(size_t position, size_t within) const {
    return {{{position, stride}, {within, dilation}}, -padding};
  }
};

// x.unfold(dim, size, step): windows become a new last axis.
bool unfold(Expansion& e) {
  const Value* x = e.input(0);
  const auto dim = e.axis(1, x);
  const auto size = e.number_at(2), step = e.number_at(3);
  if (!dim || !size || !step || *size < 1) return false;
  const Frames frames{.size = int64_t(*size), .stride = int64_t(*step)};
  Json axes = Json::array(), sizes = Json::array();
  for (size_t i = 0; i < x->shape.size(); ++i) {
    axes.push_back(i == *dim ? frames.axis(i, x->shape.size()) : along(i));
    sizes.push_back(i == *dim ? frames.count_text(i) : "");
  }
  sizes.push_back(std::to_string(frames.size));
  e.write("frames", kAffine, {tensor_ref(x->name), axes, sizes, nullptr}, e.result().shape,
          e.result().name);
  return true;
}

struct Grid {
  Frames down, right;
};

// Arguments from `at` on: kernel, dilation, padding, stride, for two axes each.
std::optional<Grid> grid_of(const Expansion& e, size_t at) {
  std::vector<std::vector<int64_t>> lists;
  for (size_t i = 0; i < 4; ++i) {
    lists.push_back(e.numbers(at + i, 2));
    if (lists.back().empty()) return std::nullopt;
  }
  const auto frames = [&](size_t k) {
    return Frames{.size = lists[0][k],
                  .stride = lists[3][k],
                  .padding = lists[2][k],
                  .dilation = lists[1][k]};
  };
  return Grid{.down = frames(0), .right = frames(1)};
}

// im2col(x, kernel, dilation, padding, stride): [n, c, h, w] -> [n, c * kernel, windows]
bool columns(Expansion& e) {
  const Value* x = e.input(0);
  const auto grid = grid_of(e, 1);
  if (!x || x->shape.size() != 4 || !grid) return false;
  const auto& [down, right] = *grid;
  const int64_t rows = down.count(x->shape[2]), wide = right.count(x->shape[3]);
  const Shape shape{x->shape[0], x->shape[1], down.size, right.size, rows, wide};
  const Json axes = Json::array({along(0), along(1), down.axis(4, 2), right.axis(5, 3)}),
             sizes{"",
                   "",
                   std::to_string(down.size),
                   std::to_string(right.size),
                   down.count_text(2),
                   right.count_text(3)};
  const bool pads = down.padding > 0 || right.padding > 0;
  const std::string frames =
      e.as(x->dtype, e.write("frames", kAffine,
                             {tensor_ref(x->name), axes, sizes, pads ? Json(0) : Json()}, shape));
  return e.finish(frames);
}

// col2im(x, size, kernel, dilation, padding, stride) if windows lie side by side: blocks of the
// image.
bool image(Expansion& e) {
  const Value* x = e.input(0);
  const auto size = e.numbers(1, 2);
  const auto grid = grid_of(e, 2);
  if (!x || x->shape.size() != 3 || size.empty() || !grid) return false;
  const auto& [down, right] = *grid;
  const auto beside = [](const Frames& f, int64_t length) {
    return f.stride == f.size && f.padding == 0 && f.dilation == 1 && length % f.size == 0;
  };
  if (!beside(down, size[0]) || !beside(right, size[1])) return false;
  const int64_t n = x->shape[0], channels = x->shape[1] / (down.size * right.size),
                rows = size[0] / down.size, wide = size[1] / right.size;
  const std::string blocks =
      e.as(x->dtype, e.view(x->name, {n, channels, down.size, right.size, rows, wide}));
  const std::string turned =
      e.as(x->dtype,
           e.write("turned", "aten.permute.default", {tensor_ref(blocks), Json{0, 1, 4, 2, 5, 3}},
                   {n, channels, rows, down.size, wide, right.size}));
  return e.finish(turned);
}

// _pad_circular(x, pad): along each axis, the first elements follow the last one.
bool circular(Expansion& e) {
  const Value* x = e.input(0);
  const Json pads = e.arg(1);
  if (!x || !pads.is_array() || pads.size() % 2 != 0 || pads.size() / 2 > x->shape.size())
    return false;
  std::string now = x->name;
  Shape shape = x->shape;
  for (size_t i = 0; i < pads.size(); i += 2) {
    const auto before = pads[i].get<int64_t>(), after = pads[i + 1].get<int64_t>();
    if (before == 0 && after == 0) continue;
    const size_t dim = x->shape.size() - 1 - i / 2;
    shape[dim] += before + after;
    now = e.as(x->dtype, e.write("padded", kShift,
                                 {tensor_ref(now), int64_t(dim), "modulo", std::to_string(-before),
                                  false, nullptr, before, after},
                                 shape));
  }
  return e.finish(now);
}

// rot90(x, k, dims)
bool turned(Expansion& e) {
  const Value* x = e.input(0);
  const auto dims = e.numbers(2, 2);
  const auto times = e.number_at(1);
  if (!x || dims.empty() || !times) return false;
  const int64_t k = ((int64_t(*times) % 4) + 4) % 4;
  if (k == 0) return e.finish(x->name);
  const Json flipped = k == 1   ? Json::array({dims[1]})
                       : k == 2 ? Json::array({dims[0], dims[1]})
                                : Json::array({dims[0]});
  const std::string flip =
      e.as(x->dtype, e.write("flip", "aten.flip.default", {tensor_ref(x->name), flipped}, x->shape,
                             k == 2 ? e.result().name : ""));
  if (k != 2)
    e.write("turned", "aten.transpose.int", {tensor_ref(flip), dims[0], dims[1]}, e.result().shape,
            e.result().name);
  return true;
}

// copy(x, source) and fill(x, number in a tensor): the source with the shape and dtype of x
bool copy(Expansion& e) {
  const Value* from = e.input(1);
  if (!from) return false;
  std::string now = from->name;
  if (from->dtype != e.result().dtype)
    now = e.as(e.result().dtype,
               e.write("converted", "aten._to_copy.default", {tensor_ref(now)}, from->shape));
  e.write("copy", "aten.expand.default", {tensor_ref(now), Json(e.result().shape)},
          e.result().shape, e.result().name);
  return true;
}

// as_strided(mean, size, stride): PyTorch's adaptive average pooling to one element sets the
// strides of its mean. Only strides of axes with one element may change, so no element moves.
bool same_strides(Expansion& e) {
  const Value* x = e.input(0);
  const Node* producer = x ? e.graph.producer(x->name) : nullptr;
  if (!producer || base_name(producer->op) != "mean" || x->shape != e.result().shape) return false;
  const Json strides = argument(e.node, 2, "stride"),
             offset = argument(e.node, 3, "storage_offset");
  if (strides.size() != x->shape.size() || !(offset.is_null() || offset == 0)) return false;
  int64_t step = 1;
  for (size_t i = x->shape.size(); i-- > 0; step *= x->shape[i])
    if (x->shape[i] != 1 && strides[i] != step) return false;
  e.write("same", "aten.alias.default", {tensor_ref(x->name)}, x->shape, e.result().name);
  return true;
}

// linspace(start, end, steps)
bool linspace(Expansion& e) {
  const auto start = e.number_at(0), end = e.number_at(1), steps = e.number_at(2);
  if (!start || !end || !steps || *steps < 2 || !is_floating(e.result().dtype)) return false;
  e.write("counting", kCounting, {*start, (*end - *start) / (*steps - 1)}, e.result().shape,
          e.result().name);
  return true;
}

// hann_window(n, periodic): 0.5 - 0.5 cos(2 pi i / n)
bool hann(Expansion& e) {
  const auto n = e.number_at(0);
  const bool periodic = e.arg(1) != false;
  if (!n || *n < 2 || e.result().dtype != DType::f32) return false;
  constexpr double kPi = 3.14159265358979323846;
  const Shape& shape = e.result().shape;
  const std::string angle =
      e.write("angle", kCounting, {0.0, 2 * kPi / (periodic ? *n : *n - 1)}, shape);
  const std::string wave = e.map("cos.default", {tensor_ref(angle)}, shape);
  const std::string half = e.map("mul.Scalar", {tensor_ref(wave), -0.5}, shape);
  e.write("window", "aten.add.Scalar", {tensor_ref(half), 0.5}, shape, e.result().name);
  return true;
}

// rrelu_with_noise(x, noise, lower, upper, training) in eval mode
bool rrelu(Expansion& e) {
  const Value* x = e.input(0);
  const auto lower = e.number_at(2), upper = e.number_at(3);
  if (!x || !lower || !upper || e.arg(4) == true) return false;
  e.write("leaky", "aten.leaky_relu.default", {tensor_ref(x->name), (*lower + *upper) / 2},
          x->shape, e.result().name);
  return true;
}

}  // namespace

Rule move_rule(const std::string& base) {
  static const std::map<std::string, Rule> rules{{"diagonal", diagonal},
                                                 {"diagonal_copy", diagonal},
                                                 {"trace", trace},
                                                 {"diag_embed", diag_embed},
                                                 {"unfold", unfold},
                                                 {"im2col", columns},
                                                 {"col2im", image},
                                                 {"_pad_circular", circular},
                                                 {"rot90", turned},
                                                 {"copy", copy},
                                                 {"fill", copy},
                                                 {"hann_window", hann},
                                                 {"rrelu_with_noise", rrelu},
                                                 {"as_strided", same_strides},
                                                 {"linspace", linspace}};
  const auto rule = rules.find(base);
  return rule == rules.end() ? nullptr : rule->second;
}

}  // namespace cutegen::recipes
