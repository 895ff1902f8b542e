// SPDX-License-Identifier: Apache-2.0
// Checks values of sets from the real worker: the family `extremes`, indices at small shapes,
// float8.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tensor/half.h"
#include "torch/testing/test_worker.h"

namespace cutegen::torch {
namespace {

using testing::HasSubstr;

Values values_of(const Task& task, const ShapeCase& shape, const std::string& family,
                 uint64_t seed = 5) {
  auto set = test_worker().make_set(Context(), task, shape, family, seed);
  if (!set) {
    ADD_FAILURE() << shape.name << ", " << family << ": " << set.error().text();
    return {};
  }
  return read_values(std::move(*set));
}

Task task_of(const std::string& model, const std::string& inputs) {
  TaskFile file("values",
                "import torch\nfrom torch import nn\nimport torch.nn.functional as F\n"
                "rows, columns = 640, 2000\n\nclass Model(nn.Module):\n" +
                    model + "\n\ndef get_inputs():\n    return [" + inputs + "]\n");
  auto task = test_worker().describe(Context(), file.path(), {});
  EXPECT_TRUE(task) << task.error().text();
  return task ? *task : Task{};
}

std::vector<double> row_of(const std::vector<double>& values, int64_t row, int64_t columns) {
  return {values.begin() + row * columns, values.begin() + (row + 1) * columns};
}

TEST(Extremes, RowsAreLargeNegativePositiveSubnormalAndTied) {
  const Task task = task_of("    def forward(self, x):\n        return torch.softmax(x, -1)",
                            "torch.randn(rows, columns)");
  const ShapeCase& shape = shape_named(task, "small");
  const Shape& x = shape.tensors.at("x");
  ASSERT_GE(x[0], 8);
  const Values set = values_of(task, shape, "extremes");
  EXPECT_FALSE(set.set.as_made);
  const auto values = set.of("x", "value");
  int below = 0, far_below = 0, above = 0, subnormal = 0, huge = 0, tied = 0;
  for (int64_t row = 0; row < x[0]; ++row) {
    const auto r = row_of(values, row, x[1]);
    const double most = *std::max_element(r.begin(), r.end());
    const double least = *std::min_element(r.begin(), r.end());
    below += most < -1000;
    far_below += most < -1e29;
    above += least > 1000;
    huge += most > 1e29;
    subnormal += std::all_of(r.begin(), r.end(), [](double v) { return std::abs(v) < 0x1p-126; });
    tied += std::count(r.begin(), r.end(), most) > 2;
  }
  EXPECT_GE(below, 2);
  EXPECT_GE(far_below, 1);
  EXPECT_GE(above, 1);
  EXPECT_GE(huge, 1);
  EXPECT_GE(subnormal, 1);
  EXPECT_GE(tied, x[0] / 3);
}

TEST(Extremes, AShapeWhoseNameEndsWithOneHasColumnsOfEachKind) {
  const Task task = task_of("    def forward(self, x):\n        return torch.softmax(x, 0)",
                            "torch.randn(rows, columns)");
  const ShapeCase& shape = shape_named(task, "odd1");
  const Shape& x = shape.tensors.at("x");
  const auto values = values_of(task, shape, "extremes").of("x", "value");
  int below = 0;
  for (int64_t column = 0; column < x[1]; ++column) {
    double most = -INFINITY;
    for (int64_t row = 0; row < x[0]; ++row) most = std::max(most, values[row * x[1] + column]);
    below += most < -1000;
  }
  EXPECT_GE(below, 2);
}

TEST(Extremes, HalfStaysInItsRangeAndHasItsSubnormalNumbers) {
  const Task task = task_of("    def forward(self, x):\n        return torch.softmax(x, -1)",
                            "torch.randn(rows, columns, dtype=torch.float16)");
  const ShapeCase& shape = shape_named(task, "small");
  const auto values = values_of(task, shape, "extremes").of("x", "value");
  double largest = 0;
  int subnormal = 0;
  for (double v : values) {
    EXPECT_TRUE(std::isfinite(v));
    largest = std::max(largest, std::abs(v));
    subnormal += v != 0 && std::abs(v) < 0x1p-14;
  }
  EXPECT_GT(largest, 40000);
  EXPECT_GE(subnormal, shape.tensors.at("x")[1] / 2);
}

// PyTorch's fused attention hides the softmax over nothing but -infinity, which is 0 / 0.
TEST(Truth, AnAttentionRowWhoseScoresAreAllMinusInfinityIsZeroOrNaN) {
  const Task task = task_of(
      "    def forward(self, q, k, v, mask):\n"
      "        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)",
      "torch.randn(1, 3, 48, 24), torch.randn(1, 3, 48, 24), torch.randn(1, 3, 48, 24), "
      "torch.zeros(48, 48).index_fill(0, torch.arange(0, 48, 4), -torch.inf)");
  const ShapeCase& shape = shape_named(task, "small");
  const Shape& out = shape.tensors.at("out");
  const int64_t keys = shape.tensors.at("mask")[1];
  for (const char* family : {"made", "signed"}) {
    const Values set = values_of(task, shape, family);
    const auto mask = set.of("mask", "value"), truth = set.of("out", "truth"),
               native = set.of("out", "native"), sensitivity = set.of("out", "sensitivity");
    size_t masked_elements = 0;
    for (size_t i = 0; i < truth.size(); ++i) {
      const auto scores = row_of(mask, int64_t(i) / out[3] % out[2], keys);
      const bool masked =
          std::all_of(scores.begin(), scores.end(), [](double m) { return m == -INFINITY; });
      masked_elements += masked;
      EXPECT_EQ(truth[i] == 0 && native[i] == 0, masked) << family << " " << i;
      EXPECT_EQ(std::signbit(sensitivity[i]), masked) << family << " " << i << ": NaN also passes";
    }
    EXPECT_GT(masked_elements, truth.size() / 5) << family;
  }
}

// An additive mask with a bias. Outliers of infinite size would make all results NaN. The second
// module has a result only if the mask is below 1.5.
TEST(Outliers, OfAMaskWithInfinitiesAreFinite) {
  const std::string mask =
      "torch.rand(64, 64).masked_fill(torch.ones(64, 64).triu(1).bool(), -torch.inf)";
  for (const std::string result :
       {"torch.softmax(x + mask, -1)", "torch.log(1.5 - mask.clamp(0)).sum(-1, True) + x"}) {
    const Task task = task_of("    def forward(self, x, mask):\n        return " + result,
                              "torch.randn(64, 64), " + mask);
    const Values set = values_of(task, shape_named(task, "small"), "outliers");
    const auto values = set.of("mask", "value"), truth = set.of("out", "truth");
    EXPECT_GT(std::count(values.begin(), values.end(), -INFINITY), int64_t(values.size() / 3));
    const double most = *std::max_element(values.begin(), values.end());
    EXPECT_EQ(most > 1.5, result.starts_with("torch.softmax")) << most;
    EXPECT_LT(most, INFINITY);
    for (double v : truth) EXPECT_TRUE(std::isfinite(v)) << v;
  }
}

TEST(Truth, IntegersCastToBfloat16MultiplyFloat64Inputs) {
  const Task task = task_of(
      "    def __init__(self):\n"
      "        super().__init__()\n"
      "        w = torch.randint(-127, 128, (24, columns), dtype=torch.int8)\n"
      "        self.register_buffer('w', w)\n\n"
      "    def forward(self, x):\n"
      "        return x @ self.w.to(torch.bfloat16).t()",
      "torch.randn(rows, columns, dtype=torch.bfloat16)");
  const Values set = values_of(task, shape_named(task, "small"), "made");
  EXPECT_THAT(set.set.notes, testing::IsEmpty());
  const auto truth = set.of("out", "truth"), native = set.of("out", "native");
  ASSERT_EQ(truth.size(), native.size());
  size_t rounded = 0;
  for (size_t i = 0; i < truth.size(); ++i) {
    EXPECT_NEAR(native[i], truth[i], 0.01 * std::abs(truth[i]) + 1) << i;
    rounded += native[i] != truth[i];
  }
  EXPECT_GT(rounded, truth.size() / 2);
}

// One program may square in float and another in double; both must pass.
TEST(Extremes, SquaresStayFinite) {
  const Task task = task_of(
      "    def forward(self, x):\n"
      "        return F.layer_norm(x, x.shape[-1:])",
      "torch.randn(rows, columns)");
  for (double v : values_of(task, shape_named(task, "small"), "extremes").of("x", "value"))
    EXPECT_LT(std::abs(v), 1e16);
}

TEST(Extremes, ProbabilitiesGetZerosWhereTheModuleTakesThem) {
  const std::string inputs =
      "torch.rand(rows, columns).softmax(-1), "
      "torch.rand(rows, columns).softmax(-1)";
  const Task task = task_of(
      "    def forward(self, p, q):\n"
      "        return F.kl_div(torch.log(p), q, reduction='none')",
      inputs);
  const ShapeCase& shape = shape_named(task, "small");
  const Values set = values_of(task, shape, "extremes");
  const auto p = set.of("p", "value"), q = set.of("q", "value");
  EXPECT_EQ(std::count(p.begin(), p.end(), 0.0), 0);  // the logarithm of 0 is infinite
  EXPECT_GT(std::count(q.begin(), q.end(), 0.0), int64_t(q.size()) / 20);
  const int64_t columns = shape.tensors.at("q")[1];
  for (int64_t row = 0; row < shape.tensors.at("q")[0]; ++row) {
    double sum = 0;
    for (double v : row_of(q, row, columns)) sum += v;
    EXPECT_NEAR(sum, 1, 1e-4);
  }
}

// If p and q underflow, PyTorch's own sum of p * log(q) is NaN, but an accurate kernel gives zero.
TEST(Heavy, ProbabilitiesStayPositive) {
  const Task task = task_of(
      "    def forward(self, p, q):\n"
      "        return (p * torch.log(q)).sum(-1)",
      "torch.rand(rows, columns).softmax(-1), "
      "torch.rand(rows, columns).softmax(-1)");
  for (const ShapeCase& shape : task.shapes) {
    const Values set = values_of(task, shape, "heavy");
    for (const char* name : {"p", "q"}) {
      const auto values = set.of(name, "value");
      EXPECT_EQ(std::count(values.begin(), values.end(), 0.0), 0) << name << " of " << shape.name;
    }
    for (double v : set.of("out", "native")) EXPECT_TRUE(std::isfinite(v)) << shape.name;
  }
}

// PyTorch does not promise which of two equal values a sort puts first, so there must be no ties.
TEST(Extremes, AnOrderThatNobodyPromisesGetsNoTies) {
  const Task task = task_of("    def forward(self, x):\n        return x.topk(3).indices",
                            "torch.randn(rows, columns)");
  const Values set = values_of(task, shape_named(task, "small"), "extremes");
  EXPECT_TRUE(set.set.as_made);
}

TEST(Extremes, WhatTheReferenceLosesIsNotJudged) {
  const Task task = task_of("    def forward(self, x):\n        return (x * 1e20) * 1e-20",
                            "torch.randn(rows, columns)");
  const Values set = values_of(task, shape_named(task, "small"), "extremes");
  const auto native = set.of("out", "native"), truth = set.of("out", "truth");
  int left_out = 0;
  for (size_t i = 0; i < truth.size(); ++i) {
    left_out += std::isnan(truth[i]);
    if (!std::isnan(truth[i])) {
      EXPECT_EQ(std::isfinite(native[i]), std::isfinite(truth[i]));
    }
  }
  EXPECT_LT(left_out, int(truth.size()) / 2);
}

TEST(Indices, FollowTheSizeThatTheyIndexAtEveryShape) {
  struct Case {
    const char *model, *inputs, *index;
    int64_t size;  // as the module's text sets it; 0: the inner size of x
  };
  const Case cases[] = {
      {"    def forward(self, x, i):\n        return F.cross_entropy(x, i)",
       "torch.randn(rows, columns), torch.randint(0, 10**3, (rows,))", "i", 0},
      {"    def forward(self, x, i):\n        return torch.gather(x, 1, i.view(-1, 1))",
       "torch.randn(rows, columns), torch.randint(0, 10**3, (rows,))", "i", 0},
      {"    def forward(self, x, i):\n        return x[:, i.long()] * 2",
       "torch.randn(rows, columns), torch.randint(0, 10**3, (rows,), dtype=torch.int32)", "i", 0},
      {"    def __init__(self):\n        super().__init__()\n"
       "        self.table = nn.Embedding(50, 8)\n"
       "    def forward(self, x, i):\n        return self.table(i).sum(1) + x.mean()",
       "torch.randn(rows, columns), torch.randint(0, 10**3, (rows, 4)) % 50", "i", 50},
      {"    def forward(self, x, i):\n        return F.one_hot(i, 5) * x.mean()",
       "torch.randn(rows, columns), torch.randint(0, 10**3, (rows,)) % 5", "i", 5},
  };
  for (const Case& c : cases) {
    const Task task = task_of(c.model, c.inputs);
    ASSERT_GE(task.shapes.size(), 2U);
    for (const ShapeCase& shape : task.shapes) {
      if (shape.name == "official") continue;
      const int64_t size = c.size ? c.size : shape.tensors.at("x")[1];
      for (double v : values_of(task, shape, "signed").of(c.index, "value")) {
        EXPECT_GE(v, 0) << c.model;
        EXPECT_LT(v, size) << c.model;
      }
    }
  }
}

TEST(Indices, WhatALossIgnoresStays) {
  const Task task =
      task_of("    def forward(self, x, i):\n        return F.cross_entropy(x, i)",
              "torch.randn(rows, columns), "
              "torch.where(torch.arange(rows) % 2 == 0, -100, torch.arange(rows) * 10**3 % 1999)");
  const ShapeCase& shape = shape_named(task, "odd1");
  const auto i = values_of(task, shape, "made").of("i", "value");
  for (size_t k = 0; k < i.size(); ++k) {
    if (k % 2 == 0) {
      EXPECT_EQ(i[k], -100);
    } else {
      EXPECT_LT(i[k], shape.tensors.at("x")[1]);
    }
  }
}

TEST(Float8, InputsOfEveryFamilyComeWithATruth) {
  const Task task = task_of(
      "    def forward(self, x, w, s):\n"
      "        return (x.to(torch.float32) * s) @ w.to(torch.float32).T",
      "torch.randn(rows, columns).to(torch.float8_e4m3fn), "
      "torch.randn(96, columns).to(torch.float8_e4m3fn), torch.rand(()) * 0.1");
  const ShapeCase& shape = shape_named(task, "small");
  for (const char* family : {"made", "signed", "heavy", "outliers", "special", "extremes"}) {
    const Values set = values_of(task, shape, family);
    EXPECT_TRUE(set.set.notes.empty()) << family << ": " << set.set.notes[0];
    const auto x = set.of("x", "value"), truth = set.of("out", "truth");
    for (double v : x)
      if (std::isfinite(v)) {
        EXPECT_LE(std::abs(v), 448);
      }
    if (std::string(family) == "special") continue;
    const auto native = set.of("out", "native");
    double far = 0, scale = 0;
    for (size_t i = 0; i < truth.size(); ++i) {
      EXPECT_TRUE(std::isfinite(truth[i]) || std::string(family) == "extremes");
      if (!std::isfinite(truth[i])) continue;
      far = std::max(far, std::abs(native[i] - truth[i]));
      scale = std::max(scale, std::abs(truth[i]));
    }
    EXPECT_GT(scale, 0) << family;
    EXPECT_LT(far, 1e-5 * scale) << family;
    EXPECT_GT(far, 0) << family;  // the truth is float64 although the module says float32
  }
}

TEST(Float8, OutputsAreRoundedFromATruthThatIsNot) {
  const Task task = task_of(
      "    def forward(self, x):\n"
      "        s = x.abs().amax(-1, keepdim=True) / 448\n"
      "        return (x / s).clamp(-448, 448).to(torch.float8_e4m3fn), s",
      "torch.randn(rows, columns)");
  EXPECT_EQ(task.find("out.0")->dtype, DType::f8e4m3);
  const Values set = values_of(task, shape_named(task, "small"), "made");
  const auto native = set.of("out.0", "native"), truth = set.of("out.0", "truth");
  int between = 0;
  for (size_t i = 0; i < truth.size(); ++i) {
    EXPECT_LE(std::abs(native[i] - truth[i]),
              std::max(0x1p-4 * std::abs(truth[i]) * 1.001, 0x1p-9));
    between += round_to(DType::f8e4m3, truth[i]) != truth[i];
  }
  EXPECT_GT(between, int(truth.size()) / 2);
}

// The mean is the small difference of two large numbers, and the standard deviation is about as
// large as these numbers. A change that scales both numbers equally changes no result.
TEST(Sensitivity, SeesADifferenceOfTwoElements) {
  const Task task = task_of(
      "    def forward(self, x):\n"
      "        variance, mean = torch.var_mean(x, dim=0, keepdim=True, correction=0)\n"
      "        return (x - mean) * torch.rsqrt(variance + 1e-5)",
      "torch.cat([(a := 1e6 * (1 + torch.rand(1, columns))), -a - 1, torch.zeros(9, columns)])");
  const ShapeCase& shape = task.official();
  const Values set = values_of(task, shape, "made");
  const std::vector<double> sensitivity = set.of("out", "sensitivity");
  const int64_t columns = shape.tensors.at("x")[1];
  for (int64_t c = 0; c < columns; ++c) EXPECT_GT(sensitivity[2 * columns + c], 1e-10) << c;
}

// Positions are integers, and the angles that the module computes from them in float32 are rounded.
// A buffer of whole numbers must not move: no count would equal a moved number.
TEST(Sensitivity, EqualWholeNumbersStayEqual) {
  TaskFile file(
      "task",
      "import torch\nfrom torch import nn\n\nrows = 48\n\nclass Model(nn.Module):\n"
      "    def __init__(self):\n        super().__init__()\n"
      "        self.register_buffer('places', torch.arange(32, dtype=torch.float32))\n\n"
      "    def forward(self, x):\n"
      "        place = torch.cumsum(x.argmax(1) % 2, 0).to(x.dtype)\n"
      "        return (place[:, None] == self.places).to(x.dtype) + x.abs().sum(1, True)\n\n"
      "def get_inputs():\n    return [torch.randn(rows, 8)]\n\n"
      "def get_init_inputs():\n    return []\n");
  auto task = test_worker().describe(Context(), file.path(), {});
  ASSERT_TRUE(task) << task.error().text();
  auto set = test_worker().make_set(Context(), *task, task->official(), "made", 3);
  ASSERT_TRUE(set) << set.error().text();
  const std::vector<double> moved = read_values(std::move(*set)).of("out", "sensitivity");
  ASSERT_FALSE(moved.empty());
  EXPECT_LT(*std::ranges::max_element(moved), 1e-3);
}

TEST(Truth, OfAnglesOfPositionsIsNotRounded) {
  const Task task = task_of(
      "    def forward(self, x):\n"
      "        at = torch.arange(x.size(1)).float()\n"
      "        ones = torch.ones_like(at, dtype=torch.float32)\n"
      "        return x + torch.sin(at * torch.exp(at * -0.01)).index_add(0, torch.arange(1), "
      "ones[:1])",
      "torch.rand(rows, columns)");
  const Values set = values_of(task, task.official(), "made");
  const std::vector<double> truth = set.of("out", "truth"), native = set.of("out", "native");
  double largest = 0;
  for (size_t i = 0; i < truth.size(); ++i)
    largest = std::max(largest, std::abs(truth[i] - native[i]));
  EXPECT_GT(largest, 1e-7);
  EXPECT_FALSE(set.of("out", "sensitivity").empty());
}

// In a row whose largest value is 10, the value 5 lies between 63 and 64 steps. PyTorch and a
// program that multiplies by 127 / 10 may round this value to different steps.
TEST(Sensitivity, SeesThatAComputedValueMayRoundToEitherInteger) {
  const Task task = task_of(
      "    def forward(self, x):\n"
      "        y = x.float()\n"
      "        scale = y.abs().amax(-1, keepdim=True) / 127\n"
      "        return torch.round(y / scale) * scale",
      "torch.randint(-10, 11, (rows, columns))");
  const Values set = values_of(task, task.official(), "made");
  const std::vector<double> x = set.of("x", "value"), s = set.of("out", "sensitivity");
  int turned = 0;
  for (size_t i = 0; i < s.size(); ++i) turned += std::abs(x[i]) == 5 && s[i] > 0.015;
  EXPECT_GT(turned, 0);
}

// A rounding error in a product of huge values decides which score of the softmax is the largest.
TEST(Extremes, StaySmallWhereASoftmaxFollowsAProduct) {
  for (const char* scores : {"x @ y.mT", "(x * 2).sum(0) + y"}) {
    const Task task = task_of("    def forward(self, x, y):\n        return torch.softmax(" +
                                  std::string(scores) + ", -1)",
                              "torch.randn(rows, 32), torch.randn(rows, 32)");
    const auto x = values_of(task, shape_named(task, "small"), "extremes").of("x", "value");
    for (double v : x) EXPECT_LE(std::abs(v), 150);
  }
}

// A rounding error of a large score multiplies its exponential, so a few trials cannot bound the
// effect. The sensitivity of such elements may be as large as any result, but must be a number.
TEST(Sensitivity, OfAnExponentialOfLargeDifferencesIsAsLargeAsTheResults) {
  const Task task = task_of(
      "    def forward(self, x, v):\n"
      "        return torch.softmax(x, -1) @ v",
      "torch.randn(64, columns), torch.randn(columns, 8)");
  const Values set = values_of(task, shape_named(task, "small"), "extremes");
  const std::vector<double> truth = set.of("out", "truth"), moved = set.of("out", "sensitivity");
  double largest = 0;
  for (double t : truth)
    if (std::isfinite(t)) largest = std::max(largest, std::abs(t));
  int loose = 0;
  for (size_t i = 0; i < truth.size(); ++i) {
    if (!std::isfinite(truth[i]) || truth[i] == 0 || !std::isfinite(moved[i])) continue;
    const double s = std::abs(moved[i]);
    EXPECT_TRUE(s <= 0.1 * std::abs(truth[i]) || s >= largest * 0.999) << i;
    loose += s >= largest * 0.999;
  }
  EXPECT_GT(loose, 0);
}

// A proposed test: uniform values of its range, with its edge values; other inputs are the task's.
TEST(Ranged, ValuesLieInTheRangeOrAreEdges) {
  const Task task = task_of("    def forward(self, x, y):\n        return torch.relu(x) + y",
                            "torch.randn(rows, columns), torch.randn(rows, columns)");
  ShapeCase shape = shape_named(task, "small");
  shape.values = {{"x", {.low = 2, .high = 4, .edges = {0, -7}}}};
  const Values set = values_of(task, shape, "ranged");
  const auto x = set.of("x", "value"), y = set.of("y", "value"), truth = set.of("out", "truth");
  size_t zeros = 0, sevens = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    EXPECT_TRUE((x[i] >= 2 && x[i] <= 4) || x[i] == 0 || x[i] == -7) << x[i];
    EXPECT_DOUBLE_EQ(truth[i], std::max(x[i], 0.0) + y[i]);
    zeros += x[i] == 0, sevens += x[i] == -7;
  }
  EXPECT_GT(zeros, 0U);
  EXPECT_GT(sevens, 0U);
  EXPECT_LT(zeros + sevens, x.size() / 8);
  EXPECT_LT(*std::min_element(y.begin(), y.end()), 0);
  shape.values = {{"x", {.low = 3, .high = 3}}};
  for (double value : values_of(task, shape, "ranged").of("x", "value")) EXPECT_EQ(value, 3);
}

TEST(Ranged, ValuesOnWhichTheReferenceHasNoResultAreRefused) {
  const Task task = task_of("    def forward(self, x):\n        return torch.exp(x)",
                            "torch.randn(rows, columns)");
  ShapeCase shape = shape_named(task, "small");
  shape.values = {{"x", {.low = 1000, .high = 2000}}};
  auto set = test_worker().make_set(Context(), task, shape, "ranged", 1);
  ASSERT_FALSE(set);
  EXPECT_EQ(set.error().kind, ErrorKind::user);
  EXPECT_THAT(set.error().text(), HasSubstr("does not work on the values of the proposed test"));
}

}  // namespace
}  // namespace cutegen::torch
