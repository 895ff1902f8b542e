// SPDX-License-Identifier: Apache-2.0
#include "search/structure.h"

#include <gtest/gtest.h>

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
  Profiling p(mode, "elementwise");
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
  // A change of structure delays it, and so do gains.
  EXPECT_EQ(
      opens_after(ProfilingMode::adaptive,
                  {{false, 100}, {false, 99}, {true, 98}, {false, 98}, {false, 97}, {false, 97}}),
      6);
  EXPECT_EQ(opens_after(ProfilingMode::adaptive,
                        {{false, 100}, {false, 90}, {false, 80}, {false, 70}, {false, 60}}),
            -1);
}

}  // namespace
}  // namespace cutegen::search
