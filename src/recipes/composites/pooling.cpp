// SPDX-License-Identifier: Apache-2.0
// Operators that reduce or interpolate elements which they choose: the positions of max pooling,
// bags of embeddings, sampling at a grid.
#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "recipes/composites/expansion.h"

namespace cutegen::recipes {
namespace {

std::string count_text(size_t axis, int64_t size, int64_t stride, int64_t padding,
                       int64_t dilation) {
  return "((@" + std::to_string(axis) + "-(" +
         std::to_string(dilation * (size - 1) + 1 - 2 * padding) + "))/" + std::to_string(stride) +
         "+1)";
}

// What a max pooling reads: the windows of each result along new axes.
struct Windows {
  std::string frames;
  std::vector<int64_t> size, stride, padding, dilation;
  Shape shape;
};

std::optional<Windows> windows_of(Expansion& e, const Value& x, size_t rank) {
  Windows w{.frames = "",
            .size = e.numbers(1, rank),
            .stride = e.numbers(2, rank),
            .padding = e.numbers(3, rank),
            .dilation = e.numbers(4, rank),
            .shape = e.result().shape};
  if (w.stride.empty() && e.arg(2) == Json::array()) w.stride = w.size;
  const bool known = !w.size.empty() && !w.stride.empty() && !w.padding.empty() &&
                     !w.dilation.empty() && e.arg(5) != true && x.shape.size() > rank;
  if (!known) return std::nullopt;
  const size_t first = x.shape.size() - rank;
  Json axes = Json::array(), sizes = Json::array();
  for (size_t i = 0; i < x.shape.size(); ++i) {
    if (i < first) {
      axes.push_back(Json{Json::array({Json{i, 1}}), 0});
      sizes.push_back("");
      continue;
    }
    const size_t k = i - first;
    axes.push_back(
        Json{Json::array({Json{i, w.stride[k]}, Json{x.shape.size() + k, w.dilation[k]}}),
             -w.padding[k]});
    sizes.push_back(count_text(i, w.size[k], w.stride[k], w.padding[k], w.dilation[k]));
  }
  for (int64_t size : w.size) {
    w.shape.push_back(size);
    sizes.push_back(std::to_string(size));
  }
  w.frames =
      e.as(x.dtype, e.write("frames", kAffine,
                            {tensor_ref(x.name), axes, sizes, Json{{"float", "-inf"}}}, w.shape));
  return w;
}

// Pooling of one image without a batch, as a batch of one.
bool single_image(Expansion& e, const std::string& base, size_t rank) {
  const Value* x = e.input(0);
  if (!x || x->shape.size() != rank + 1 || e.is_read(1) || !e.node.kwargs.empty()) return false;
  Shape in = x->shape, out = e.result().shape;
  in.insert(in.begin(), 1);
  out.insert(out.begin(), 1);
  std::vector<Json> args(e.node.args.begin(), e.node.args.end());
  args[0] = tensor_ref(e.view(x->name, in));
  const std::string op = "aten." + base.substr(0, base.find("_with_indices")) + ".default";
  return e.finish(e.write("pooled", op, std::move(args), out));
}

// Whether a kernel that reads the value `name` can read slices instead, or an earlier kernel
// computes the value as a whole: pointwise work, sums and the like, products and convolutions. A
// norm would read copies of the slices.
bool takes_slices(const Graph& graph, const std::string& name) {
  static const std::set<std::string> kEnds{"convolution", "mm",  "addmm", "bmm",
                                           "mean",        "sum", "amax"};
  for (const Node& node : graph.nodes) {
    const auto reads = [&](const Json& argument) { return reference(argument) == name; };
    if (std::none_of(node.args.begin(), node.args.end(), reads) || node.outputs.empty()) continue;
    const std::string base = base_name(node.op), &result = node.outputs.front().name;
    if (kEnds.contains(base)) continue;
    if (base == "view" || base == "_unsafe_view") {
      const auto reads_view = [&](const Node& other) {
        return std::any_of(other.args.begin(), other.args.end(),
                           [&](const Json& argument) { return reference(argument) == result; });
      };
      for (const Node& other : graph.nodes)
        if (reads_view(other) && !base_name(other.op).ends_with("mm")) return false;
      continue;
    }
    auto pointwise = lower_pointwise(node);
    if (!pointwise || !*pointwise || !takes_slices(graph, result)) return false;
  }
  return true;
}

// Replaces max pooling by the maximum of slices x[..., 0::2, 0::2], x[..., 0::2, 1::2], ... if each
// element lies in exactly one window of at most four elements. A thread then reads and writes whole
// vectors, and other pointwise work needs no kernel of its own.
bool max_of_slices(Expansion& e, const Value& x, size_t rank) {
  constexpr int64_t kMostSlices = 4;
  const std::vector<int64_t> size = e.numbers(1, rank);
  const bool steps = e.arg(2) == Json::array() || e.numbers(2, rank) == size;
  const auto all = [&](size_t index, int64_t number) {
    return e.arg(index).is_null() || e.numbers(index, rank) == std::vector<int64_t>(rank, number);
  };
  if (size.empty() || !steps || !all(3, 0) || !all(4, 1) || e.arg(5) == true ||
      x.shape.size() != rank + 2 || !takes_slices(e.graph, e.result().name))
    return false;
  int64_t count = 1;
  for (size_t k = 0; k < rank; ++k) {
    if (size[k] < 2 || size[k] > kMostSlices || x.shape[k + 2] % size[k] != 0) return false;
    count *= size[k];
  }
  if (count > kMostSlices) return false;
  std::vector<std::string> parts{x.name};
  Shape shape = x.shape;
  for (size_t k = 0; k < rank; ++k) {
    shape[k + 2] /= size[k];
    std::vector<std::string> finer;
    for (const std::string& part : parts)
      for (int64_t at = 0; at < size[k]; ++at)
        finer.push_back(
            e.as(x.dtype, e.write("slice", "aten.slice.Tensor",
                                  {tensor_ref(part), k + 2, at, INT64_MAX, size[k]}, shape)));
    parts = std::move(finer);
  }
  std::string highest = parts.front();
  for (size_t i = 1; i < parts.size(); ++i) {
    const std::string name = i + 1 == parts.size() ? e.result().name : "";
    highest = e.as(x.dtype, e.write("highest", "aten.maximum.default",
                                    {tensor_ref(highest), tensor_ref(parts[i])}, shape, name));
  }
  return true;
}

// Writes where each window begins along axis `first` + k of the input, and returns the value's
// name.
std::string window_starts(Expansion& e, const Windows& w, size_t first, size_t k) {
  const Shape& shape = e.result().shape;
  const std::string start = e.as(
      DType::i64,
      e.write("start", kCounting, {-w.padding[k], w.stride[k], kAnyCount}, {shape[first + k]}));
  Shape thin(shape.size(), 1);
  thin[first + k] = shape[first + k];
  return e.as(DType::i64, e.view(start, thin));
}

// max_poolNd_with_indices(x, kernel, stride, padding, dilation, ceil_mode). The indices count
// within an image.
bool max_pool(Expansion& e) {
  const size_t rank = base_name(e.node.op).find("2d") != std::string::npos ? 2 : 3;
  const Value* x = e.input(0);
  if (!x) return false;
  if (!e.is_read(1))
    return max_of_slices(e, *x, rank) || single_image(e, base_name(e.node.op), rank);
  const auto w = windows_of(e, *x, rank);
  if (!w) return false;
  const Shape& shape = e.result().shape;
  const size_t first = x->shape.size() - rank;
  Json within = Json::array();
  for (size_t k = 0; k < rank; ++k) within.push_back(x->shape.size() + k);
  if (e.is_read(0))
    e.write("highest", "aten.amax.default", {tensor_ref(w->frames), within, false}, shape,
            e.result().name);
  std::string rest = e.as(DType::i64, e.write("place", "aten.argmax.default",
                                              {tensor_ref(w->frames), within, false}, shape));
  const auto map = [&](const std::string& op, Json a, Json b) {
    return e.map(op, {std::move(a), std::move(b)}, shape, DType::i64);
  };
  // The place along each axis, the last one first.
  std::vector<std::string> places(rank);
  for (size_t k = rank; k-- > 0;) {
    std::string at = rest;
    if (k > 0) {
      at = map("remainder.Scalar", tensor_ref(rest), w->size[k]);
      rest = map("floor_divide.default", tensor_ref(rest), w->size[k]);
    }
    if (w->dilation[k] != 1) at = map("mul.Scalar", tensor_ref(at), w->dilation[k]);
    places[k] = map("add.Tensor", tensor_ref(at), tensor_ref(window_starts(e, *w, first, k)));
  }
  std::string index = places[0];
  for (size_t k = 1; k < rank; ++k) {
    index = map("mul.Tensor", tensor_ref(index), Expansion::size_of(*x, first + k));
    index = map("add.Tensor", tensor_ref(index), tensor_ref(places[k]));
  }
  e.write("index", "aten.view.default", {tensor_ref(index), Json(shape)}, shape, e.result(1).name);
  return true;
}

template <size_t kRank>
bool pool(Expansion& e) {
  return single_image(e, base_name(e.node.op), kRank);
}

// Windows of an average pooling that slide along one axis, one element at a time. The axis gets
// zeros before and behind it.
struct Sliding {
  std::string input;  // what the windows read, without the zeros
  size_t axis = 0;
  int64_t size = 1, before = 0, behind = 0, divisor = 1;
};

// If a constant_pad_nd only adds zeros along the axis of the windows, replaces `sliding.input` by
// the input of the constant_pad_nd and sets the numbers of zeros. Returns false if the average
// pooling pads, too.
bool take_zeros(const Expansion& e, Sliding& sliding) {
  const Node* pad = e.graph.producer(sliding.input);
  if (!pad || pad->op != "aten.constant_pad_nd.default") return true;
  const auto from = reference(argument(*pad, 0, "self"));
  const Value* input = from ? e.graph.find(*from) : nullptr;
  const Json pads = argument(*pad, 1, "pad"), fill = argument(*pad, 2, "value");
  if (!input || !pads.is_array() || !(fill.is_null() || number(fill) == 0.0)) return true;
  const size_t rank = input->shape.size();
  for (size_t i = 0; i < pads.size(); ++i) {
    if (!pads[i].is_number_integer() || pads[i] < 0) return true;
    if (pads[i] != 0 && rank - 1 - i / 2 != sliding.axis) return true;
  }
  const size_t at = 2 * (rank - 1 - sliding.axis);
  if (at + 1 >= pads.size()) return true;
  if (sliding.before + sliding.behind > 0) return false;  // padded twice
  sliding.before = pads[at].get<int64_t>(), sliding.behind = pads[at + 1].get<int64_t>();
  sliding.input = *from;
  return true;
}

// avg_poolNd(x, kernel, stride, padding, ceil_mode, count_include_pad, divisor_override)
std::optional<Sliding> sliding_of(const Expansion& e, size_t rank) {
  constexpr int64_t kMostElements = 16;  // of a window; a kernel reads each of them
  const Value* x = e.input(0);
  if (!x || x->shape.size() != rank + 2 || e.arg(4) == true) return std::nullopt;
  const std::vector<int64_t> size = e.numbers(1, rank), padding = e.numbers(3, rank);
  std::vector<int64_t> stride = e.numbers(2, rank);
  if (stride.empty() && e.arg(2) == Json::array()) stride = size;
  if (size.empty() || stride.empty()) return std::nullopt;
  Sliding sliding{.input = x->name};
  for (size_t i = 0; i < rank; ++i) {
    const int64_t zeros = padding.empty() ? 0 : padding[i];
    if (size[i] == 1 && stride[i] == 1 && zeros == 0) continue;
    // Windows along the last axis share lines in shared memory (kernels/windows/lines.cu).
    if (sliding.axis != 0 || i + 1 == rank || stride[i] != 1 || size[i] > kMostElements ||
        (zeros > 0 && e.arg(5) == false))
      return std::nullopt;
    sliding.axis = i + 2;
    sliding.size = size[i], sliding.before = sliding.behind = zeros;
  }
  sliding.divisor = e.arg(6).is_number_integer() ? e.arg(6).get<int64_t>() : sliding.size;
  if (sliding.axis == 0 || sliding.divisor == 0 || !take_zeros(e, sliding)) return std::nullopt;
  return sliding;
}

// Replaces `sliding.input` by the value before views that add axes of size 1, and `sliding.axis` by
// the axis of that value.
void skip_added_axes(const Expansion& e, Sliding& sliding) {
  while (const Node* view = e.graph.producer(sliding.input)) {
    const std::string base = base_name(view->op);
    const auto from = reference(argument(*view, 0, "self"));
    const Value *input = from ? e.graph.find(*from) : nullptr,
                *result = e.graph.find(sliding.input);
    if (!input || (base != "view" && base != "unsqueeze" && base != "reshape")) return;
    std::vector<size_t> places;  // of axes with several elements
    for (size_t i = 0; i < input->shape.size(); ++i)
      if (input->shape[i] != 1) places.push_back(i);
    size_t next = 0, axis = input->shape.size();
    for (size_t i = 0; i < result->shape.size(); ++i) {
      if (result->shape[i] == 1) continue;
      if (next == places.size() || input->shape[places[next]] != result->shape[i]) return;
      if (i == sliding.axis) axis = places[next];
      ++next;
    }
    if (next != places.size() || axis == input->shape.size()) return;
    sliding.axis = axis, sliding.input = *from;
  }
}

// Whether a kernel may compute the value again for each window that contains it: it follows from
// tensors, or from results that an earlier kernel stores, by a few cheap operators.
bool is_cheap(const Graph& graph, const std::string& name, int most = 4) {
  static const std::set<std::string> kCheap{"mul", "add",  "sub",   "neg",       "abs",     "relu",
                                            "pow", "view", "clone", "unsqueeze", "_to_copy"},
      kStored{"convolution", "mm", "addmm", "bmm", "linear"};
  const Node* node = graph.producer(name);
  if (!node || kStored.count(base_name(node->op))) return true;
  if (most == 0 || !kCheap.count(base_name(node->op))) return false;
  if (base_name(node->op) == "pow" && argument(*node, 1, "exponent") != 2) return false;
  return std::all_of(node->args.begin(), node->args.end(), [&](const Json& argument) {
    const auto from = reference(argument);
    return !from || is_cheap(graph, *from, most - 1);
  });
}

// An average pooling along one axis as a sum of shifted values. Pointwise work before and after it
// then needs no kernel of its own, as in a normalisation over neighbouring channels.
template <size_t kRank>
bool average(Expansion& e) {
  if (pool<kRank>(e)) return true;
  auto sliding = sliding_of(e, kRank);
  if (!sliding) return false;
  skip_added_axes(e, *sliding);
  const Value* x = e.graph.find(sliding->input);
  if (!x || x->shape[sliding->axis] < 2 || !is_cheap(e.graph, x->name)) return false;
  const auto dim = int64_t(sliding->axis);
  const int64_t more = sliding->before + sliding->behind + 1 - sliding->size;
  Shape shape = x->shape;
  shape[sliding->axis] += more;
  const std::string name = x->name;
  const DType dtype = x->dtype;
  std::string sum;
  for (int64_t i = 0; i < sliding->size; ++i) {
    const int64_t before = std::max<int64_t>(0, sliding->before - i),
                  after = std::max<int64_t>(0, sliding->behind + 1 - sliding->size + i);
    std::string term = name;
    if (more != 0 || i != sliding->before)
      term = e.as(dtype, e.write("shifted", kShift,
                                 {tensor_ref(name), dim, "fill",
                                  std::to_string(i - sliding->before), false, 0.0, before, after},
                                 shape));
    sum = sum.empty() ? term : e.map("add.Tensor", {tensor_ref(sum), tensor_ref(term)}, shape);
  }
  const double share = 1.0 / double(sliding->divisor);
  const std::string mean =
      e.as(e.result().dtype, e.map("mul.Scalar", {tensor_ref(sum), share}, shape));
  return e.finish(mean);
}

// The bags as rows of a matrix, if they follow one another and have one length.
const Value* bags_of(const Expansion& e, const std::string& indices, const std::string& offsets) {
  const Node* view = e.graph.producer(indices);
  const Node* start = e.graph.producer(offsets);
  while (start && base_name(start->op) == "detach")
    start = e.graph.producer(reference(start->args[0]).value_or(""));
  if (!view || !start || base_name(view->op) != "view" || base_name(start->op) != "arange")
    return nullptr;
  const Value* bags = e.graph.find(reference(view->args[0]).value_or(""));
  const bool rows = bags && bags->shape.size() == 2 && start->op == "aten.arange.start_step" &&
                    start->args[0] == 0 && start->args[2] == bags->shape[1];
  return rows ? bags : nullptr;
}

// _embedding_bag(weight, indices, offsets, scale, mode, sparse, weights of elements, last, padding)
bool embedding_bag(Expansion& e) {
  const Value *table = e.input(0), *indices = e.input(1), *offsets = e.input(2),
              *weights = e.input(6);
  const auto mode = e.number_at(4), padding = e.number_at(8);
  const bool simple = table && indices && offsets && mode && table->shape.size() == 2 &&
                      padding.value_or(-1) == -1 && e.arg(7) != true;
  if (!simple || e.is_read(1) || e.is_read(2) || e.is_read(3)) return false;
  const int64_t width = table->shape[1];
  const Shape& shape = e.result().shape;
  if (const Value* bags = bags_of(e, indices->name, offsets->name); bags && !weights) {
    const Shape rows{bags->shape[0], bags->shape[1], width};
    const std::string found =
        e.as(table->dtype,
             e.write("rows", "aten.embedding.default",
                     {tensor_ref(table->name), tensor_ref(bags->name), -1, false, false}, rows));
    constexpr std::array<const char*, 3> kWays{"aten.sum.dim_IntList", "aten.mean.dim",
                                               "aten.amax.default"};
    e.write("bags", kWays[size_t(*mode)], {tensor_ref(found), Json::array({1}), false}, shape,
            e.result().name);
    return true;
  }
  if (*mode == 2 || table->dtype != DType::f32) return false;
  // The bag of each index: how many bags begin at or before it, less one.
  const Shape pairs{indices->shape[0], offsets->shape[0]}, all{indices->shape[0]};
  const std::string at = e.as(DType::i64, e.view(e.counting(*indices, 0), {all[0], 1}));
  const std::string begun =
      e.map("ge.Tensor", {tensor_ref(at), tensor_ref(offsets->name)}, pairs, DType::boolean);
  const std::string count = e.as(
      DType::i64,
      e.write("begun", "aten.sum.dim_IntList", {tensor_ref(begun), Json::array({1}), false}, all));
  const std::string bag = e.map("sub.Scalar", {tensor_ref(count), 1}, all, DType::i64);
  std::string rows = e.write("rows", "aten.embedding.default",
                             {tensor_ref(table->name), tensor_ref(indices->name), -1, false, false},
                             {all[0], width});
  if (weights)
    rows = e.map("mul.Tensor", {tensor_ref(rows), tensor_ref(e.view(weights->name, {all[0], 1}))},
                 {all[0], width});
  const auto added = [&](const std::string& source, const Shape& to, const std::string& name) {
    const std::string zeros = e.write("zeros", kFilled, {0, offsets->name, 0, table->name, 1}, to);
    return e.write("added", kScatter,
                   {tensor_ref(zeros), tensor_ref(source), 0, tensor_ref(bag), false, "add", false},
                   to, name);
  };
  const std::string sums = added(rows, shape, *mode == 0 ? e.result().name : "");
  if (*mode == 0) return true;
  const std::string one = e.write("one", kFilled, {1, indices->name, 0}, all);
  const std::string zeros = e.write("zeros", kFilled, {0, offsets->name, 0}, {shape[0]});
  const std::string counts = e.write(
      "counts", kScatter,
      {tensor_ref(zeros), tensor_ref(one), 0, tensor_ref(bag), false, "add", false}, {shape[0]});
  const std::string least = e.map("clamp_min.default", {tensor_ref(counts), 1}, {shape[0]});
  e.write("mean", "aten.div.Tensor", {tensor_ref(sums), tensor_ref(e.view(least, {shape[0], 1}))},
          shape, e.result().name);
  return true;
}

// Where a grid reads along one axis of the input.
struct Sampled {
  std::array<std::string, 2> places, weights;  // of both neighbours
  size_t count = 2;
};

// grid_sampler_2d(x, grid, mode, padding, align): modes 0 linear, 1 nearest; padding 0 zeros, 1 the
// nearest element.
class Sampler {
 public:
  Sampler(Expansion& e, const Value& x, const Value& grid)
      : e_(e), x_(x), grid_(grid), shape_{grid.shape[0], grid.shape[1], grid.shape[2]} {}

  bool run() {
    const Sampled right = along(3, 0), down = along(2, 1);
    const Shape thin{x_.shape[0], 1, 1};
    const std::string image = e_.as(DType::i64, e_.view(e_.counting(x_, 0), thin));
    const Shape rows{shape_[0], shape_[1], shape_[2], x_.shape[1]};
    std::string sum;
    for (size_t i = 0; i < down.count; ++i)
      for (size_t j = 0; j < right.count; ++j) {
        const std::string value =
            e_.write("read", "aten.index.Tensor",
                     {tensor_ref(x_.name),
                      Json::array({tensor_ref(image), nullptr, tensor_ref(down.places[i]),
                                   tensor_ref(right.places[j])})},
                     rows);
        const std::string weight = e_.map(
            "mul.Tensor", {tensor_ref(down.weights[i]), tensor_ref(right.weights[j])}, shape_);
        const Shape wide{shape_[0], shape_[1], shape_[2], 1};
        const std::string share =
            e_.map("mul.Tensor", {tensor_ref(value), tensor_ref(e_.view(weight, wide))}, rows);
        sum =
            sum.empty() ? share : e_.map("add.Tensor", {tensor_ref(sum), tensor_ref(share)}, rows);
      }
    e_.write("sampled", "aten.permute.default", {tensor_ref(sum), Json{0, 3, 1, 2}},
             e_.result().shape, e_.result().name);
    return true;
  }

 private:
  std::string map(const char* op, std::vector<Json> args, DType dtype = DType::f32) {
    return e_.map(op, std::move(args), shape_, dtype);
  }

  Sampled along(size_t axis, int64_t component) {
    const Json size = Expansion::size_of(x_, axis);
    std::string at =
        e_.write("component", "aten.select.int", {tensor_ref(grid_.name), 3, component}, shape_);
    at = map("add.Scalar", {tensor_ref(at), 1});
    if (e_.arg(4) == true) {
      at = map("grid_aligned", {tensor_ref(at), size});
    } else {
      at = map("grid_between", {tensor_ref(at), size});
    }
    if (e_.number_at(3) == 1) at = map("grid_inside", {tensor_ref(at), size});
    Sampled sampled;
    const bool nearest = e_.number_at(2) == 1;
    const std::string below = map(nearest ? "round.default" : "floor.default", {tensor_ref(at)});
    const std::string share = map("sub.Tensor", {tensor_ref(at), tensor_ref(below)});
    sampled.count = nearest ? 1 : 2;
    for (size_t k = 0; k < sampled.count; ++k) {
      const std::string here = k == 0 ? below : map("add.Scalar", {tensor_ref(below), 1});
      const std::string weight = nearest  ? ""
                                 : k == 0 ? map("rsub.Scalar", {tensor_ref(share), 1})
                                          : share;
      const std::string inside = map("grid_is_inside", {tensor_ref(here), size});
      sampled.weights[k] =
          nearest ? inside : map("mul.Tensor", {tensor_ref(weight), tensor_ref(inside)});
      const std::string place = map("grid_inside", {tensor_ref(here), size});
      sampled.places[k] = map("_to_copy.default", {tensor_ref(place)}, DType::i64);
    }
    return sampled;
  }

  Expansion& e_;
  const Value &x_, &grid_;
  Shape shape_;
};

bool grid_sampler(Expansion& e) {
  const Value *found = e.input(0), *points = e.input(1);
  const auto mode = e.number_at(2), padding = e.number_at(3);
  if (!found || !points || !mode || !padding || *mode > 1 || *padding > 1 ||
      found->dtype != DType::f32 || points->dtype != DType::f32)
    return false;
  const Value x = *found, grid = *points;  // writing nodes moves the graph's values
  return Sampler(e, x, grid).run();
}

// affine_grid_generator(theta, [n, c, h, w], align) with constant h and w
bool affine_grid(Expansion& e) {
  const Value* theta = e.input(0);
  const auto size = e.numbers(1, 4);
  if (!theta || size.empty() || !e.node.sizes.empty() || size[2] < 2 || size[3] < 2) return false;
  const int64_t n = theta->shape[0], h = size[2], w = size[3];
  const Shape shape = e.result().shape;
  const bool aligned = e.arg(2) == true;
  const auto line = [&](int64_t length, const Shape& thin) {
    const double step = 2.0 / double(aligned ? length - 1 : length);
    const double start = aligned ? -1 : -1 + step / 2;
    return e.view(e.write("line", kCounting, {start, step}, {length}), thin);
  };
  const std::string x = line(w, {1, 1, w, 1}), y = line(h, {1, h, 1, 1}), name = theta->name;
  const auto column = [&](int64_t k) {
    return e.view(e.write("column", "aten.select.int", {tensor_ref(name), 2, k}, {n, 2}),
                  {n, 1, 1, 2});
  };
  std::string grid = e.map("mul.Tensor", {tensor_ref(column(0)), tensor_ref(x)}, {n, 1, w, 2});
  const std::string rows =
      e.map("mul.Tensor", {tensor_ref(column(1)), tensor_ref(y)}, {n, h, 1, 2});
  grid = e.map("add.Tensor", {tensor_ref(grid), tensor_ref(rows)}, shape);
  e.write("grid", "aten.add.Tensor", {tensor_ref(grid), tensor_ref(column(2))}, shape,
          e.result().name);
  return true;
}

}  // namespace

Rule pooling_rule(const std::string& base) {
  static const std::map<std::string, Rule> rules{{"max_pool2d_with_indices", max_pool},
                                                 {"max_pool3d_with_indices", max_pool},
                                                 {"avg_pool1d", average<1>},
                                                 {"avg_pool2d", average<2>},
                                                 {"avg_pool3d", average<3>},
                                                 {"max_pool1d", pool<1>},
                                                 {"adaptive_avg_pool1d", pool<1>},
                                                 {"_adaptive_avg_pool2d", pool<2>},
                                                 {"_adaptive_avg_pool3d", pool<3>},
                                                 {"adaptive_max_pool2d", pool<2>},
                                                 {"adaptive_max_pool3d", pool<3>},
                                                 {"_embedding_bag", embedding_bag},
                                                 {"grid_sampler_2d", grid_sampler},
                                                 {"affine_grid_generator", affine_grid}};
  const auto rule = rules.find(base);
  return rule == rules.end() ? nullptr : rule->second;
}

}  // namespace cutegen::recipes
