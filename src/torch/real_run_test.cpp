// SPDX-License-Identifier: Apache-2.0
// Test shapes at which a module fails on real tensors, although its trace on meta tensors succeeds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "torch/testing/test_worker.h"

namespace cutegen::torch {
namespace {

using testing::HasSubstr;

Result<Task> describe(const TaskFile& file) {
  return test_worker().describe(Context(), file.path(), {});
}

std::string module_of(const std::string& forward, const std::string& inputs) {
  return "import torch\nimport torch.nn.functional as F\n"
         "class Model(torch.nn.Module):\n    def forward(self, x, y):\n" +
         forward + "def get_inputs():\n    return [" + inputs + "]\n";
}

const char* const kContrast =
    "        x, y = F.normalize(x, dim=1), F.normalize(y, dim=1)\n"
    "        return F.cross_entropy(x @ y.T / 0.07, torch.arange(x.shape[0], device=x.device))\n";

// The meta kernel of the loss does not compare the sizes of the labels with the pixels.
TEST(RealRun, LabelsOfPixelsFollowTheImage) {
  TaskFile file("pixels", module_of("        return F.cross_entropy(x, y)\n",
                                    "torch.randn(8, 19, 256, 256), "
                                    "torch.randint(0, 19, (8, 256, 256))"));
  auto task = describe(file);
  ASSERT_TRUE(task) << task.error().text();
  EXPECT_GT(task->shapes.size(), 3u);
  for (const ShapeCase& shape : task->shapes) {
    const Shape& x = shape.tensors.at("x");
    EXPECT_EQ(shape.tensors.at("y"), (Shape{x[0], x[2], x[3]})) << shape.name;
    for (const char* family : {"made", "outliers"}) {
      if (shape.kind == ShapeKind::official) continue;
      auto set = test_worker().make_set(Context(), *task, shape, family, 1);
      EXPECT_TRUE(set) << shape.name << ": " << set.error().text();
    }
  }
}

TEST(RealRun, DerivedShapesHaveAClassForEachLabel) {
  TaskFile file("contrast", module_of(kContrast, "torch.randn(1024, 256), torch.randn(1024, 256)"));
  auto task = describe(file);
  ASSERT_TRUE(task) << task.error().text();
  const auto sized = [](int64_t x, int64_t y) {
    return ShapeConstants{
        {"get_inputs.0", x}, {"get_inputs.1", 64}, {"get_inputs.2", y}, {"get_inputs.3", 64}};
  };
  auto told = test_worker().describe_shapes(Context(), *task,
                                            {sized(200, 200), sized(200, 104), sized(104, 200)});
  ASSERT_TRUE(told) << told.error().text();
  EXPECT_TRUE(told->shapes.at(0));
  EXPECT_FALSE(told->shapes.at(1)) << "labels from 0 to 199, but 104 classes";
  EXPECT_TRUE(told->shapes.at(2));
}

// The index depends on an input, so that its values are unknown in a trace.
TEST(RealRun, ComputedIndicesStayInRange) {
  TaskFile file("computed", module_of("        return x[y % 2 + 2 * torch.arange(len(y))]\n",
                                      "torch.randn(8192, 64), torch.randint(0, 99, (4096,))"));
  auto task = describe(file);
  ASSERT_TRUE(task) << task.error().text();
  EXPECT_GT(task->shapes.size(), 2u);
  for (const ShapeCase& shape : task->shapes)
    EXPECT_GE(shape.tensors.at("x")[0], 2 * shape.tensors.at("y")[0]) << shape.name;
  auto told = test_worker().describe_shapes(
      Context(), *task,
      {{{"get_inputs.0", 96}, {"get_inputs.1", 32}, {"get_inputs.2", 99}, {"get_inputs.3", 96}}});
  ASSERT_TRUE(told) << told.error().text();
  EXPECT_FALSE(told->shapes.at(0));
}

// Names a size of the user at which the module fails.
TEST(RealRun, RefusesAShapeOfTheUserAtWhichTheModuleFails) {
  TaskFile file("contrast", module_of(kContrast, "torch.randn(1024, 256), torch.randn(1024, 256)"),
                "[[shapes]]\nname = 'short'\nweight = 0\n"
                "constants = {\"get_inputs.0\" = 64, \"get_inputs.2\" = 32}\n");
  DescribeOptions options;
  auto task = test_worker().describe(Context(), file.path(), options);
  ASSERT_FALSE(task);
  EXPECT_THAT(task.error().text(), HasSubstr("shape 'short': "));
}

// A real run takes longer than a trace, so only modules whose trace leaves a doubt get one.
TEST(RealRun, ATraceSufficesForOperatorsThatCheckTheirSizes) {
  const std::string fails = "        if not x.is_meta: raise RuntimeError('it ran')\n";
  const std::string inputs = "torch.randn(512, 256), torch.randint(0, 256, (512,))";
  const auto shapes = [&](const std::string& forward) {
    TaskFile file("traced", module_of(fails + forward, inputs));
    auto task = describe(file);
    EXPECT_TRUE(task) << task.error().text();
    return task ? task->shapes.size() : 0;
  };
  EXPECT_GT(shapes("        return F.gelu(x @ x.T).softmax(1) + y\n"), 3u);
  EXPECT_GT(shapes("        return F.cross_entropy(x, y)\n"), 3u) << "labels are kept in range";
  EXPECT_EQ(shapes("        return x[:, y // 2]\n"), 1u);
}

}  // namespace
}  // namespace cutegen::torch
