// SPDX-License-Identifier: Apache-2.0
// The least bytes of modules that read only parts of their inputs: a lower bound for every program.
// The figures were checked by changing the input elements one after another.
#include <gtest/gtest.h>

#include "core/floor.h"
#include "torch/testing/test_worker.h"

namespace cutegen::torch {
namespace {

struct Case {
  const char* name;
  const char* forward;  // the lines of forward()
  const char* inputs;   // "x=torch.randn(64, 128); y=..."
  int64_t read;         // bytes
  const char* init = "pass";
};

std::string least_source(const Case& c) {
  std::string names, values, text = c.inputs;
  for (size_t at = 0; at < text.size();) {
    const size_t equals = text.find('=', at), end = std::min(text.find(';', at), text.size());
    names += ", " + text.substr(at, equals - at);
    values += text.substr(equals + 1, end - equals - 1) + ", ";
    at = text.find_first_not_of("; ", end);
  }
  return std::string("import torch\nfrom torch import nn\nimport torch.nn.functional as F\n") +
         "def symmetric(n):\n    a = torch.randn(n, n)\n    return (a + a.T) / 2\n" +
         "class Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n        " +
         c.init + "\n    def forward(self" + names + "):\n        " + c.forward +
         "\ndef get_inputs():\n    return [" + values +
         "]\ndef get_init_inputs():\n    return []\n";
}

void expect_reads(const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    TaskFile file("least", least_source(c));
    auto task = test_worker().describe(Context(), file.path(), {.shrink = false});
    ASSERT_TRUE(task) << c.name << ": " << task.error().text();
    const int64_t written = written_bytes(*task, task->official()).value;
    EXPECT_EQ(task->official().least_bytes.value - written, c.read) << c.name;
  }
}

constexpr const char* kX = "x=torch.randn(64, 128)";
constexpr const char* kBoth = "x=torch.randn(64, 128); y=torch.randn(64, 128)";
constexpr int64_t kAll = 64 * 128 * 4;

TEST(LeastBytes, WhatNoResultDependsOnIsNotRead) {
  expect_reads({{"all", "return torch.relu(x)", kX, kAll},
                {"unused", "return torch.relu(x)", kBoth, kAll},
                {"times zero", "return x + 0 * y", kBoth, kAll},
                {"to the power of zero", "return x + y ** 0", kBoth, kAll},
                {"a zero that is a value", "return x * y", kBoth, 2 * kAll},
                {"shape only", "return x + torch.zeros_like(y)", kBoth, kAll},
                {"overwritten", "x.zero_()\n        return x + 2", kX, 0},
                {"an operator without a rule", "return torch.linalg.pinv(x)", kX, 0}});
}

TEST(LeastBytes, ViewsCountWhatTheyShow) {
  expect_reads(
      {{"half of the columns", "return torch.relu(x[:, :64])", kX, kAll / 2},
       {"both halves", "return x[:, :64] * torch.sigmoid(x[:, 64:])", kX, kAll},
       {"halves that overlap", "return x[:, :64] * x[:, 32:96]", kX, kAll / 2},
       {"chunks", "a, b = x.chunk(2, 1)\n        return a * torch.sigmoid(b)", kX, kAll},
       {"transposed", "return torch.relu(x.t()[:64])", kX, kAll / 2},
       {"of a copy", "return torch.relu((2 * x).t().contiguous()[:64])", kX, kAll / 2},
       {"of other shape", "return torch.relu(x.view(64, 2, 64)[:, 1])", kX, kAll / 2},
       {"expanded", "return x + 1", "x=torch.randn(1, 128).expand(64, 128)", 128 * 4},
       {"broadcast", "return x + b", "x=torch.randn(64, 128); b=torch.randn(128)", kAll + 128 * 4},
       {"every step of a loop",
        "h = torch.zeros(64)\n        for i in range(128): h = h * 0.5 + x[:, i]\n"
        "        return h",
        kX, kAll}});
}

TEST(LeastBytes, TrianglesAndMasksThatTheSourceStates) {
  const char* square = "x=torch.randn(64, 64)";
  constexpr int64_t kTriangle = 64 * 65 / 2 * 4;
  expect_reads(
      {{"tril", "return torch.tril(x)", square, kTriangle},
       {"triu above", "return torch.triu(x, 1)", square, kTriangle - 64 * 4},
       {"constant mask", "return x * torch.tril(torch.ones(64, 64))", square, kTriangle},
       {"masked_fill", "return x.masked_fill(torch.triu(torch.ones(64, 64), 1).bool(), -1e9)",
        square, kTriangle},
       {"mask among the inputs", "return x * y", kBoth, 2 * kAll},
       {"promised zeros", "return a @ b",
        "a=torch.tril(torch.randn(64, 64)); b=torch.triu(torch.randn(64, 64))", 2 * kTriangle},
       {"promised symmetry", "return a @ b", "a=symmetric(64); b=torch.randn(64, 64)",
        64 * 64 * 4 / 2 + 64 * 64 * 4},
       {"constant input", "return x + y", "x=torch.randn(64, 64); y=torch.zeros(64, 64)",
        64 * 64 * 4}});
}

TEST(LeastBytes, GathersReadWhatTheirIndicesMustName) {
  expect_reads(
      {{"embedding", "return self.e(i)", "i=torch.randint(0, 100, (10,))", 32 * 4 + 10 * 8,
        "self.e = nn.Embedding(100, 32)"},
       {"index_select", "return x.index_select(1, i)",
        "x=torch.randn(64, 128); i=torch.randint(0, 128, (4,))", 64 * 4 + 4 * 8},
       {"gather", "return x.gather(1, i)",
        "x=torch.randn(64, 128); i=torch.randint(0, 128, (64, 3))", 64 * 4 + 64 * 3 * 8},
       {"gather of a softmax", "return torch.log_softmax(x, -1).gather(1, i)",
        "x=torch.randn(64, 128); i=torch.randint(0, 128, (64, 3))", kAll + 64 * 3 * 8},
       {"gather across a softmax", "return torch.softmax(x, 0).gather(1, i)",
        "x=torch.randn(64, 128); i=torch.randint(0, 128, (64, 3))", 64 * 4 + 64 * 3 * 8},
       {"scatter", "return x.scatter(1, i, 0.0)",
        "x=torch.randn(64, 128); i=torch.randint(0, 128, (64, 3))", kAll - 64 * 3 * 4 + 64 * 3 * 8},
       {"cross entropy", "return F.cross_entropy(x, t)",
        "x=torch.randn(64, 128); t=torch.randint(0, 128, (64,))", kAll + 64 * 8}});
}

TEST(LeastBytes, ProductsAndWindows) {
  const char* image = "x=torch.randn(2, 3, 32, 32)";
  constexpr int64_t kImage = 2 * 3 * 32 * 32 * 4;
  expect_reads(
      {{"product", "return x @ w", "x=torch.randn(64, 128); w=torch.randn(128, 32)",
        kAll + 128 * 32 * 4},
       {"last step of a layer", "return self.l(x)[:, -1]", "x=torch.randn(8, 16, 32)",
        (8 * 32 + 32 * 64 + 4) * 4, "self.l = nn.Linear(32, 64)"},
       {"convolution", "return self.c(x)", image, kImage + (8 * 27 + 8) * 4,
        "self.c = nn.Conv2d(3, 8, 3, padding=1)"},
       {"stride beyond the window", "return self.c(x)", image, kImage / 4 + 24 * 4,
        "self.c = nn.Conv2d(3, 8, 1, stride=2, bias=False)"},
       {"transposed", "return self.c(x)", image, kImage + 8 * 27 * 4,
        "self.c = nn.ConvTranspose2d(3, 8, 3, stride=2, padding=1, bias=False)"},
       {"pool", "return F.max_pool2d(x, 2)", image, kImage},
       {"pool with gaps", "return F.avg_pool2d(x, 1, 2)", image, kImage / 4},
       {"crop", "return F.pad(x, (-1, -1))", "x=torch.randn(64, 128)", 64 * 126 * 4},
       {"batch norm", "return self.b(x)", image, kImage + 4 * 3 * 4, "self.b = nn.BatchNorm2d(3)"},
       {"last step of a recurrent layer", "return self.r(x)[0][:, -1]", "x=torch.randn(4, 10, 8)",
        (4 * 10 * 8 + 64 * 8 + 64 * 16 + 128) * 4, "self.r = nn.LSTM(8, 16, batch_first=True)"}});
}

TEST(LeastBytes, AttentionAndItsMask) {
  const char* qkv =
      "q=torch.randn(2, 4, 16, 32); k=torch.randn(2, 4, 16, 32); v=torch.randn(2, 4, 16, 32)";
  constexpr int64_t kOne = 2 * 4 * 16 * 32 * 4;
  // 1088 of the 2048 scores count: at least 68 rows and 68 columns.
  constexpr int64_t kCausal = kOne + 2 * 68 * 32 * 4;
  expect_reads(
      {{"all", "return F.scaled_dot_product_attention(q, k, v)", qkv, 3 * kOne},
       {"causal", "return F.scaled_dot_product_attention(q, k, v, is_causal=True)", qkv, kCausal},
       {"mask of infinities",
        "m = torch.triu(torch.full((16, 16), float('-inf')), 1)\n"
        "        return torch.softmax(q @ k.transpose(-1, -2) + m, -1) @ v",
        qkv, kCausal}});
}

TEST(LeastBytes, WhatIsWrittenInPlaceIsWrittenOnce) {
  const Case c{"in place", "x.add_(1)\n        return x * 2", kX, kAll};
  expect_reads({c});
  TaskFile file("least", least_source(c));
  auto task = test_worker().describe(Context(), file.path(), {.shrink = false});
  ASSERT_TRUE(task) << task.error().text();
  EXPECT_EQ(task->official().least_bytes.value, 3 * kAll) << "read, written, and the output";
}

}  // namespace
}  // namespace cutegen::torch
