// SPDX-License-Identifier: Apache-2.0
// Numbers that test shapes keep: groups, dilations, and widths that decide a constant.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "torch/testing/test_worker.h"
#include "torch/worker.h"

namespace cutegen::torch {
namespace {

// get_init_inputs() returns numbers without names; the parameters of __init__ name them.
std::string module_of(const std::string& parameters, const std::string& init,
                      const std::string& forward, const std::string& inputs,
                      const std::string& values) {
  return "import torch\nfrom torch import nn\nclass Model(nn.Module):\n    def __init__(self, " +
         parameters + "):\n        super().__init__()\n" + init +
         "    def forward(self, *a):\n        return " + forward +
         "\ndef get_inputs():\n    return [" + inputs + "]\ndef get_init_inputs():\n    return [" +
         values + "]\n";
}

bool has_attribute(const Task& task, const std::string& name) {
  return std::ranges::any_of(task.attributes, [&](const ScalarInfo& s) { return s.name == name; });
}

TEST(KeptNumbers, GroupsThatAParameterNames) {
  TaskFile file("groups", module_of("channels, groups",
                                    "        self.norm = nn.GroupNorm(groups, channels)\n",
                                    "self.norm(a[0])", "torch.randn(16, 480, 64, 64)", "480, 24"));
  auto task = test_worker().describe(Context(), file.path(), {});
  ASSERT_TRUE(task) << task.error().text();
  EXPECT_GT(task->shapes.size(), 3u);
  for (const ShapeCase& shape : task->shapes) {
    const int64_t channels = shape.tensors.at("out")[1];
    EXPECT_EQ(channels % 24, 0) << shape.name;
    EXPECT_GT(channels, 24) << shape.name;  // a group of one channel would hide mistakes
  }
  EXPECT_TRUE(has_attribute(*task, "norm.num_groups"));
}

// In a group of two nearly equal elements, rounding would decide the whole result.
TEST(KeptNumbers, FourElementsInAGroupWithoutSpatialAxes) {
  TaskFile file("flat",
                module_of("features, groups",
                          "        self.linear = nn.Linear(1024, features)\n"
                          "        self.norm = nn.GroupNorm(groups, features)\n",
                          "self.norm(self.linear(a[0]))", "torch.randn(4096, 1024)", "4096, 64"));
  auto task = test_worker().describe(Context(), file.path(), {});
  ASSERT_TRUE(task) << task.error().text();
  EXPECT_GT(task->shapes.size(), 3u);
  for (const ShapeCase& shape : task->shapes)
    EXPECT_GE(shape.tensors.at("out")[1], 256) << shape.name;
}

// The size of no tensor shows a dilation.
TEST(KeptNumbers, Dilations) {
  for (const std::string name : {"rates", "distances"}) {
    TaskFile file("dilated",
                  module_of(name,
                            "        self.far = nn.ModuleList([nn.Conv2d(16, 8, 3, padding=r, "
                            "dilation=r) for r in " +
                                name + "])\n",
                            "torch.cat([f(a[0]) for f in self.far], 1)",
                            "torch.randn(32, 16, 65, 65)", "[6, 12, 18]"));
    auto task = test_worker().describe(Context(), file.path(), {});
    ASSERT_TRUE(task) << task.error().text();
    EXPECT_GT(task->shapes.size(), 3u) << name;
    EXPECT_TRUE(has_attribute(*task, "far.2.dilation.0")) << name;
  }
}

// The width of the heads decides the scale. The mask ties the length to a number of the module.
TEST(KeptNumbers, WidthOfHeadsBesideAMask) {
  TaskFile file("mask",
                module_of("longest, window",
                          "        i = torch.arange(longest)\n"
                          "        d = i[:, None] - i[None, :]\n"
                          "        self.register_buffer('mask', (d >= 0) & (d < window))\n",
                          "nn.functional.scaled_dot_product_attention(*a, attn_mask=self.mask)",
                          "torch.randn(2, 24, 2500, 64) for _ in range(3)", "2500, 384"));
  auto task = test_worker().describe(Context(), file.path(), {});
  ASSERT_TRUE(task) << task.error().text();
  EXPECT_GT(task->shapes.size(), 3u);
  for (const ShapeCase& shape : task->shapes)
    EXPECT_EQ(shape.tensors.at("out")[3], 64) << shape.name;
}

// The trace does not look at the values of labels.
TEST(KeptNumbers, LabelsThatCountTheRowsOfBothInputs) {
  TaskFile file("contrast",
                "import torch\nfrom torch import nn\nclass Model(nn.Module):\n"
                "    def forward(self, x, y):\n"
                "        return nn.functional.cross_entropy(x @ y.T, torch.arange(len(x)))\n"
                "def get_inputs():\n    return [torch.randn(1024, 256), torch.randn(1024, 256)]\n");
  auto task = test_worker().describe(Context(), file.path(), {});
  ASSERT_TRUE(task) << task.error().text();
  EXPECT_GT(task->shapes.size(), 3u);
  for (const ShapeCase& shape : task->shapes)
    EXPECT_LE(shape.tensors.at("x")[0], shape.tensors.at("y")[0]) << shape.name;
}

}  // namespace
}  // namespace cutegen::torch
