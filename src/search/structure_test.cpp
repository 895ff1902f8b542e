// SPDX-License-Identifier: Apache-2.0
#include "search/structure.h"

#include <gtest/gtest.h>

#include <random>

#include "base/text.h"
#include "search/profiling.h"

namespace cutegen::search {
namespace {

KernelProgram program(const std::string& source, int block = 256) {
  KernelProgram p;
  p.plan.sources = {"kernel.cu"};
  p.sources["kernel.cu"] = source;
  Step step;
  step.id = step.kernel = "k";
  step.block[0] = Expr(block);
  p.plan.steps = {step};
  return p;
}

const char* kPlain =
    "constexpr int kTile = 64;\nextern \"C\" __global__ void k(float* x) { x[0] = 1; }\n";

TEST(Structure, DetailsDoNotChangeIt) {
  Structure before = structure_of(program(kPlain));
  EXPECT_EQ(before, structure_of(program(std::string(kPlain) + "// a comment with __shared__\n")));
  EXPECT_EQ(before, structure_of(program(replace_all(kPlain, "x[0] = 1", "x[0] = 2.0f * 1"))));
}

TEST(Structure, LaunchesTilingAndMovementDo) {
  Structure before = structure_of(program(kPlain));
  KernelProgram twice = program(kPlain);
  twice.plan.steps.push_back(twice.plan.steps[0]);
  EXPECT_NE(before.launches, structure_of(twice).launches);
  EXPECT_NE(before.tiling, structure_of(program(kPlain, 128)).tiling);
  EXPECT_NE(before.tiling, structure_of(program(replace_all(kPlain, "64", "32"))).tiling);
  for (const char* construct :
       {"__shared__ float s[4];", "float4 v;", "cp_async_fence();", "__shfl_xor_sync(1, 2, 3);"})
    EXPECT_NE(before.movement,
              structure_of(program(replace_all(kPlain, "x[0] = 1;", construct))).movement)
        << construct;
}

TEST(CuteUse, IsCountedInCodeAlone) {
  EXPECT_EQ(cute_use(program(kPlain)).share, 0);
  CuteUse use = cute_use(program(
      "#include <cute/tensor.hpp>\nusing namespace cute;\n"
      "extern \"C\" __global__ void k(float* x) {\n  // make_tiled_mma\n  auto l = "
      "make_layout(4);\n"
      "  Tensor t = make_tensor(x, l);\n  auto m = make_tiled_mma(A{});\n  int a = 1;\n}\n"));
  EXPECT_EQ(use.tiled_mma, 1);
  EXPECT_EQ(use.layouts, 1);
  EXPECT_EQ(use.tensors, 2);
  EXPECT_DOUBLE_EQ(use.share, 0.6);  // three of five statements
  EXPECT_EQ(to_json(use)["tiled_mma"], 1);
}

TEST(Profiling, FixedDepthsFollowTheClass) {
  EXPECT_EQ(Profiling::fixed_depth("matmul+elementwise"), 6);
  EXPECT_EQ(Profiling::fixed_depth("transposed conv"), 6);
  EXPECT_EQ(Profiling::fixed_depth("softmax"), 5);
  EXPECT_EQ(Profiling::fixed_depth("loss"), 3);
  EXPECT_EQ(Profiling::fixed_depth("elementwise"), 2);
}

int opens_after(ProfilingMode mode, const std::vector<std::pair<bool, double>>& steps) {
  Profiling p(mode, "elementwise", 40);
  int n = 0;
  for (auto [changed, ns] : steps) {
    if (p.open()) return n;
    p.step(true, changed, ns);
    ++n;
  }
  return p.open() ? n : -1;
}

TEST(Profiling, ModesOpenWhenTheySay) {
  std::vector<std::pair<bool, double>> flat{{false, 100}, {false, 99}, {false, 98},
                                            {false, 98},  {false, 98}, {false, 98}};
  EXPECT_EQ(opens_after(ProfilingMode::from_start, flat), 0);
  EXPECT_EQ(opens_after(ProfilingMode::never, flat), -1);
  EXPECT_EQ(opens_after(ProfilingMode::delayed, flat), 3);
  EXPECT_EQ(opens_after(ProfilingMode::adaptive, flat), 4);
  // Changes of structure delay the profile, and so do gains.
  EXPECT_EQ(
      opens_after(ProfilingMode::adaptive,
                  {{false, 100}, {false, 99}, {true, 98}, {false, 98}, {false, 97}, {false, 97}}),
      6);
  EXPECT_EQ(opens_after(ProfilingMode::adaptive,
                        {{false, 100}, {false, 90}, {false, 80}, {false, 70}, {false, 60}}),
            -1);
}

// A small budget must not end before the first profile.
TEST(Profiling, OpensWithinAFifthOfTheBudget) {
  for (int64_t evaluations : {1, 5, 10, 20, 40}) {
    Profiling p(ProfilingMode::adaptive, "matmul", evaluations);
    int64_t steps = 0;
    for (double ns = 1000; !p.open(); ns *= 0.8, ++steps) p.step(true, true, ns);
    EXPECT_EQ(steps, std::max<int64_t>(2, evaluations / 5));
  }
  Profiling failing(ProfilingMode::adaptive, "matmul", 10);
  for (int i = 0; i < 6; ++i) failing.step(false, false, 0);
  EXPECT_FALSE(failing.open()) << "there is nothing to profile yet";
  failing.step(true, false, 100);
  EXPECT_TRUE(failing.open());
}

TEST(Profiling, FailedStepsDoNotSettleTheStructure) {
  Profiling p(ProfilingMode::adaptive, "matmul", 40);
  p.step(true, false, 100);
  for (int i = 0; i < 5; ++i) p.step(false, false, 0);
  EXPECT_FALSE(p.settled());
  EXPECT_FALSE(p.open());
}

// One rule decides both: when questions ask for details, they may also show the profile.
TEST(Profiling, ASettledStructureIsOpen) {
  std::mt19937 random(5);
  for (int run = 0; run < 200; ++run) {
    Profiling p(ProfilingMode::adaptive, "matmul", 1 + random() % 60);
    double best = 1000;
    for (int i = 0; i < 30; ++i) {
      best *= random() % 3 ? 1 : 0.9;
      p.step(random() % 4, random() % 3 == 0, best);
      ASSERT_TRUE(p.open() || !p.settled()) << run << " " << i;
    }
  }
}

}  // namespace
}  // namespace cutegen::search
