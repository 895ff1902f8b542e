// SPDX-License-Identifier: Apache-2.0
// Input sets, truths and sensitivities that the torch worker makes, with a real interpreter.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "base/hash.h"
#include "torch/testing/test_worker.h"
#include "torch/worker.h"

namespace cutegen::torch {
namespace {

using testing::HasSubstr;

Result<Task> describe(const std::string& name) {
  return test_worker().describe(Context(), shipped(name), {});
}

TEST(TorchSets, MakesSetsThatDependOnTheSeedOnly) {
  auto task = describe("rmsnorm.py");
  ASSERT_TRUE(task) << task.error().text();
  const ShapeCase& shape = shape_named(*task, "odd1");
  auto bytes_of = [&](const std::string& family, uint64_t seed) {
    auto set = test_worker().make_set(Context(), *task, shape, family, seed);
    EXPECT_TRUE(set) << set.error().text();
    auto map = Mapping::map(set->memory.get(), set->bytes, false);
    EXPECT_TRUE(map);
    return std::string(reinterpret_cast<const char*>(map->data()), set->bytes);
  };
  for (const char* family : {"made", "signed", "heavy"}) {
    std::string first = bytes_of(family, 7);
    EXPECT_EQ(first, bytes_of(family, 7)) << family;
    EXPECT_NE(first, bytes_of(family, 8)) << family;
  }
  EXPECT_NE(bytes_of("signed", 7), bytes_of("heavy", 7));
}

TEST(TorchSets, SomeRowsAndColumnsHaveOneSign) {
  auto task = describe("softmax.py");
  ASSERT_TRUE(task) << task.error().text();
  const ShapeCase& shape = shape_named(*task, "odd1");
  const Shape& x = shape.tensors.at("x");
  int mixed = 0;
  for (uint64_t seed = 1; seed < 13; ++seed)
    for (auto [family, sign] : {std::pair{"signed", -1.0f}, std::pair{"heavy", 1.0f}}) {
      auto set = test_worker().make_set(Context(), *task, shape, family, seed);
      ASSERT_TRUE(set) << set.error().text();
      auto map = Mapping::map(set->memory.get(), set->bytes, false);
      ASSERT_TRUE(map);
      const auto* values = reinterpret_cast<const float*>(map->data() + set->slots[0].offset);
      std::vector<bool> row_keeps(size_t(x[0]), true), column_keeps(size_t(x[1]), true);
      for (int64_t i = 0; i < x[0] * x[1]; ++i)
        if (sign * values[i] < 0)
          row_keeps[size_t(i / x[1])] = column_keeps[size_t(i % x[1])] = false;
      auto rows = std::count(row_keeps.begin(), row_keeps.end(), true);
      auto columns = std::count(column_keeps.begin(), column_keeps.end(), true);
      EXPECT_GE(rows, x[0] / 8) << family;
      EXPECT_GE(columns, x[1] / 8) << family;
      mixed += rows < x[0];
    }
  EXPECT_GT(mixed, 8);   // 18 of 24 are expected
  EXPECT_LT(mixed, 24);  // sometimes all rows keep one sign
}

TEST(TorchSets, OutliersTakeTurnsAndComeToTheEndsAndPowersOfTwo) {
  auto task = describe("softmax.py");
  ASSERT_TRUE(task) << task.error().text();
  const ShapeCase& shape = shape_named(*task, "odd2");
  const Shape& x = shape.tensors.at("x");
  ASSERT_EQ(x[1], 1031);
  auto set = test_worker().make_set(Context(), *task, shape, "outliers", 5);
  ASSERT_TRUE(set) << set.error().text();
  auto map = Mapping::map(set->memory.get(), set->bytes, false);
  ASSERT_TRUE(map);
  const auto* values = reinterpret_cast<const float*>(map->data() + set->slots[0].offset);
  std::set<int64_t> highest, lowest;
  for (int64_t row = 0; row < x[0]; ++row) {
    const float* from = values + row * x[1];
    highest.insert(std::max_element(from, from + x[1]) - from);
    lowest.insert(std::min_element(from, from + x[1]) - from);
  }
  EXPECT_EQ(int64_t(highest.size()), x[0]);
  EXPECT_GE(int64_t(lowest.size()), x[0] - 1);
  ASSERT_LE(x[0], 8);
  const std::set<int64_t> ends{0, 32, 64, 128, 256, 512, 1024, 1030};
  for (int64_t place : highest) EXPECT_TRUE(ends.contains(place)) << place;
}

TEST(TorchSets, TruthIsCloseToNativeAndSensitivityIsOfItsScale) {
  auto task = describe("rmsnorm.py");
  ASSERT_TRUE(task) << task.error().text();
  auto set =
      test_worker().make_set(Context(), *task, shape_named(*task, "small"), "signed", 1ull << 63);
  ASSERT_TRUE(set) << set.error().text();
  EXPECT_TRUE(set->notes.empty());
  auto map = Mapping::map(set->memory.get(), set->bytes, false);
  ASSERT_TRUE(map);
  const std::byte *native = nullptr, *truth = nullptr, *moved = nullptr, *weight = nullptr;
  size_t count = 0;
  for (const TensorSlot& s : set->slots) {
    const std::byte* at = map->data() + s.offset;
    if (s.part == "native") native = at, count = s.bytes / 4;
    if (s.part == "truth") truth = at;
    if (s.part == "sensitivity") moved = at;
    if (s.name == "weight") weight = at;
  }
  ASSERT_TRUE(native && truth && moved && weight);
  double worst = 0, scale = 0, most_moved = 0;
  for (size_t i = 0; i < count; ++i) {
    double t = reinterpret_cast<const double*>(truth)[i];
    worst = std::max(worst, std::abs(reinterpret_cast<const float*>(native)[i] - t));
    scale = std::max(scale, std::abs(t));
    most_moved = std::max(most_moved, reinterpret_cast<const double*>(moved)[i]);
  }
  EXPECT_GT(scale, 0.1);
  EXPECT_LT(worst, scale * 1e-5);
  EXPECT_GT(most_moved, scale * 1e-8);
  EXPECT_LT(most_moved, scale * 1e-5);
  const float* w = reinterpret_cast<const float*>(weight);
  EXPECT_NE(w[0], w[1]);  // the worker redraws constant ones
}

// PyTorch promises no order of equal values, so each of their positions is uncertain.
TEST(TorchSets, PositionsOfEqualValuesAreUncertain) {
  TaskFile file("ties", std::string(kBody) + R"(
class Model(nn.Module):
    def forward(self, x):
        return torch.sort(torch.round(x), dim=-1)[1]
def get_inputs():
    return [torch.randn(8, 16)]
def get_init_inputs():
    return []
)");
  auto task = test_worker().describe(Context(), file.path(), {.shrink = false});
  ASSERT_TRUE(task) << task.error().text();
  auto set = test_worker().make_set(Context(), *task, task->official(), "made", 7);
  ASSERT_TRUE(set) << set.error().text();
  auto map = Mapping::map(set->memory.get(), set->bytes, false);
  ASSERT_TRUE(map);
  size_t uncertain = 0;
  for (const TensorSlot& s : set->slots)
    if (s.part == "sensitivity")
      for (size_t i = 0; i < s.bytes / sizeof(double); ++i)
        uncertain += std::isinf(reinterpret_cast<const double*>(map->data() + s.offset)[i]);
  EXPECT_GT(uncertain, 64U);  // 16 small integers of a row repeat
}

// Even if a sum of two tensors is close to zero, the effect of rounding each of them must show.
TEST(TorchSets, SensitivityOfADifferenceIsThatOfItsParts) {
  TaskFile file("difference", std::string(kBody) + R"(
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(32))
    def forward(self, x):
        return torch.add(x, self.w, alpha=0.75)
)");
  auto task = test_worker().describe(Context(), file.path(), {});
  ASSERT_TRUE(task) << task.error().text();
  auto set = test_worker().make_set(Context(), *task, shape_named(*task, "official"), "signed", 5);
  ASSERT_TRUE(set) << set.error().text();
  auto map = Mapping::map(set->memory.get(), set->bytes, false);
  ASSERT_TRUE(map);
  const float *x = nullptr, *w = nullptr;
  const double* moved = nullptr;
  for (const TensorSlot& s : set->slots) {
    const std::byte* at = map->data() + s.offset;
    if (s.name == "x") x = reinterpret_cast<const float*>(at);
    if (s.name == "w") w = reinterpret_cast<const float*>(at);
    if (s.part == "sensitivity") moved = reinterpret_cast<const double*>(at);
  }
  ASSERT_TRUE(x && w && moved);
  for (int i = 0; i < 64 * 32; ++i)
    EXPECT_GT(moved[i], 0x1p-23 * 0.99 * (std::abs(x[i]) + 0.75 * std::abs(w[i % 32]))) << i;
}

// If an input lies eight roundings below a kink, one rounding changes nothing, and the native
// result may be exact. An accurate sum that rounds past the kink would then fail (on an H200: one
// of 67 million).
TEST(TorchSets, SensitivityBesideAKinkIsSeen) {
  TaskFile file("kink", R"(
import torch
from torch import nn

class Model(nn.Module):
    def forward(self, x, y):
        return torch.relu(x - y)

def get_inputs():
    x = torch.rand(64, 32) + 1
    return [x, x * (1 + 2.0**-20)]

def get_init_inputs():
    return []
)");
  auto task = test_worker().describe(Context(), file.path(), {});
  ASSERT_TRUE(task) << task.error().text();
  auto set = test_worker().make_set(Context(), *task, shape_named(*task, "official"), "made", 5);
  ASSERT_TRUE(set) << set.error().text();
  auto map = Mapping::map(set->memory.get(), set->bytes, false);
  ASSERT_TRUE(map);
  const double *truth = nullptr, *moved = nullptr;
  for (const TensorSlot& s : set->slots) {
    const std::byte* at = map->data() + s.offset;
    if (s.part == "truth") truth = reinterpret_cast<const double*>(at);
    if (s.part == "sensitivity") moved = reinterpret_cast<const double*>(at);
  }
  ASSERT_TRUE(truth && moved);
  int seen = 0;
  for (int i = 0; i < 64 * 32; ++i) {
    EXPECT_EQ(truth[i], 0) << i;
    EXPECT_LT(moved[i], 4 * 0x1p-23) << i;  // the effect of one rounding, not of many
    seen += moved[i] > 0;
  }
  EXPECT_GT(seen, 64 * 32 / 3);  // about half get changes of opposite sign
}

TEST(TorchSets, RefusesUnknownFamilies) {
  auto task = describe("relu.py");
  ASSERT_TRUE(task);
  auto set = test_worker().make_set(Context(), *task, task->shapes[1], "gentle", 1);
  ASSERT_FALSE(set);
  EXPECT_THAT(set.error().message, HasSubstr("gentle"));
}

}  // namespace
}  // namespace cutegen::torch
