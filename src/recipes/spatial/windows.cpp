// SPDX-License-Identifier: Apache-2.0
#include "recipes/spatial/windows.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "recipes/graph/pointwise.h"

namespace cutegen::recipes {
namespace {

constexpr int64_t kMost = 1 << 20;  // largest stride, padding, dilation: products fit in 64 bits
constexpr size_t kBehind = 9;       // the argument that fold_zero_pads() adds

const std::map<std::string, WindowKind>& kinds() {
  static const std::map<std::string, WindowKind> table{{"convolution", WindowKind::convolution},
                                                       {"max_pool1d", WindowKind::max},
                                                       {"max_pool2d", WindowKind::max},
                                                       {"max_pool3d", WindowKind::max},
                                                       {"max_pool2d_with_indices", WindowKind::max},
                                                       {"max_pool3d_with_indices", WindowKind::max},
                                                       {"avg_pool1d", WindowKind::average},
                                                       {"avg_pool2d", WindowKind::average},
                                                       {"avg_pool3d", WindowKind::average}};
  return table;
}

// Reads the arguments of one node.
class Reader {
 public:
  Reader(const Graph& graph, const Node& node) : graph_(graph), node_(node) {}

  Result<Window> run() {
    Window w;
    w.op = node_.op;
    if (is_resampling(node_)) return resampling(std::move(w));
    w.kind = kinds().at(base_name(node_.op));
    CG_TRY(w.input, tensor(0, "input"));
    rank_ = shape(w.input).size() - 2;
    if (shape(w.input).size() < 3 || rank_ > 3 ||
        node_.outputs.front().shape.size() != shape(w.input).size())
      return refuse("its input has no batch, or more than three axes behind the channels");
    CG_CHECK(w.pools() ? pooling(w) : convolution(w));
    for (const Shape* list : {&w.kernel, &w.stride, &w.dilation})
      if (std::any_of(list->begin(), list->end(), [](int64_t n) { return n < 1; }))
        return refuse("a kernel, stride or dilation below 1");
    return w;
  }

 private:
  // Other code sees windows of one element along each axis.
  Result<Window> resampling(Window w) {
    w.kind = WindowKind::resample;
    CG_TRY(w.input, tensor(0, "input"));
    CG_TRY(w.resampling, resampling_of(graph_, node_));
    rank_ = shape(w.input).size() - 2;
    w.kernel = w.stride = w.dilation = Shape(rank_, 1);
    w.padding = Shape(rank_, 0);
    return w;
  }

  Result<void> convolution(Window& w) {
    CG_TRY(w.weight, tensor(1, "weight"));
    const Shape weights = shape(w.weight);
    if (weights.size() != rank_ + 2) return refuse("its weight has another rank");
    w.kernel.assign(weights.begin() + 2, weights.end());
    CG_TRY(w.stride, list(3, "stride", 1));
    CG_TRY(w.padding, list(4, "padding", 0));
    CG_TRY(w.dilation, list(5, "dilation", 1));
    CG_TRY(w.output_padding, list(7, "output_padding", 0));
    if (node_.args.size() > kBehind) {
      CG_TRY(w.behind, list(kBehind, "", 0));
    }
    if (flag(6, "transposed", false)) w.kind = WindowKind::transposed;
    w.groups = int64_t(number(argument(node_, 8, "groups")).value_or(1));
    const int64_t channels = shape(w.input)[1];
    if (w.groups < 1 || channels % w.groups || node_.outputs.front().shape[1] % w.groups)
      return refuse("the groups do not divide the channels");
    return {};
  }

  Result<void> pooling(Window& w) {
    const bool average = w.kind == WindowKind::average;
    CG_TRY(w.kernel, list(1, "kernel_size", 1));
    Json stride = argument(node_, 2, "stride");
    w.stride = w.kernel;
    if (!stride.is_null() && !(stride.is_array() && stride.empty())) {
      CG_TRY(w.stride, list(2, "stride", 1));
    }
    CG_TRY(w.padding, list(3, "padding", 0));
    w.dilation.assign(rank_, 1);
    if (!average) {
      CG_TRY(w.dilation, list(4, "dilation", 1));
    }
    w.ceil = flag(average ? 4 : 5, "ceil_mode", false);
    if (!average) return {};
    w.include_pad = flag(5, "count_include_pad", true);
    w.divisor = int64_t(number(argument(node_, 6, "divisor_override")).value_or(0));
    return {};
  }

  Result<std::string> tensor(size_t index, const char* keyword) const {
    auto name = reference(argument(node_, index, keyword));
    if (!name && index == 0) name = reference(argument(node_, 0, "self"));
    if (!name || !graph_.find(*name)) return refuse(fmt::format("{} is not a tensor", keyword));
    return *name;
  }

  const Shape& shape(const std::string& name) const { return graph_.find(name)->shape; }

  // Reads one number for each axis; a single number counts for all axes.
  Result<Shape> list(size_t index, const char* keyword, int64_t missing) const {
    Json json = argument(node_, index, keyword);
    if (json.is_null()) return Shape(rank_, missing);
    if (json.is_number_integer()) json = Json::array({json});
    Shape found;
    if (json.is_array())
      for (const Json& item : json) {
        if (!item.is_number_integer() || std::abs(item.get<int64_t>()) > kMost)
          return refuse(fmt::format("{} is not a list of small integers", keyword));
        found.push_back(item.get<int64_t>());
      }
    if (found.size() == 1) found.resize(rank_, found[0]);
    if (found.size() != rank_) return refuse(fmt::format("{} does not fit its axes", keyword));
    return found;
  }

  bool flag(size_t index, const char* keyword, bool missing) const {
    Json json = argument(node_, index, keyword);
    return json.is_boolean() ? json.get<bool>() : missing;
  }

  tl::unexpected<Error> refuse(const std::string& why) const {
    return unsupported_error(node_.op + ": " + why, node_.id);
  }

  const Graph& graph_;
  const Node& node_;
  size_t rank_ = 0;
};

}  // namespace

std::string Window::extent(size_t axis, const std::string& input, const std::string& window) const {
  const int64_t p = padding[axis], s = stride[axis], d = dilation[axis];
  const int64_t both = 2 * p + (behind.empty() ? 0 : behind[axis]);
  if (kind == WindowKind::transposed)
    return fmt::format("(({})-1)*{}-{}+{}*({}-1)+{}", input, s, 2 * p, d, window,
                       output_padding[axis] + 1);
  const std::string whole = fmt::format("(({})+{}-{}*({}-1)-1)/{}+1", input, both, d, window, s);
  if (!ceil) return whole;
  // One more window if elements are left for it and it starts inside the input or its padding.
  const std::string more =
      fmt::format("(({})+{}-{}*({}-1)-1+{})/{}", input, 2 * p, d, window, s - 1, s);
  return fmt::format("({0})*{1} >= ({2})+{3} ? ({0}) : ({0})+1", more, s, input, p);
}

bool is_window(const Node& node) {
  return node.op.rfind("aten.", 0) == 0 && !node.outputs.empty() &&
         (kinds().count(base_name(node.op)) > 0 || is_resampling(node));
}

Result<std::optional<Window>> find_window(const Graph& graph, const Node& node) {
  if (!is_window(node)) return std::nullopt;
  CG_TRY(Window window, Reader(graph, node).run());
  return std::optional<Window>(std::move(window));
}

}  // namespace cutegen::recipes
