// SPDX-License-Identifier: Apache-2.0
#include "recipes/views/later_views.h"

#include <gtest/gtest.h>

#include "recipes/graph/pointwise.h"
#include "recipes/graph/reshape.h"

namespace cutegen::recipes {
namespace {

Node step(const std::string& op, const std::string& from, std::vector<Json> more,
          const std::string& to, const Shape& shape) {
  Node n;
  n.id = to;
  n.op = op;
  n.args = {{{"ref", from}}};
  n.args.insert(n.args.end(), more.begin(), more.end());
  n.outputs = {{.name = to, .dtype = DType::f32, .shape = shape}};
  return n;
}

// log_softmax of the rows of x[:, :-1], or of a copy of all rows.
Graph shifted_rows(bool sliced, int64_t dim) {
  const Shape part{4, 511, 32000}, rows{2044, 32000};
  Graph g;
  g.placeholders = {
      {.name = "x", .dtype = DType::f32, .shape = sliced ? Shape{4, 512, 32000} : part}};
  g.nodes = {sliced ? step("aten.slice.Tensor", "x", {1, 0, -1, 1}, "part", part)
                    : step("aten.relu.default", "x", {}, "part", part),
             step("aten.clone.default", "part", {}, "copy", part),
             step("aten._unsafe_view.default", "copy", {Json(rows)}, "rows", rows),
             step("aten.div.Tensor", "rows", {2}, "cool", rows),
             step("aten._log_softmax.default", "cool", {dim, false}, "out", rows)};
  g.outputs = {"out"};
  return g;
}

TEST(LaterViews, TheRowsOfASliceAreNotMerged) {
  const Graph g = later_views(shifted_rows(true, 1));
  const Value* source = before_merge(g, "out");
  ASSERT_NE(source, nullptr);
  EXPECT_EQ(source->shape, (Shape{4, 511, 32000}));
  const Node* rows = g.producer(source->name);
  ASSERT_NE(rows, nullptr);
  EXPECT_EQ(rows->op, "aten._log_softmax.default");
  EXPECT_EQ(rows->args[1], 2);
  const Node* cool = g.producer(*reference(rows->args[0]));
  ASSERT_NE(cool, nullptr);
  EXPECT_EQ(cool->op, "aten.div.Tensor");
  EXPECT_EQ(cool->args[0], (Json{{"ref", "copy"}}));
}

TEST(LaterViews, AReductionAlongTheMergedAxisStays) {
  EXPECT_EQ(later_views(shifted_rows(true, 0)).producer("out")->op, "aten._log_softmax.default");
}

TEST(LaterViews, AViewOfAWholeTensorStays) {
  EXPECT_EQ(later_views(shifted_rows(false, 1)).producer("out")->op, "aten._log_softmax.default");
}

}  // namespace
}  // namespace cutegen::recipes
