// SPDX-License-Identifier: Apache-2.0
// The torch worker with a real interpreter. All tests share one child, because torch starts slowly.
#include "torch/worker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <set>

#include "base/hash.h"
#include "torch/testing/test_worker.h"

namespace cutegen::torch {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsSupersetOf;

Result<Task> describe(const std::string& name) {
  return test_worker().describe(Context(), shipped(name), {});
}

TEST(TorchWorker, DescribesTensorsAttributesAndGraph) {
  auto task = describe("gelu_bias.py");
  ASSERT_TRUE(task) << task.error().text();
  ASSERT_EQ(task->tensors.size(), 4u);
  EXPECT_EQ(task->tensors[0].name, "x");
  EXPECT_EQ(task->tensors[1].name, "residual");
  EXPECT_EQ(task->tensors[2].name, "bias");
  EXPECT_EQ(task->tensors[2].role, TensorRole::parameter);
  EXPECT_EQ(task->tensors[3].name, "out");
  EXPECT_THAT(task->tensors[3].shape, ElementsAre(4096, 12288));
  ASSERT_EQ(task->attributes.size(), 1u);
  EXPECT_EQ(task->attributes[0].name, "scale");
  EXPECT_EQ(std::get<double>(task->attributes[0].value), 0.5);
  ASSERT_EQ(task->graph.nodes.size(), 4u);
  EXPECT_EQ(task->graph.nodes[0].op, "aten.add.Tensor");
  EXPECT_EQ(task->graph.nodes[1].op, "aten.gelu.default");
  EXPECT_EQ(task->graph.nodes[1].kwargs["approximate"], "none");
  EXPECT_EQ(task->workload, "elementwise");
  EXPECT_EQ(task->official().least_bytes.value, (3LL * 4096 * 12288 + 12288) * 4);
  EXPECT_EQ(task->id.size(), 64u);
}

Result<Task> describe_text(const std::string& source) {
  const auto file = std::filesystem::temp_directory_path() / ("cutegen_task_" + random_id());
  CG_CHECK(write_file(file, source));
  auto task = test_worker().describe(Context(), file, {});
  std::filesystem::remove(file);
  return task;
}

TEST(TorchWorker, TellsSizesFromConstants) {
  auto task = describe_text(
      "import torch\n"
      "rows, columns, step = 4096, 512, 4096\n"
      "class Model(torch.nn.Module):\n"
      "    def forward(self, x):\n"
      "        y = x / x.size(0) + 4096\n"
      "        z = y * x.shape[1] - x.numel()\n"
      "        return z * (x.size(1) - 1) + 2 * x.size(0)\n"
      "def get_inputs(): return [torch.randn(rows, columns)]\n");
  ASSERT_TRUE(task) << task.error().text();
  std::vector<std::string> told;
  for (const Node& node : task->graph.nodes) {
    std::string line = node.op;
    for (const SizeArgument& s : node.sizes) line += " " + std::to_string(s.index) + " " + s.text();
    told.push_back(line);
  }
  EXPECT_THAT(told, ElementsAre("aten.div.Tensor 1 dim(x,0)", "aten.add.Tensor",
                                "aten.mul.Tensor 1 dim(x,1)", "aten.sub.Tensor 1 size(x)",
                                "aten.mul.Tensor 1 (dim(x,1)-1)",
                                "aten.add.Tensor 1 another number at other sizes"));
  auto back = read_json<Graph>(to_json(task->graph));
  ASSERT_TRUE(back) << back.error().text();
  EXPECT_EQ(to_json(*back), to_json(task->graph));
  Json wrong = to_json(task->graph);
  wrong["nodes"][0]["sizes"][0]["dim"] = 2;
  EXPECT_FALSE(read_json<Graph>(wrong));
  wrong["nodes"][0]["sizes"][0] = {{"index", 0}, {"tensor", "x"}, {"dim", 0}};  // not a number
  EXPECT_FALSE(read_json<Graph>(wrong));
}

TEST(TorchWorker, TellsBoundsThatFollowTheSlicedAxis) {
  auto task = describe_text(
      "import torch\n"
      "rows, size = 64, 512\n"
      "class Model(torch.nn.Module):\n"
      "    def forward(self, x):\n"
      "        half = x.shape[1] // 2\n"
      "        return x[:, half:] * x[:, :half] + x[:, 1:2]\n"
      "def get_inputs(): return [torch.randn(rows, size)]\n");
  ASSERT_TRUE(task) << task.error().text();
  std::vector<std::string> bounds;
  for (const Node& node : task->graph.nodes)
    for (const SizeArgument& s : node.sizes)
      bounds.push_back(node.id + " " + std::to_string(s.index) + " " + s.text());
  EXPECT_THAT(bounds, ElementsAre("slice 2 the same share of the axis",
                                  "slice_1 3 the same share of the axis"));
  Json wrong = to_json(task->graph);
  ASSERT_TRUE(read_json<Graph>(wrong));
  wrong["nodes"][0]["sizes"][0]["tensor"] = "x";
  EXPECT_FALSE(read_json<Graph>(wrong));
}

// A program that multiplies blocks of the image needs test shapes that blocks cover.
TEST(TorchWorker, KeepsImagesMultiplesOfWindowsSideBySide) {
  const std::string model =
      "class Model(torch.nn.Module):\n"
      "    def __init__(self):\n"
      "        super().__init__()\n"
      "        self.c = torch.nn.Conv2d(3, 1024, 14, stride=STRIDE)\n"
      "    def forward(self, x): return self.c(x).flatten(2).transpose(1, 2)\n"
      "def get_inputs(): return [torch.randn(64, 3, 224, 224)]\n";
  const auto covered = [&](const std::string& stride) {
    auto task = describe_text("import torch\nSTRIDE = " + stride + "\n" + model);
    EXPECT_TRUE(task) << task.error().text();
    std::vector<std::string> names;
    for (const ShapeCase& shape : task->shapes) {
      const Shape& x = shape.tensors.at("x");
      if (x[2] % 14 == 0 && x[3] % 14 == 0) names.push_back(shape.name);
    }
    return names;
  };
  EXPECT_THAT(covered("14"), IsSupersetOf({"official", "small", "odd1", "long1", "long2"}));
  EXPECT_THAT(covered("13"), ElementsAre("official"));
}

// The module writes its sizes as numbers: equal numbers change together.
TEST(TorchWorker, LowersEqualNumbersOfForwardAndInputsTogether) {
  auto task = describe_text(
      "import torch\n"
      "class Model(torch.nn.Module):\n"
      "    def __init__(self):\n"
      "        super().__init__()\n"
      "        self.a = torch.nn.Linear(768, 2304)\n"
      "    def forward(self, x):\n"
      "        return self.a(x).view(16, 1024, 3, 12, 64).permute(2, 0, 3, 1, 4)\n"
      "def get_inputs(): return [torch.randn(16, 1024, 768)]\n");
  ASSERT_TRUE(task) << task.error().text();
  std::set<std::string> names;
  for (const ShapeCase& shape : task->shapes) {
    const Shape &x = shape.tensors.at("x"), &out = shape.tensors.at("out");
    EXPECT_EQ(out, (Shape{3, x[0], 12, x[1], 64})) << shape.name;
    names.insert(shape.name);
  }
  EXPECT_THAT(names, IsSupersetOf({"official", "small", "odd1", "odd2", "long1"}));
  EXPECT_EQ(task->shapes[1].tensors.at("x")[0], 2);
}

TEST(TorchWorker, TellsChunksFromPartsOfANumber) {
  auto task = describe_text(
      "import torch\n"
      "rows, size, least = 64, 512, 40\n"
      "class Model(torch.nn.Module):\n"
      "    def forward(self, x, y):\n"
      "        a, b, c = x.chunk(3, 1)\n"
      "        d, e = y.split(32)\n"
      "        return a, b, c, d, e\n"
      "def get_inputs(): return [torch.randn(rows, size), torch.randn(least)]\n");
  ASSERT_TRUE(task) << task.error().text();
  std::vector<std::string> lengths;
  for (const Node& node : task->graph.nodes)
    for (const SizeArgument& s : node.sizes) lengths.push_back(node.id + " " + s.text());
  EXPECT_THAT(lengths, ElementsAre("split the same share of the axis",
                                   "split_1 the same number at other sizes"));
  auto back = read_json<Graph>(to_json(task->graph));
  ASSERT_TRUE(back) << back.error().text();
  EXPECT_EQ(to_json(*back), to_json(task->graph));
}

TEST(TorchWorker, TellsBoundsThatFollowOtherSizes) {
  auto task = describe_text(
      "import torch\n"
      "rows, size, least = 64, 512, 40\n"
      "class Model(torch.nn.Module):\n"
      "    def forward(self, x, y):\n"
      "        n = x.shape[1]\n"
      "        a, b = torch.split(x, [n - 3, 3], 1)\n"
      "        return x[:, n - 5:n - 2] * a[:, 5 - n:][:, :3] + b, y + x[:, 4 - n:].sum()\n"
      "def get_inputs(): return [torch.randn(rows, size), torch.randn(least)]\n");
  ASSERT_TRUE(task) << task.error().text();
  std::vector<std::string> bounds;
  for (const Node& node : task->graph.nodes) {
    for (const SizeArgument& s : node.sizes)
      bounds.push_back(node.op + " " + std::to_string(s.index) + " " + s.text());
    if (node.op == "aten.slice.Tensor") bounds.push_back("from " + node.args[2].dump());
  }
  // Bounds that count from the end count from the start if they are numbers then.
  EXPECT_THAT(bounds,
              ElementsAre("aten.split_with_sizes.default 1 (dim(x,1)-3)",
                          "aten.slice.Tensor 2 (dim(x,1)-5)", "aten.slice.Tensor 3 (dim(x,1)-2)",
                          "from 507", "from 2", "from 0", "from 4"));
}

// Meta kernels do not compare the sizes of slice_scatter.
TEST(TorchWorker, DerivesOnlyShapesThatSliceScatterAccepts) {
  auto task = describe_text(
      "import torch\n"
      "rows, size = 12, 20\n"
      "class Model(torch.nn.Module):\n"
      "    def forward(self, x, y): return torch.slice_scatter(x, y, 1, 1, 20, 2)\n"
      "def get_inputs(): return [torch.randn(rows, size), torch.randn(rows, size // 2)]\n");
  ASSERT_TRUE(task) << task.error().text();
  for (const ShapeCase& shape : task->shapes) {
    const int64_t columns = shape.tensors.at("x")[1];
    EXPECT_EQ(shape.tensors.at("y")[1], std::min<int64_t>(columns, 20) / 2) << shape.name;
  }
}

TEST(TorchWorker, WritesSmallConstantsAndListsOfIndicesAsNumbers) {
  auto task = describe_text(
      "import torch\n"
      "class Model(torch.nn.Module):\n"
      "    def forward(self, x):\n"
      "        return x[:, [2, 0]] * torch.tensor([0.5, 2.0])\n"
      "def get_inputs(): return [torch.randn(9, 3)]\n");
  ASSERT_TRUE(task) << task.error().text();
  std::vector<std::string> constants;
  for (const Node& node : task->graph.nodes)
    if (node.op == "cutegen.values") constants.push_back(node.args[0].dump());
  EXPECT_THAT(constants, testing::UnorderedElementsAre("[2,0]", "[0.5,2.0]"));
  EXPECT_THAT(task->graph.warnings, testing::IsEmpty());
}

TEST(TorchWorker, GivesSmallAndOddShapesOfTheSameProgram) {
  auto task = describe("softmax.py");
  ASSERT_TRUE(task) << task.error().text();
  ASSERT_EQ(task->shapes.size(), 8u);
  int64_t longest = 0;
  for (size_t i = 1; i < 4; ++i) {
    const Shape& x = task->shapes[i].tensors.at("x");
    EXPECT_LE(x[0] * x[1], 1 << 17);
    longest = std::max(longest, x[1]);
    if (task->shapes[i].kind == ShapeKind::odd) {
      EXPECT_EQ(x[1] % 2, 1);
    }
  }
  EXPECT_GT(longest, 1024);
  EXPECT_THAT(shape_named(*task, "long1").tensors.at("x"), ElementsAre(3, 12296));
  EXPECT_THAT(shape_named(*task, "long2").tensors.at("x"), ElementsAre(3080, 8));
  EXPECT_THAT(shape_named(*task, "long3").tensors.at("x"), ElementsAre(3, 12280));
  EXPECT_THAT(shape_named(*task, "long4").tensors.at("x"), ElementsAre(3064, 8));
  EXPECT_EQ(shape_named(*task, "long1").kind, ShapeKind::derived);
}

// The module fixes the columns. Both tensors must have the same number of rows.
TEST(TorchWorker, VariesEqualLiteralsTogether) {
  auto task = describe_text(
      "import torch\n"
      "class Model(torch.nn.Module):\n"
      "    def __init__(self):\n"
      "        super().__init__()\n"
      "        self.w = torch.nn.Parameter(torch.ones(2048))\n"
      "    def forward(self, x, y):\n"
      "        return (x + y) * self.w\n"
      "def get_inputs(): return [torch.randn(2048, 2048), torch.randn((2048, 2048))]\n");
  ASSERT_TRUE(task) << task.error().text();
  ASSERT_GE(task->shapes.size(), 3u);
  for (size_t i = 1; i < task->shapes.size(); ++i) {
    const auto& tensors = task->shapes[i].tensors;
    EXPECT_LT(tensors.at("x")[0], 2048) << task->shapes[i].name;
    EXPECT_EQ(tensors.at("x"), tensors.at("y")) << task->shapes[i].name;
  }
}

std::string model_of(const std::string& sizes, const std::string& init, const std::string& forward,
                     const std::string& inputs) {
  return "import torch\nfrom torch import nn\n" + sizes +
         "\nclass Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n" + init +
         "    def forward(self, *a):\n        return " + forward +
         "\ndef get_inputs():\n    return [" + inputs + "]\n";
}

// A plan takes the number of groups from the attribute, so all shapes need the same number.
TEST(TorchWorker, TestShapesKeepTheNumberOfGroups) {
  const auto file = std::filesystem::temp_directory_path() / ("cutegen_groups_" + random_id());
  ASSERT_TRUE(write_file(file, model_of("rows, width, num_groups = 1024, 8192, 256",
                                        "        self.norm = nn.GroupNorm(num_groups, width)\n",
                                        "self.norm(a[0])", "torch.randn(rows, width)")));
  auto task = test_worker().describe(Context(), file, {});
  std::filesystem::remove(file);
  ASSERT_TRUE(task) << task.error().text();
  EXPECT_GT(task->shapes.size(), 2u);
  for (const ShapeCase& shape : task->shapes)
    EXPECT_EQ(shape.tensors.at("out")[1] % 256, 0) << shape.name;
  EXPECT_TRUE(std::any_of(task->attributes.begin(), task->attributes.end(),
                          [](const ScalarInfo& s) { return s.name == "norm.num_groups"; }));
}

// PyTorch does not check the channels of a transposed convolution on meta tensors.
TEST(TorchWorker, TestShapesKeepLiteralChannelsOfTransposedConvolutions) {
  const auto file = std::filesystem::temp_directory_path() / ("cutegen_literal_" + random_id());
  ASSERT_TRUE(write_file(file, model_of("", "        self.conv = nn.ConvTranspose2d(16, 24, 3)\n",
                                        "self.conv(a[0])", "torch.randn(8, 16, 64, 64)")));
  auto task = test_worker().describe(Context(), file, {});
  std::filesystem::remove(file);
  ASSERT_TRUE(task) << task.error().text();
  EXPECT_GT(task->shapes.size(), 2u);
  for (const ShapeCase& shape : task->shapes)
    EXPECT_EQ(shape.tensors.at(task->tensors[0].name)[1], 16) << shape.name;
}

// A kernel may compute 128 channels for a test shape's three, so FLOPs do not bound its work.
TEST(TorchWorker, TestShapesOfConvolutionsHaveFewSteps) {
  TaskFile file("pooled",
                model_of("side = 512", "        self.conv = nn.ConvTranspose2d(3, 4, 5)\n",
                         "self.conv(a[0]).mean(dim=(2, 3))", "torch.randn(16, 3, side, side)"));
  auto task = test_worker().describe(Context(), file.path(), {});
  ASSERT_TRUE(task) << task.error().text();
  int64_t most = 0;
  for (const ShapeCase& shape : task->shapes)
    if (shape.kind != ShapeKind::official) {
      const Shape& x = shape.tensors.at(task->tensors[0].name);
      most = std::max(most, x[0] * (x[2] + 4) * (x[3] + 4));
    }
  EXPECT_LE(most * 25, 1 << 21);
  EXPECT_GT(most, 1 << 15);
}

// Returns the largest size of an axis over the test shapes; checks that some shape has at most
// `few`.
int64_t longest_of(const Task& task, const std::string& tensor, size_t axis) {
  int64_t most = 0;
  for (const ShapeCase& s : task.shapes)
    if (s.kind != ShapeKind::official) most = std::max(most, s.tensors.at(tensor)[axis]);
  return most;
}

TEST(TorchWorker, EachSizeOfAProductIsLongOnce) {
  TaskFile file("product", model_of("m, k, n = 4096, 8192, 2048", "", "a[0] @ a[1]",
                                    "torch.randn(m, k), torch.randn(k, n)"));
  auto task = test_worker().describe(Context(), file.path(), {});
  ASSERT_TRUE(task) << task.error().text();
  std::set<int64_t> m, k, n;
  for (const ShapeCase& s : task->shapes) {
    if (s.kind != ShapeKind::derived) continue;
    EXPECT_LE(s.flops.value, 1e8);
    const Shape &x = s.tensors.at(task->tensors[0].name), &out = s.tensors.at("out");
    m.insert(x[0]), k.insert(x[1]), n.insert(out[1]);
  }
  EXPECT_TRUE(m.contains(1032) && k.contains(1032) && n.contains(1032));
}

// With a batch of 1, PyTorch would broadcast `y` along the rows of `x`.
TEST(TorchWorker, NoShapeRepeatsAnOperandThatTheOfficialShapeDoesNotRepeat) {
  TaskFile file("hinge", model_of("batch, width = 4096, 4096", "",
                                  "torch.clamp(1 - a[0] * a[1], min=0).mean()",
                                  "torch.rand(batch, width), torch.rand(batch)"));
  auto task = test_worker().describe(Context(), file.path(), {});
  ASSERT_TRUE(task) << task.error().text();
  ASSERT_GE(task->shapes.size(), 3u);
  for (const ShapeCase& s : task->shapes) EXPECT_GT(s.tensors.at(task->tensors[1].name)[0], 1);
}

TEST(TorchWorker, AttentionKeepsASequenceWhereItsWidthIsFixed) {
  TaskFile file("attention",
                model_of("batch, num_heads, sequence, width = 32, 32, 512, 1024", "",
                         "nn.functional.scaled_dot_product_attention(*a)",
                         "torch.rand(batch, num_heads, sequence, width) for _ in range(3)"));
  auto task = test_worker().describe(Context(), file.path(), {});
  ASSERT_TRUE(task) << task.error().text();
  EXPECT_GE(longest_of(*task, "out", 2), 104);
  EXPECT_GE(shape_named(*task, "small").tensors.at("out")[2], 32);
}

TEST(TorchWorker, WhereTheModuleFixesSizesTheBatchVaries) {
  TaskFile file("fixed", model_of("", "        self.fc = nn.Linear(4096, 1024)\n", "self.fc(*a)",
                                  "torch.randn(32, 4096)"));
  auto task = test_worker().describe(Context(), file.path(), {});
  ASSERT_TRUE(task) << task.error().text();
  ASSERT_GE(task->shapes.size(), 4u);
  std::set<int64_t> rows;
  for (const ShapeCase& s : task->shapes) {
    EXPECT_EQ(s.tensors.at("out")[1], 1024);
    rows.insert(s.tensors.at("out")[0]);
  }
  EXPECT_EQ(rows.size(), task->shapes.size());
}

TEST(TorchWorker, AFewRowsAreEnoughForALargeFixedLayer) {
  struct Row {
    std::string outputs;
    int64_t rows, odd;
  };
  for (const auto& [outputs, rows, odd] :
       {Row{"1024", 8, 5}, Row{"4096", 8, 5}, Row{"11008", 3, 0}, Row{"28672", 3, 0}}) {
    TaskFile file("fixed", model_of("", "        self.fc = nn.Linear(4096, " + outputs + ")\n",
                                    "self.fc(*a)", "torch.randn(512, 4096)"));
    auto task = test_worker().describe(Context(), file.path(), {});
    ASSERT_TRUE(task) << task.error().text();
    ASSERT_GE(task->shapes.size(), odd ? 3U : 2U) << outputs;
    EXPECT_EQ(shape_named(*task, "small").tensors.at("out")[0], rows) << outputs;
    if (odd) {
      EXPECT_EQ(shape_named(*task, "odd1").tensors.at("out")[0], odd) << outputs;
    }
    for (const ShapeCase& shape : task->shapes)
      if (shape.kind != ShapeKind::official) {
        EXPECT_LE(shape.flops.value, 7.2e8) << outputs;
      }
    EXPECT_THAT(task->notes, testing::IsEmpty()) << outputs;
  }
}

TEST(TorchWorker, AFewRowsOfALiteralShapeVaryIfNothingElseDoes) {
  TaskFile file("few", model_of("", "        self.fc = nn.Linear(4096, 1024)\n", "self.fc(*a)",
                                "torch.randn(4, 4096)"));
  auto task = test_worker().describe(Context(), file.path(), {});
  ASSERT_TRUE(task) << task.error().text();
  ASSERT_GE(task->shapes.size(), 3u);
  EXPECT_EQ(shape_named(*task, "small").tensors.at("out")[0], 2);
  EXPECT_EQ(shape_named(*task, "odd1").tensors.at("out")[0], 3);
}

TEST(TorchWorker, LiteralsOfTheModelVaryIfNothingElseDoes) {
  TaskFile file("row", model_of("", "        self.fc = nn.Linear(4096, 1024)\n",
                                "self.fc(*a).view(-1, 1024)", "torch.randn(1, 4096)"));
  auto task = test_worker().describe(Context(), file.path(), {});
  ASSERT_TRUE(task) << task.error().text();
  ASSERT_GE(task->shapes.size(), 3u);
  for (size_t i = 1; i < task->shapes.size(); ++i) {
    const auto& tensors = task->shapes[i].tensors;
    const Shape &weight = tensors.at("fc.weight"), &out = tensors.at("out");
    EXPECT_NE(weight, (Shape{1024, 4096})) << task->shapes[i].name;
    EXPECT_EQ(out[0] * out[1], weight[0]) << task->shapes[i].name;
  }
}

TEST(TorchWorker, DescribesShapesThatAProgramAsksFor) {
  auto task = describe("linear_gelu.py");
  ASSERT_TRUE(task) << task.error().text();
  const ShapeConstants wanted{{"batch", 392}, {"features", 24}, {"hidden", 200}};
  auto told = test_worker().describe_shapes(Context(), *task, {wanted, {{"batch", 0}}, {}});
  ASSERT_TRUE(told) << told.error().text();
  EXPECT_THAT(told->sizes, testing::UnorderedElementsAre(testing::Pair("batch", 2048),
                                                         testing::Pair("features", 4096),
                                                         testing::Pair("hidden", 3072)));
  ASSERT_EQ(told->shapes.size(), 3u);
  ASSERT_TRUE(told->shapes[0]);
  EXPECT_EQ(told->shapes[0]->kind, ShapeKind::derived);
  EXPECT_EQ(told->shapes[0]->constants, wanted);
  EXPECT_THAT(told->shapes[0]->tensors.at("out"), ElementsAre(392, 200));
  EXPECT_FALSE(told->shapes[1]);  // nothing to compute
  ASSERT_TRUE(told->shapes[2]);
  EXPECT_EQ(told->shapes[2]->tensors, task->official().tensors);
  auto set = test_worker().make_set(Context(), *task, *told->shapes[0], "outliers", 3);
  EXPECT_TRUE(set) << set.error().text();
}

TEST(TorchWorker, GroupsOfChannelsGetOddShapesToo) {
  TaskFile file("groups", R"(
import torch
from torch import nn

batch = 64
channels = 64
steps = 512

class Model(nn.Module):
    def forward(self, x):
        return nn.functional.group_norm(x, 8)

def get_inputs():
    return [torch.randn(batch, channels, steps)]

def get_init_inputs():
    return []
)");
  auto task = test_worker().describe(Context(), file.path(), {});
  ASSERT_TRUE(task) << task.error().text();
  const Shape& x = shape_named(*task, "odd1").tensors.at("x");
  EXPECT_EQ(x[0] % 2, 1);
  EXPECT_EQ(x[1] % 16, 8);  // an odd number of channels in each group
  EXPECT_EQ(x[2] % 2, 1);   // "steps" is a size, but "eps" is not
}

TEST(TorchWorker, SizesThatDependOnOneAnotherAreScaledInProportion) {
  TaskFile file("coupled", R"(
import torch
from torch import nn

features = 1024
half = 512
rows = 2048

class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.norm = nn.LayerNorm(features)
    def forward(self, x):
        return self.norm(torch.cat([x, x], dim=-1))

def get_inputs():
    return [torch.randn(rows, half)]

def get_init_inputs():
    return [features]
)");
  auto task = test_worker().describe(Context(), file.path(), {});
  ASSERT_TRUE(task) << task.error().text();
  ASSERT_GE(task->shapes.size(), 4u);
  for (const ShapeCase& shape : task->shapes) {
    const Shape& out = shape.tensors.at("out");
    EXPECT_EQ(out[1], 2 * shape.tensors.at("x")[1]) << shape.name;
  }
  EXPECT_LE(shape_named(*task, "small").tensors.at("x")[0], 64);
  EXPECT_NE(shape_named(*task, "odd1").tensors.at("x"), shape_named(*task, "odd2").tensors.at("x"));
}

// Some versions of PyTorch accept a window larger than its input on meta tensors, but not on real
// ones.
TEST(TorchWorker, NoShapeLeavesNothingToCompute) {
  TaskFile file("window", R"(
import torch
from torch import nn

rows = 512
columns = 40960

class Model(nn.Module):
    def forward(self, x):
        return x[:, 500:] * 2.0

def get_inputs():
    return [torch.randn(rows, columns)]

def get_init_inputs():
    return []
)");
  auto task = test_worker().describe(Context(), file.path(), {});
  ASSERT_TRUE(task) << task.error().text();
  ASSERT_GE(task->shapes.size(), 2u);
  for (const ShapeCase& shape : task->shapes)
    EXPECT_GT(shape.tensors.at("out")[1], 0) << shape.name;
}

TEST(TorchWorker, TakesShapesOfTheUser) {
  DescribeOptions options;
  options.shrink = false;
  options.user_shapes = {{{"rows", 3}, {"columns", 5}}};
  auto task = test_worker().describe(Context(), shipped("relu.py"), options);
  ASSERT_TRUE(task) << task.error().text();
  ASSERT_EQ(task->shapes.size(), 2u);
  EXPECT_EQ(task->shapes[1].kind, ShapeKind::user);
  EXPECT_THAT(task->shapes[1].tensors.at("out"), ElementsAre(3, 5));
  options.user_shapes = {{{"rowz", 3}}};
  task = test_worker().describe(Context(), shipped("relu.py"), options);
  ASSERT_FALSE(task);
  EXPECT_THAT(task.error().message, HasSubstr("rowz"));
  EXPECT_THAT(task.error().remedy, HasSubstr("rows, columns"));
}

TEST(TorchWorker, OneFileDoesNotChangeTheNext) {
  auto before = describe("relu.py");
  ASSERT_TRUE(before);
  TaskFile rude("rude", kBody + std::string(R"(
torch.set_default_dtype(torch.float64)
torch.set_grad_enabled(False)
import os, sys
os.environ["HOME"] = "/nowhere"
sys.path.clear()
sys.stdout = None
)"));
  ASSERT_TRUE(test_worker().describe(Context(), rude.path(), {}));
  auto after = describe("relu.py");
  ASSERT_TRUE(after) << after.error().text();
  EXPECT_EQ(to_json(*before), to_json(*after));
}

TEST(TorchWorker, SaysItsVersionAndGrade) {
  EXPECT_THAT(test_worker().version(), HasSubstr("torch "));
  EXPECT_NE(test_worker().grade().label, Protection::none);
}

TEST(TorchWorker, OneThatDoesNotStartInTimeSaysSo) {
  const auto script = std::filesystem::temp_directory_path() / ("cutegen_slow_" + random_id());
  std::ofstream(script) << "#!/bin/sh\nexec sleep 20\n";
  std::filesystem::permissions(script, std::filesystem::perms::owner_all);
  TorchWorkerOptions options;
  options.python = script.string();
  options.start_timeout = std::chrono::milliseconds(300);
  auto worker = TorchWorker::open(options);
  std::filesystem::remove(script);
  ASSERT_FALSE(worker);
  EXPECT_EQ(worker.error().kind, ErrorKind::timeout);
  EXPECT_THAT(worker.error().message, HasSubstr("within 300 ms"));
  EXPECT_THAT(worker.error().remedy, HasSubstr("end other programs on this machine"));
}

TEST(TorchWorker, OpenNamesAnInterpreterThatIsNotThere) {
  auto worker = TorchWorker::open({.python = "/no/such/python"});
  ASSERT_FALSE(worker);
  EXPECT_EQ(worker.error().kind, ErrorKind::user);
  EXPECT_THAT(worker.error().remedy, HasSubstr("--python"));
}

}  // namespace
}  // namespace cutegen::torch
