// SPDX-License-Identifier: Apache-2.0
// Tensors that forward() mutates: how the worker describes them, and their final values.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tensor/half.h"
#include "torch/testing/test_worker.h"

namespace cutegen::torch {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A task file with `body` in Model and these inputs.
std::string task_text(const std::string& body, const std::string& inputs) {
  return "import torch\nfrom torch import nn\n\nrows = 64\n\nclass Model(nn.Module):\n" + body +
         "\ndef get_inputs():\n    return [" + inputs + "]\n";
}

Result<Task> described(const std::string& text, const std::string& side = {}) {
  TaskFile file("state", text, side);
  return test_worker().describe(Context(), file.path(), {});
}

std::vector<std::string> mutated(const Task& task) {
  std::vector<std::string> out;
  for (const TensorInfo* t : results_of(task))
    if (t->mutated) out.push_back(t->name);
  return out;
}

// The values of one part of a tensor in a set.
std::vector<double> values(const TensorSet& set, const std::string& name, const std::string& part) {
  auto memory = Mapping::map(set.memory.get(), set.bytes, false);
  for (const TensorSlot& s : set.slots) {
    if (s.name != name || s.part != part) continue;
    std::vector<double> out(s.bytes / size_of(s.dtype));
    to_double(s.dtype, {memory->data() + s.offset, s.bytes}, out);
    return out;
  }
  ADD_FAILURE() << name << " has no " << part;
  return {};
}

TensorSet set_of(const Task& task, const std::string& family = "made") {
  auto set = test_worker().make_set(Context(), task, task.official(), family, 7);
  EXPECT_TRUE(set) << set.error().text();
  return set ? std::move(*set) : TensorSet{};
}

constexpr const char* kNorm =
    "    def __init__(self):\n        super().__init__()\n"
    "        self.norm = nn.BatchNorm1d(4)\n\n"
    "    def forward(self, x):\n        return self.norm(x)\n";

TEST(Mutated, BatchNormInTrainModeMutatesItsStatistics) {
  const std::string text = task_text(kNorm, "torch.randn(rows, 4)");
  auto eval = described(text);
  ASSERT_TRUE(eval) << eval.error().text();
  EXPECT_THAT(mutated(*eval), IsEmpty());
  auto task = described(text, "mode = \"train\"\n");
  ASSERT_TRUE(task) << task.error().text();
  EXPECT_THAT(mutated(*task),
              ElementsAre("norm.num_batches_tracked", "norm.running_mean", "norm.running_var"));
  EXPECT_THAT(task->returns, IsEmpty());
  TensorSet set = set_of(*task);
  auto x = values(set, "x", "value"), before = values(set, "norm.running_mean", "value");
  auto after = values(set, "norm.running_mean", "truth");
  double mean = 0;
  for (size_t row = 0; row < 64; ++row) mean += x[row * 4 + 2] / 64;
  EXPECT_NEAR(after[2], 0.9 * before[2] + 0.1 * mean, 1e-7);
  EXPECT_EQ(values(set, "norm.running_mean", "sensitivity").size(), 4U);
  EXPECT_EQ(values(set, "norm.num_batches_tracked", "truth")[0],
            values(set, "norm.num_batches_tracked", "value")[0] + 1);
}

TEST(Mutated, WritesThroughViewsAndDataCount) {
  auto task =
      described(task_text("    def forward(self, x, cache, y):\n"
                          "        cache[:, 3] = x\n        y.data.mul_(2)\n"
                          "        return cache.sum(1)\n",
                          "torch.randn(rows, 8), torch.zeros(rows, 16, 8), torch.ones(rows)"));
  ASSERT_TRUE(task) << task.error().text();
  EXPECT_THAT(mutated(*task), ElementsAre("cache", "y"));
  TensorSet set = set_of(*task);
  auto x = values(set, "x", "value"), before = values(set, "cache", "value");
  auto after = values(set, "cache", "truth");
  EXPECT_NE(before[0], 0) << "zeros would not show whether a program reads what was there";
  for (size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(after[3 * 8 + i], x[i]);
    EXPECT_EQ(after[2 * 8 + i], before[2 * 8 + i]);
  }
  EXPECT_EQ(values(set, "y", "truth")[5], 2 * values(set, "y", "value")[5]);
}

// Counts the largest part that one call writes, and the initial values that it must read.
TEST(Mutated, LeastBytesCountWhatIsReadAndWritten) {
  auto bytes = [](const std::string& body, const std::string& inputs) {
    auto task = described(task_text(body, inputs));
    EXPECT_TRUE(task) << task.error().text();
    return task ? task->official().least_bytes.value : -1;
  };
  const std::string cache = "torch.randn(rows, 8), torch.zeros(rows, 16, 8)";
  constexpr int64_t kRow = 64 * 8 * 4, kCache = 16 * kRow;
  EXPECT_EQ(bytes("    def forward(self, x, c):\n        c[:, 3] = x\n", cache), 2 * kRow);
  EXPECT_EQ(
      bytes("    def forward(self, x, c):\n        c[:, 3] = x\n        return c.sum(1)\n", cache),
      kRow + kCache + kRow);
  EXPECT_EQ(
      bytes("    def forward(self, x, c):\n        c.mul_(0.5)\n        return x + 1\n", cache),
      2 * kCache + 2 * kRow);
  EXPECT_EQ(bytes("    def forward(self, x, c):\n        c.zero_()\n        return x + 1\n", cache),
            kCache + 2 * kRow);
  // A ReLU writes only negative elements, so it may write nothing.
  EXPECT_EQ(bytes("    def forward(self, x, c):\n        return c.relu_()\n", cache), kCache);
}

// A program may leave elements that do not change, whatever forward() does with them.
TEST(Mutated, LeastBytesLeaveOutWhatAProgramMayKeep) {
  auto bytes = [](const std::string& body) {
    auto task = described(task_text(body, "torch.randn(rows, 8)"));
    EXPECT_TRUE(task) << task.error().text();
    return task ? task->official().least_bytes.value : -1;
  };
  constexpr int64_t kX = 64 * 8 * 4, kLast = 8 * 4;
  const std::string forward = "    def forward(self, x):\n        ";
  const std::string init =
      "    def __init__(self):\n        super().__init__()\n"
      "        self.register_buffer(\"last\", torch.zeros(8))\n\n" +
      forward;
  EXPECT_EQ(bytes(forward + "x.copy_(torch.relu(x))\n"), 0);
  EXPECT_EQ(bytes(forward + "x.copy_(x * 2)\n"), 2 * kX);
  EXPECT_EQ(bytes(forward + "x.add_(0)\n"), 0);
  EXPECT_EQ(bytes(forward + "x.add_(0)\n        return x * 2\n"), 2 * kX);
  EXPECT_EQ(bytes(forward + "x.tril_()\n"), 0);
  EXPECT_EQ(bytes(init + "self.last = torch.relu(self.last + x[0])\n        return x * 2\n"),
            2 * kX);
  EXPECT_EQ(bytes(init + "self.last = self.last * 0.5 + x[0]\n        return x * 2\n"),
            2 * kX + 2 * kLast);
  EXPECT_EQ(bytes(init + "self.last = x[0].clone()\n        return x * 2\n"), 2 * kX + kLast);
}

TEST(Mutated, TheMathModeOfATaskWithoutOutputsIsThatOfItsMutatedTensors) {
  auto task = described(
      task_text("    def forward(self, x, c):\n        c[:] = x @ x.T\n",
                "torch.randn(rows, 8).half(), torch.zeros(rows, rows, dtype=torch.half)"));
  ASSERT_TRUE(task) << task.error().text();
  EXPECT_EQ(task->math_mode, MathMode::fp16);
}

TEST(Mutated, AnExcerptHasFinalValues) {
  auto task = described(task_text("    def forward(self, x, y):\n        x.add_(y)\n",
                                  "torch.randn(8192, 512), torch.randn(8192, 512)"));
  ASSERT_TRUE(task) << task.error().text();
  auto planned = test_worker().plan_excerpt(Context(), *task, task->official());
  ASSERT_TRUE(planned) << planned.error().text();
  EXPECT_LT(planned->shape.tensors.at("x")[0], task->official().tensors.at("x")[0]);
  auto set = test_worker().make_excerpt(Context(), *task, *planned, "signed", 7);
  ASSERT_TRUE(set) << set.error().text();
  const bool has_truth = std::any_of(set->slots.begin(), set->slots.end(), [](const auto& slot) {
    return slot.name == "x" && slot.part == part::truth;
  });
  EXPECT_TRUE(has_truth);
}

TEST(Mutated, AnExcerptCutsEveryMutatedTensor) {
  auto task =
      described(task_text("    def forward(self, x, y):\n        y.add_(1)\n"
                          "        return x * 2\n",
                          "torch.randn(4096, 4096), torch.randn(511)"));
  ASSERT_TRUE(task) << task.error().text();
  auto planned = test_worker().plan_excerpt(Context(), *task, task->official());
  ASSERT_FALSE(planned);
  EXPECT_EQ(planned.error().kind, ErrorKind::unsupported);
  EXPECT_THAT(planned.error().message, HasSubstr("no axis of its output can be cut"));
}

// Tracing keeps small buffers as real tensors. If an operator also reads an input, it runs on a
// copy of the buffer on the device `meta`.
TEST(Mutated, AnInPlaceOperatorReturnsItsTarget) {
  auto task = described(task_text(
      "    def __init__(self):\n        super().__init__()\n"
      "        self.register_buffer('mean', torch.zeros(8))\n"
      "    def forward(self, x):\n        return self.mean.mul_(0.9).add_(x.mean(0), alpha=0.1)\n",
      "torch.randn(rows, 8)"));
  ASSERT_TRUE(task) << task.error().text();
  EXPECT_THAT(task->returns, ElementsAre("mean"));
  EXPECT_TRUE(task->with_role(TensorRole::output).empty());
  EXPECT_EQ(task->graph.finals.at("mean"), "add");
  Json wrong = to_json(task->graph);
  ASSERT_TRUE(read_json<Graph>(wrong));
  wrong["finals"]["mean"] = "nowhere";
  EXPECT_FALSE(read_json<Graph>(wrong));
}

// Tracing keeps small constants real, but the sum depends on an input.
TEST(Mutated, AConstantThatForwardOverwritesIsNotAConstant) {
  auto task = described(
      task_text("    def forward(self, x):\n        return torch.zeros(8).add_(x[0]) * x\n",
                "torch.randn(rows, 8)"));
  ASSERT_TRUE(task) << task.error().text();
  std::vector<std::string> operators;
  for (const Node& node : task->graph.nodes) operators.push_back(node.op);
  EXPECT_THAT(operators, testing::Contains("aten.add.Tensor"));
  EXPECT_THAT(task->graph.warnings, testing::IsEmpty());
}

TEST(Mutated, AReturnedMutatedTensorIsNoOutputOfItsOwn) {
  auto task =
      described(task_text("    def forward(self, x, y):\n        x.relu_()\n"
                          "        return x, x + y, x\n",
                          "torch.randn(rows, 8), torch.randn(rows, 8)"));
  ASSERT_TRUE(task) << task.error().text();
  EXPECT_THAT(task->returns, ElementsAre("x", "out.1", "x"));
  ASSERT_EQ(task->with_role(TensorRole::output).size(), 1U);
  TensorSet set = set_of(*task);
  EXPECT_EQ(values(set, "out.1", "truth")[9],
            values(set, "x", "truth")[9] + values(set, "y", "value")[9]);
}

TEST(Mutated, ForwardMayReturnNothing) {
  auto task = described(
      task_text("    def forward(self, x):\n        x.add_(1)\n", "torch.randn(rows, 8)"));
  ASSERT_TRUE(task) << task.error().text();
  EXPECT_THAT(task->with_role(TensorRole::output), IsEmpty());
  TensorSet set = set_of(*task, "special");
  EXPECT_EQ(values(set, "x", "native").size(), 64U * 8);
  auto none =
      described(task_text("    def forward(self, x):\n        x + 1\n", "torch.randn(rows)"));
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message, HasSubstr("returns no tensor"));
}

TEST(Mutated, AReplacedTensorIsMutatedAsFarAsItKeepsItsShape) {
  const std::string init =
      "    def __init__(self):\n        super().__init__()\n"
      "        self.register_buffer(\"last\", torch.zeros(8))\n"
      "        self.seen = torch.zeros(2, 8)\n\n    def forward(self, x):\n";
  auto task = described(task_text(init + "        self.last = self.last * 0.5 + x[0]\n"
                                         "        self.seen = torch.cat([self.seen, x])\n"
                                         "        return x * 2\n",
                                  "torch.randn(rows, 8)"));
  ASSERT_TRUE(task) << task.error().text();
  EXPECT_THAT(mutated(*task), ElementsAre("last"));
  EXPECT_THAT(task->notes, Contains(HasSubstr("replaces 'seen' by a tensor of another shape")));
  TensorSet set = set_of(*task);
  EXPECT_EQ(values(set, "last", "truth")[3],
            values(set, "last", "value")[3] * 0.5 + values(set, "x", "value")[3]);
}

TEST(Mutated, ACopyOfItselfAndAByProductAreNoState) {
  const std::string init =
      "    def __init__(self):\n        super().__init__()\n"
      "        self.register_buffer(\"mask\", torch.ones(8))\n"
      "        self.scaled, self.state = torch.zeros(8), torch.zeros(8)\n\n    def forward(self, "
      "x):\n";
  auto task = described(task_text(init + "        self.mask = self.mask.to(x.device)\n"
                                         "        self.scaled = self.mask * 2\n"
                                         "        self.state = self.state + x[0]\n"
                                         "        return x * self.scaled\n",
                                  "torch.randn(rows, 8)"));
  ASSERT_TRUE(task) << task.error().text();
  EXPECT_THAT(mutated(*task), ElementsAre("state"));
}

TEST(Mutated, TheSideFileMayNameThem) {
  const std::string text =
      task_text("    def forward(self, x, y):\n        x.add_(y)\n        return x * y\n",
                "torch.randn(rows), torch.randn(rows)");
  auto task = described(text, "mutated = [\"x\", \"y\"]\n");
  ASSERT_TRUE(task) << task.error().text();
  EXPECT_THAT(mutated(*task), ElementsAre("x"));
  EXPECT_THAT(task->notes, Contains(HasSubstr("'y' is mutated, but forward() does not change it")));
}

}  // namespace
}  // namespace cutegen::torch
