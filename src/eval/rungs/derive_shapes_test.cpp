// SPDX-License-Identifier: Apache-2.0
// Derives shapes for programs of a matrix product whose module takes any size, without a worker.
#include "eval/rungs/derive_shapes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <tuple>

namespace cutegen::eval {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

ShapeCase product(const std::string& name, ShapeKind kind, int64_t m, int64_t k, int64_t n) {
  ShapeCase s{.name = name, .kind = kind};
  if (kind != ShapeKind::official) s.constants = {{"m", m}, {"k", k}, {"n", n}};
  s.tensors = {{"x", {m, k}}, {"y", {k, n}}, {"out", {m, n}}};
  s.flops = Flops{2.0 * double(m * k * n)};
  s.least_bytes = Bytes{4 * (m * k + k * n + m * n)};
  return s;
}

struct ShapesWorld {
  Task task;
  int asked = 0;
  std::vector<std::string> left_out;  // by the last find()
  std::function<bool(const ShapeCase&)> runs = [](const ShapeCase&) { return true; };
  std::optional<DerivedShapes> derived;
  DeviceFacts device{.name = "d", .arch = "sm_90a", .sms = 132};

  ShapesWorld() {
    task.tensors = {
        {.name = "x", .role = TensorRole::input, .dtype = DType::f32, .shape = {4096, 2048}},
        {.name = "y", .role = TensorRole::input, .dtype = DType::f32, .shape = {2048, 4096}},
        {.name = "out", .role = TensorRole::output, .dtype = DType::f32, .shape = {4096, 4096}}};
    task.shapes = {product("official", ShapeKind::official, 4096, 2048, 4096),
                   product("small", ShapeKind::small, 128, 128, 128),
                   product("odd1", ShapeKind::odd, 89, 97, 101)};
    derived.emplace(task, [this](const Context&, const std::vector<torch::ShapeConstants>& wanted) {
      return describe(wanted);
    });
  }

  Result<torch::DescribedShapes> describe(const std::vector<torch::ShapeConstants>& wanted) {
    torch::DescribedShapes out;
    out.sizes = {{"m", 4096}, {"k", 2048}, {"n", 4096}};
    for (const torch::ShapeConstants& c : wanted) {
      ++asked;
      ShapeCase s = product("derived " + std::to_string(asked), ShapeKind::derived, c[0].second,
                            c[1].second, c[2].second);
      out.shapes.emplace_back(runs(s) ? std::optional(s) : std::nullopt);
    }
    return out;
  }

  std::vector<ShapeCasePtr> find(const std::string& grid, const std::string& source,
                                 const std::string& condition = "1 == 1") {
    KernelProgram p;
    p.sources["kernel.cu"] = source;
    auto plan = plan_from_json(Json::parse(
        R"json({"cutegen": 1, "dialect": "cuda", "sources": ["kernel.cu"],
          "symbols": {"m": "dim(x,0)", "depth": "dim(x,1)", "n": "dim(y,1)"}, "requires": [")json" +
        condition + R"json("], "steps": [{"kernel": "f", "block": [64, 1, 1], "grid": )json" +
        grid + R"json(, "args": [{"tensor": "out"}]}]})json"));
    EXPECT_TRUE(plan) << plan.error().text();
    if (plan) p.plan = *plan;
    auto found = derived->find(Context(), p, device);
    EXPECT_TRUE(found) << found.error().text();
    if (!found) return {};
    left_out = found->left_out;
    return found->shapes;
  }

  static int64_t size(const ShapeCasePtr& s, const char* tensor, size_t axis) {
    return s->tensors.at(tensor)[axis];
  }
};

TEST(DerivedShapes, ThreeTilesAndATailAlongBothAxesOfAGrid) {
  ShapesWorld w;
  const auto found = w.find(R"j(["ceil_div(n,128)", "ceil_div(m,64)", 1])j", "");
  bool both = false;
  for (const ShapeCasePtr& s : found) {
    const int64_t m = ShapesWorld::size(s, "out", 0), n = ShapesWorld::size(s, "out", 1);
    EXPECT_LE(s->flops.value, 1e8);
    both = both || (m > 3 * 64 && m % 64 != 0 && n > 3 * 128 && n % 128 != 0);
  }
  EXPECT_TRUE(both);
}

TEST(DerivedShapes, ALoopOverTheSumIsGivenThreeOfTheLongestSteps) {
  ShapesWorld w;
  const auto found = w.find("[1, 1, 1]", "constexpr int kStep = 512;");
  int64_t longest = 0;
  for (const ShapeCasePtr& s : found) longest = std::max(longest, ShapesWorld::size(s, "x", 1));
  EXPECT_GT(longest, 3 * 512);
  EXPECT_NE(longest % 512, 0);
}

TEST(DerivedShapes, APersistentGridGoesRoundMoreThanTwice) {
  ShapesWorld w;
  const auto found = w.find(R"j(["min(ceil_div(m*n,1024),gpu.sms)", 1, 1])j", "");
  int64_t most = 0;
  for (const ShapeCasePtr& s : found)
    most = std::max(most, ShapesWorld::size(s, "out", 0) * ShapesWorld::size(s, "out", 1));
  EXPECT_GT(most, 2 * 132 * 1024);
}

TEST(DerivedShapes, RequiresHoldsAtEach) {
  ShapesWorld w;
  const auto found =
      w.find(R"j(["ceil_div(n,128)", "ceil_div(m,128)", 1])j", "", "depth % 64 == 0");
  ASSERT_FALSE(found.empty());
  for (const ShapeCasePtr& s : found) EXPECT_EQ(ShapesWorld::size(s, "x", 1) % 64, 0);
}

TEST(DerivedShapes, APlanThatTakesOneDepthAloneGetsItsFirstShape) {
  ShapesWorld w;
  const auto found = w.find(R"j(["ceil_div(n,128)", 1, 1])j", "", "depth == 2048");
  ASSERT_FALSE(found.empty());
  for (const ShapeCasePtr& s : found) EXPECT_EQ(ShapesWorld::size(s, "x", 1), 2048);
}

// forward() may write a size as a number, which must change together with the input's size.
TEST(DerivedShapes, SizesThatMustStayEqualGrowTogether) {
  ShapesWorld w;
  w.task.shapes[2] = product("odd1", ShapeKind::odd, 89, 97, 89);
  w.runs = [](const ShapeCase& s) { return s.tensors.at("x")[0] == s.tensors.at("y")[1]; };
  const auto found = w.find(R"j(["ceil_div(n,128)", 1, 1])j", "");
  ASSERT_FALSE(found.empty());
  EXPECT_GT(ShapesWorld::size(found[0], "out", 1), 3 * 128);
  EXPECT_EQ(ShapesWorld::size(found[0], "out", 0), ShapesWorld::size(found[0], "out", 1));
}

TEST(DerivedShapes, WhatTheTaskReachesNeedsNone) {
  ShapesWorld w;
  for (auto [name, m, k, n] :
       {std::tuple{"long1", 4096, 8, 8}, {"long2", 8, 2048, 8}, {"long3", 8, 8, 4096}})
    w.task.shapes.push_back(product(name, ShapeKind::derived, m, k, n));
  EXPECT_THAT(w.find(R"j(["ceil_div(n,30)", 1, 1])j", ""), IsEmpty());
}

TEST(DerivedShapes, SaysWhatNoTestShapeReachesAndWhy) {
  ShapesWorld w;
  w.find(R"j(["ceil_div(n,128)", "ceil_div(m,64)", 1])j", "");
  EXPECT_THAT(w.left_out, IsEmpty());
  w.runs = [](const ShapeCase& s) { return s.tensors.at("x")[1] <= 500; };
  w.find(R"j(["ceil_div(n,120)", 1, 1])j", "constexpr int kStep = 512;");
  EXPECT_THAT(w.left_out, ElementsAre(testing::HasSubstr("no test shape has k = 1536 (1 in all): "
                                                         "the module or the plan takes no such "
                                                         "shape, or it is more work than 100 "
                                                         "MFLOP")));
}

TEST(DerivedShapes, SaysHowManyWereTooMany) {
  ShapesWorld w;
  // Only one size can be long, so three divisions need three shapes.
  w.runs = [](const ShapeCase& s) { return s.flops.value < 3e6; };
  w.task.shapes[1] = product("small", ShapeKind::small, 8, 8, 8);
  const auto found = w.find(
      R"j(["ceil_div(n,1000)*ceil_div(m,1000)", "ceil_div(depth,1000)", "min(m*n,50000)"])j", "");
  EXPECT_THAT(found, SizeIs(3));
  ASSERT_THAT(w.left_out, SizeIs(2));
  EXPECT_THAT(w.left_out[0], testing::HasSubstr("3 tiles of 1000 along 4096 and at once"));
  EXPECT_THAT(w.left_out[1],
              testing::HasSubstr("3 blocks along axis x of a grid (1 in all): a program gets at "
                                 "most 3 derived shapes"));
}

TEST(DerivedShapes, ProgramsOfATaskShareShapesAndDescriptions) {
  ShapesWorld w;
  const auto first = w.find(R"j(["ceil_div(n,128)", "ceil_div(m,128)", 1])j", "");
  const int asked = w.asked;
  const auto second = w.find(R"j(["ceil_div(n,128)", "ceil_div(m,128)", 1])j", "int other;");
  EXPECT_EQ(first, second);
  EXPECT_EQ(w.asked, asked);
  const auto third = w.find(R"j(["ceil_div(n,64)", "ceil_div(m,64)", 1])j", "");
  EXPECT_TRUE(std::any_of(third.begin(), third.end(), [&](const ShapeCasePtr& s) {
    return std::find(first.begin(), first.end(), s) != first.end();
  }));
}

TEST(DerivedShapes, NeverMoreThanThreeAndNoneThatTheModuleRefuses) {
  ShapesWorld w;
  w.runs = [](const ShapeCase& s) { return s.tensors.at("x")[0] <= 128; };
  const auto found =
      w.find(R"j(["ceil_div(n,256)", "ceil_div(m,256)", 1])j", "int a = 4096, b = 16384;");
  EXPECT_LE(found.size(), DerivedShapes::kMost);
  for (const ShapeCasePtr& s : found) EXPECT_LE(ShapesWorld::size(s, "x", 0), 128);
}

TEST(DerivedShapes, ATaskWithoutSizesHasNone) {
  ShapesWorld w;
  w.task.shapes.resize(1);
  EXPECT_THAT(w.find(R"j(["ceil_div(n,128)", 1, 1])j", ""), IsEmpty());
}

TEST(DerivedShapes, AWorkerThatFailsIsOurTrouble) {
  ShapesWorld w;
  w.derived.emplace(w.task, [](const Context&, const std::vector<torch::ShapeConstants>&) {
    return Result<torch::DescribedShapes>(world_error("the torch worker is gone"));
  });
  KernelProgram p;
  auto found = w.derived->find(Context(), p, w.device);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().kind, ErrorKind::world);
}

TEST(FamiliesFor, LongAndHeavyShapesAreJudgedOnTwo) {
  const std::vector<std::string> all{"made", "signed", "heavy", "outliers", "special"};
  ShapeCase s = product("small", ShapeKind::small, 128, 128, 128);
  EXPECT_EQ(families_for(s, all, 1), all);
  s.flops = Flops{1.5e8};
  EXPECT_THAT(families_for(s, all, 1), SizeIs(2));
  s = product("long1", ShapeKind::derived, 776, 8, 8);
  std::set<std::string> second;
  for (uint64_t salt = 0; salt < 64; ++salt) {
    const auto two = families_for(s, all, salt << 24);
    ASSERT_THAT(two, SizeIs(2));
    EXPECT_EQ(two[0], "outliers");
    EXPECT_NE(two[1], "outliers");
    second.insert(two[1]);
  }
  EXPECT_EQ(second.size(), 4u);
  EXPECT_THAT(families_for(s, {"made"}, 1), ElementsAre("made"));
  s.kind = ShapeKind::user;
  EXPECT_EQ(families_for(s, all, 1), all);
}

TEST(DerivedShapes, AProposedTestIsAShapeWithinTheSameLimits) {
  ShapesWorld w;
  auto shape =
      w.derived->proposed(Context(), {.name = "one row", .sizes = {{"m", 1}, {"n", 3}}, .why = ""});
  ASSERT_TRUE(shape) << shape.error().text();
  EXPECT_EQ((*shape)->name, "proposed one row");
  EXPECT_EQ((*shape)->kind, ShapeKind::derived);
  EXPECT_EQ((*shape)->tensors.at("x"), (Shape{1, 2048})) << "other sizes are official";
  // Official sizes would be too much work, so sizes come from the smallest shape.
  shape = w.derived->proposed(
      Context(), {.name = "values", .values = {{"x", {.low = -1, .high = 1}}}, .why = ""});
  ASSERT_TRUE(shape) << shape.error().text();
  EXPECT_EQ((*shape)->tensors.at("x"), (Shape{89, 97}));
  EXPECT_EQ((*shape)->values.at("x").high, 1);
  EXPECT_EQ(families_for(**shape, {"made", "signed", "outliers"}, 1),
            std::vector<std::string>{"ranged"});
}

// Each refusal names its cause, and a test out of bounds is refused without asking the worker.
TEST(DerivedShapes, AProposedTestOutOfBoundsIsRefused) {
  ShapesWorld w;
  const auto refusal = [&](std::vector<std::pair<std::string, int64_t>> sizes) {
    auto shape =
        w.derived->proposed(Context(), {.name = "t", .sizes = std::move(sizes), .why = ""});
    EXPECT_EQ(shape ? ErrorKind::internal : shape.error().kind, ErrorKind::user);
    return shape ? "accepted" : shape.error().text();
  };
  EXPECT_THAT(refusal({{"m", 4097}}), testing::HasSubstr("m = 4097 is not from 1 to 4096"));
  EXPECT_THAT(refusal({{"m", 0}}), testing::HasSubstr("m = 0"));
  EXPECT_THAT(refusal({{"heads", 2}}), testing::HasSubstr("no size 'heads'"));
  const int before = w.asked;
  EXPECT_THAT(refusal({{"m", int64_t{1} << 50}}), testing::HasSubstr("to 4096"));
  EXPECT_EQ(w.asked, before);
  EXPECT_THAT(refusal({{"m", 4096}, {"k", 2048}, {"n", 4096}}),
              testing::HasSubstr("more work than a test may be"));
  w.runs = [](const ShapeCase& s) { return s.tensors.at("x")[0] > 1; };
  EXPECT_THAT(refusal({{"m", 1}}),
              testing::HasSubstr("does not run, or is another program, at these sizes"));
}

}  // namespace
}  // namespace cutegen::eval
