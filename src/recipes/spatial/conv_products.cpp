// SPDX-License-Identifier: Apache-2.0
#include "recipes/spatial/conv_products.h"

#include <algorithm>

#include "recipes/graph/decompose.h"
#include "recipes/graph/node_writer.h"
#include "recipes/graph/products.h"
#include "recipes/graph/reshape.h"

namespace cutegen::recipes {
namespace {

bool all_are(const Shape& list, int64_t wanted) {
  return std::all_of(list.begin(), list.end(), [&](int64_t n) { return n == wanted; });
}

// Writes the nodes that replace one convolution.
class ProductWriter {
 public:
  ProductWriter(Graph& out, const Graph& graph, const Node& node, const Window& window, bool tf32)
      : write_(out, graph, node),
        result_(node.outputs.front()),
        image_(*graph.find(window.input)),
        filter_(*graph.find(window.weight)),
        tf32_(tf32 && image_.dtype == DType::f32),
        count_(image_.shape[0]),
        depth_(product(filter_.shape) / filter_.shape[0]),
        out_(filter_.shape[0]),
        places_(product(Shape(result_.shape.begin() + 2, result_.shape.end()))) {}

  void pixels() {
    const std::string filter = as_input(write_.view("filter", filter_.name, {1, out_, depth_})),
                      whole = as_input(write_.add("filters", "aten.expand.default",
                                                  {tensor_ref(filter), Json{count_, out_, depth_}},
                                                  {count_, out_, depth_}));
    std::string image = image_.name;
    if (image_.shape.size() > 3)
      image = as_input(write_.view("pixels", image, {count_, depth_, places_}));
    finish(multiply("aten.bmm.default", whole, image, {count_, out_, places_}));
  }

  // Copies the pixels of all images to the rows of one matrix, which has a row for each channel.
  void gathered() {
    const std::string filter = as_input(write_.view("filter", filter_.name, {out_, depth_})),
                      image =
                          as_input(write_.view("pixels", image_.name, {count_, depth_, places_}));
    const Shape shape{depth_, count_, places_};
    const std::string turned = as_input(
        write_.add("channels", "aten.permute.default", {tensor_ref(image), Json{1, 0, 2}}, shape));
    const std::string all =
        as_input(write_.view("columns", operand(turned, shape), {depth_, count_ * places_}));
    std::string product = multiply("aten.mm.default", filter, all, {out_, count_ * places_});
    product = as_result(write_.view("images", product, {out_, count_, places_}));
    finish(as_result(write_.add("turned", "aten.permute.default",
                                {tensor_ref(product), Json{1, 0, 2}}, {count_, out_, places_})));
  }

  void blocks() {
    const std::string rows =
        as_input(write_.view("rows", copied_blocks(), {count_ * places_, depth_}));
    std::string all =
        multiply("aten.mm.default", rows, columns_of_filter(), {count_ * places_, out_});
    all = as_result(write_.view("images", all, {count_, places_, out_}));
    finish(as_result(write_.add("turned", "aten.permute.default", {tensor_ref(all), Json{0, 2, 1}},
                                {count_, out_, places_})));
  }

 private:
  // The filter as the second factor of mm.
  std::string columns_of_filter() {
    const std::string rows =
        as_input(write_.view("depth", operand(filter_.name, filter_.shape), {out_, depth_}));
    return as_input(write_.add("filter", "aten.t.default", {tensor_ref(rows)}, {depth_, out_}));
  }

  // The blocks of the image, each of them contiguous.
  std::string copied_blocks() {
    const size_t rank = image_.shape.size() - 2;
    Shape shape{count_, image_.shape[1]}, turned{count_};
    Json order = Json::array({0});
    for (size_t i = 0; i < rank; ++i) {
      shape.push_back(result_.shape[i + 2]);
      shape.push_back(filter_.shape[i + 2]);
      turned.push_back(result_.shape[i + 2]);
      order.push_back(2 + 2 * i);
    }
    turned.push_back(image_.shape[1]);
    order.push_back(1);
    for (size_t i = 0; i < rank; ++i) {
      turned.push_back(filter_.shape[i + 2]);
      order.push_back(3 + 2 * i);
    }
    const std::string blocks = as_input(
        write_.add("blocks", kBlocks, {tensor_ref(image_.name), tensor_ref(filter_.name)}, shape));
    return operand(as_input(write_.add("contiguous", "aten.permute.default",
                                       {tensor_ref(blocks), order}, turned)),
                   turned);
  }

  // A pointwise copy of a factor, which an earlier kernel stores.
  std::string operand(const std::string& from, const Shape& shape) {
    if (!tf32_ && from == filter_.name) return from;
    return as_input(write_.add("factor",
                               tf32_ ? "aten.round_to_tf32.default" : "aten.positive.default",
                               {tensor_ref(from)}, shape));
  }

  std::string multiply(const std::string& op, const std::string& a, const std::string& b,
                       const Shape& shape) {
    const std::string name =
        as_result(write_.add("product", op, {tensor_ref(a), tensor_ref(b)}, shape));
    if (tf32_) write_.set_keyword(kTf32, true);
    if (tf32_ && op == "aten.mm.default") write_.set_keyword(kRounded, true);
    return name;
  }

  void finish(const std::string& from) { write_.view("result", from, result_.shape, result_.name); }

  std::string as_input(const std::string& name) { return write_.as(image_.dtype, name); }
  std::string as_result(const std::string& name) { return write_.as(result_.dtype, name); }

  NodeWriter write_;
  const Value &result_, &image_, &filter_;
  bool tf32_;
  int64_t count_, depth_, out_, places_;  // images, depth of the product, channels, results of one
};

}  // namespace

ProductForm product_form(const Window& w, const Shape& image) {
  if (w.kind != WindowKind::convolution || w.groups != 1 || !all_are(w.padding, 0) ||
      !all_are(w.behind, 0) || !all_are(w.dilation, 1))
    return ProductForm::none;
  if (all_are(w.kernel, 1)) return all_are(w.stride, 1) ? ProductForm::pixels : ProductForm::none;
  if (w.kernel != w.stride) return ProductForm::none;
  for (size_t i = 0; i < w.rank(); ++i)
    if (image[i + 2] % w.kernel[i] != 0) return ProductForm::none;
  return ProductForm::blocks;
}

int64_t pixels_of(const Shape& image) {
  return product(Shape(image.begin() + 2, image.end()));
}

bool tma_reads_pixels(DType dtype, const Shape& image) {
  return size_of(dtype) == 4 || pixels_of(image) % 8 == 0;
}

Result<Graph> products_of_convolutions(Graph graph, const std::set<std::string>& names, bool tf32) {
  if (names.empty()) return graph;
  Graph out = graph;
  out.nodes.clear();
  for (const Node& node : graph.nodes) {
    if (node.outputs.empty() || !names.contains(node.outputs.front().name)) {
      out.nodes.push_back(node);
      continue;
    }
    CG_TRY(const auto window, find_window(graph, node));
    const Value* image = window ? graph.find(window->input) : nullptr;
    const ProductForm form = image ? product_form(*window, image->shape) : ProductForm::none;
    if (form == ProductForm::none)
      return unsupported_error(node.op + " is not a matrix product", node.id);
    ProductWriter writer(out, graph, node, *window, tf32);
    if (form == ProductForm::blocks)
      writer.blocks();
    else if (tma_reads_pixels(image->dtype, image->shape))
      writer.pixels();
    else
      writer.gathered();
  }
  return out;
}

}  // namespace cutegen::recipes
