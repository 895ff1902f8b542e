// SPDX-License-Identifier: Apache-2.0
// Excerpts of the official shape: the axes that the worker finds, and the tasks that it refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "torch/testing/test_worker.h"

namespace cutegen::torch {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string excerpt_task(const std::string& forward, const std::string& inputs) {
  return "import torch\nfrom torch import nn\n\nrows = 2048\nsize = 4096\n\nclass "
         "Model(nn.Module):\n"
         "    def __init__(self):\n        super().__init__()\n        self.norm = "
         "nn.BatchNorm1d(4096)\n"
         "    def forward(self, x, y):\n        return " +
         forward + "\n\ndef get_inputs():\n    return [" + inputs +
         "]\n\ndef get_init_inputs():\n    return []\n";
}

struct Found {
  Result<Excerpt> excerpt = world_error("not planned");
  Result<TensorSet> set = world_error("not made");
};

Found excerpt_of(const std::string& forward, const std::string& inputs) {
  TaskFile file("task", excerpt_task(forward, inputs));
  Found out;
  auto task = test_worker().describe(Context(), file.path(), {.shrink = false});
  EXPECT_TRUE(task) << task.error().text();
  if (!task) return out;
  out.excerpt = test_worker().plan_excerpt(Context(), *task, task->official());
  if (out.excerpt)
    out.set = test_worker().make_excerpt(Context(), *task, *out.excerpt, "signed", 7);
  return out;
}

TEST(Excerpt, RowsOfASoftmax) {
  Found f = excerpt_of("torch.softmax(x * y, -1)", "torch.randn(rows, size), torch.randn(size)");
  ASSERT_TRUE(f.excerpt) << f.excerpt.error().text();
  ASSERT_EQ(f.excerpt->axes.size(), 1u);
  EXPECT_EQ(f.excerpt->axes[0].of, 2048);
  const int64_t count = f.excerpt->axes[0].count;
  EXPECT_GE(count, 3);
  EXPECT_THAT(f.excerpt->shape.tensors.at("x"), ElementsAre(count, 4096));
  EXPECT_THAT(f.excerpt->shape.tensors.at("y"), ElementsAre(4096));
  EXPECT_THAT(f.excerpt->shape.constants,
              ElementsAre(std::pair<std::string, int64_t>("rows", count)));
  EXPECT_TRUE(f.set) << f.set.error().text();
}

TEST(Excerpt, RowsOfAShapeOfTheUser) {
  TaskFile file("task", excerpt_task("torch.softmax(x * y, -1)",
                                     "torch.randn(rows, size), torch.randn(size)"));
  auto task = test_worker().describe(Context(), file.path(), {.shrink = false});
  ASSERT_TRUE(task) << task.error().text();
  ShapeCase wide = task->official();
  wide.name = "wide", wide.kind = ShapeKind::user;
  wide.constants = {{"rows", 100'000}, {"size", 2048}};
  wide.tensors["x"] = wide.tensors["out"] = {100'000, 2048}, wide.tensors["y"] = {2048};
  auto excerpt = test_worker().plan_excerpt(Context(), *task, wide);
  ASSERT_TRUE(excerpt) << excerpt.error().text();
  ASSERT_EQ(excerpt->axes.size(), 1u);
  EXPECT_EQ(excerpt->axes[0].of, 100'000);
  const int64_t count = excerpt->axes[0].count;
  EXPECT_THAT(excerpt->shape.tensors.at("out"), ElementsAre(count, 2048));
  const std::map<std::string, int64_t> constants(excerpt->shape.constants.begin(),
                                                 excerpt->shape.constants.end());
  EXPECT_EQ(constants, (std::map<std::string, int64_t>{{"rows", count}, {"size", 2048}}));
  auto set = test_worker().make_excerpt(Context(), *task, *excerpt, "signed", 7);
  EXPECT_TRUE(set) << set.error().text();
}

TEST(Excerpt, RowsOfEightBitFloats) {
  Found f = excerpt_of("(x * y).to(torch.float8_e4m3fn).flatten(1)",
                       "torch.randn(rows, size), torch.randn(size)");
  ASSERT_TRUE(f.excerpt) << f.excerpt.error().text();
  EXPECT_TRUE(f.set) << f.set.error().text();
}

TEST(Excerpt, RowsAndColumnsOfASquareProduct) {
  Found f = excerpt_of("x @ y", "torch.randn(rows, rows), torch.randn(rows, rows)");
  ASSERT_TRUE(f.excerpt) << f.excerpt.error().text();
  ASSERT_EQ(f.excerpt->axes.size(), 2u);
  EXPECT_EQ(f.excerpt->cuts.size(), 2u) << "one constant gives all sizes";
  EXPECT_EQ(f.excerpt->shape.tensors.at("x")[1], 2048);
  EXPECT_EQ(f.excerpt->shape.tensors.at("y")[0], 2048);
  EXPECT_LT(f.excerpt->shape.tensors.at("out")[0], 2048);
  EXPECT_LT(f.excerpt->shape.tensors.at("out")[1], 2048);
  EXPECT_TRUE(f.set) << f.set.error().text();
}

TEST(Excerpt, AnAxisWithDependentIndicesIsNotCut) {
  Found f = excerpt_of("x.cumsum(0) + y", "torch.randn(rows, size), torch.randn(size)");
  ASSERT_TRUE(f.excerpt) << f.excerpt.error().text();
  EXPECT_EQ(f.excerpt->shape.tensors.at("out")[0], 2048);
  EXPECT_LT(f.excerpt->shape.tensors.at("out")[1], 4096);
  EXPECT_TRUE(f.set) << f.set.error().text();
}

TEST(Excerpt, RowsThatDependOnOneAnotherAreRefused) {
  for (const char* forward : {"torch.tril(x @ y)", "x.cumsum(0) + y", "x - x.mean(0) + y"}) {
    Found f = excerpt_of(forward, "torch.randn(rows, rows), torch.randn(rows, rows)");
    const bool refused = !f.excerpt || !f.set;
    EXPECT_TRUE(refused) << forward;
    if (!refused) continue;
    const Error& why = f.excerpt ? f.set.error() : f.excerpt.error();
    EXPECT_EQ(why.kind, ErrorKind::unsupported) << why.text();
  }
}

TEST(Excerpt, OneNumberOfEverythingHasNone) {
  Found f = excerpt_of("(x * y).sum()", "torch.randn(rows, size), torch.randn(rows, size)");
  ASSERT_FALSE(f.excerpt);
  EXPECT_EQ(f.excerpt.error().kind, ErrorKind::unsupported);
  EXPECT_THAT(f.excerpt.error().message, HasSubstr("no axis of its output can be cut"));
}

// One draw in four of "signed" is negative everywhere; ReLU turns it into a constant.
TEST(Excerpt, ResultsDifferFromRowToRow) {
  TaskFile file("task",
                excerpt_task("torch.relu(x) + 1", "torch.randn(rows, size), torch.randn(size)"));
  auto task = test_worker().describe(Context(), file.path(), {.shrink = false});
  ASSERT_TRUE(task) << task.error().text();
  auto excerpt = test_worker().plan_excerpt(Context(), *task, task->official());
  ASSERT_TRUE(excerpt) << excerpt.error().text();
  for (uint64_t seed = 0; seed < 16; ++seed) {
    auto set = test_worker().make_excerpt(Context(), *task, *excerpt, "signed", seed);
    ASSERT_TRUE(set) << set.error().text();
    const std::vector<double> truth = read_values(std::move(*set)).of("out", "truth");
    EXPECT_GT(std::ranges::count_if(truth, [](double v) { return v > 1; }), 100) << seed;
  }
}

}  // namespace
}  // namespace cutegen::torch
