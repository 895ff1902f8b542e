// SPDX-License-Identifier: Apache-2.0
#include "recipes/graph/node_writer.h"

#include <fmt/format.h>

#include <algorithm>

#include "recipes/graph/decompose.h"
#include "recipes/graph/pointwise.h"

namespace cutegen::recipes {

Json tensor_ref(const std::string& name) {
  return {{"ref", name}};
}

std::string NodeWriter::add(const std::string& word, const std::string& op, std::vector<Json> args,
                            Shape shape, const std::string& name) {
  Node node;
  node.id = node_.id + "_" + word;
  // Rules that replace this node name their values after its id.
  const auto taken = [&](const Node& other) { return other.id == node.id; };
  while (std::any_of(out_.nodes.begin(), out_.nodes.end(), taken))
    node.id = fmt::format("{}_{}{}", node_.id, word, count_++);
  node.op = op;
  node.args = std::move(args);
  std::string value = name.empty() ? fmt::format("{}~{}{}", node_.id, word, count_++) : name;
  DType dtype = DType::f32;
  for (const Value& output : node_.outputs)
    if (output.name == name) dtype = output.dtype;
  node.outputs = {Value{.name = value, .dtype = dtype, .shape = std::move(shape)}};
  out_.nodes.push_back(std::move(node));
  return value;
}

std::string NodeWriter::view(const std::string& word, const std::string& from, const Shape& shape,
                             const std::string& name) {
  return add(word, "aten.view.default", {tensor_ref(from), Json(shape)}, shape, name);
}

std::string NodeWriter::as(DType dtype, const std::string& value) {
  out_.nodes.back().outputs[0].dtype = dtype;
  return value;
}

// Zero unless column - row <= by, or >= by.
void NodeWriter::triangle(const Value& x, bool upper, int64_t by) {
  const int64_t rows = x.shape[x.shape.size() - 2], columns = x.shape.back();
  const std::string column = as(DType::i64, add("column", kCounting, {0, 1, kAnyCount}, {columns}));
  std::string row = as(DType::i64, add("row", kCounting, {by, 1, kAnyCount}, {rows}));
  row = as(DType::i64, view("rows", row, {rows, 1}));
  const std::string keep =
      as(DType::boolean, add("keep", upper ? "aten.ge.Tensor" : "aten.le.Tensor",
                             {tensor_ref(column), tensor_ref(row)}, {rows, columns}));
  const std::string name = node_.outputs[0].name;
  if (x.dtype == DType::boolean)
    add("triangle", "aten.logical_and.default", {tensor_ref(x.name), tensor_ref(keep)}, x.shape,
        name);
  else
    add("triangle", "aten.where.ScalarOther", {tensor_ref(keep), tensor_ref(x.name), 0}, x.shape,
        name);
}

const Value* NodeWriter::find(const std::string& name) const {
  const Value* added = out_.find(name);
  return added ? added : graph_.find(name);
}

std::string NodeWriter::mean_of(const std::string& word, const std::string& x,
                                const std::vector<int>& axes, const Shape& kept) {
  return add(word, "aten.mean.dim", {tensor_ref(x), Json(axes), true}, kept);
}

std::string NodeWriter::standardized(const std::string& x, const std::vector<int>& axes,
                                     double eps) {
  const Shape shape = find(x)->shape;
  Shape kept = shape;
  for (int axis : axes) kept[size_t(axis)] = 1;
  std::string mean = mean_of("mean", x, axes, kept);
  std::string centered =
      add("centered", "aten.sub.Tensor", {tensor_ref(x), tensor_ref(mean)}, shape);
  std::string square = add("square", "aten.square.default", {tensor_ref(centered)}, shape);
  std::string variance = mean_of("variance", square, axes, kept);
  std::string shifted = add("shifted", "aten.add.Scalar", {tensor_ref(variance), eps}, kept);
  std::string scale = add("scale", "aten.rsqrt.default", {tensor_ref(shifted)}, kept);
  return add("normalized", "aten.mul.Tensor", {tensor_ref(centered), tensor_ref(scale)}, shape);
}

void NodeWriter::scaled(std::string x, const Json& weight, const Json& bias, size_t axis) {
  const Value& result = node_.outputs[0];
  auto along = [&](const char* word, const std::string& name) {
    Shape shape(result.shape.size(), 1);
    shape[axis] = result.shape[axis];
    return view(word, name, shape);
  };
  auto w = reference(weight), b = reference(bias);
  if (w)
    x = add("scaled", "aten.mul.Tensor", {tensor_ref(x), tensor_ref(along("weight", *w))},
            result.shape, b ? "" : result.name);
  if (b)
    add("biased", "aten.add.Tensor", {tensor_ref(x), tensor_ref(along("bias", *b))}, result.shape,
        result.name);
  if (!w && !b) view("result", x, result.shape, result.name);
}

}  // namespace cutegen::recipes
