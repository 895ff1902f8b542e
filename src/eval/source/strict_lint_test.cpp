// SPDX-License-Identifier: Apache-2.0
#include "eval/source/strict_lint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cutegen::eval {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> strict_findings(const std::string& source) {
  std::vector<std::string> out;
  for (const LintFinding& f : lint_strict("kernel.cu", scan_source(source))) {
    EXPECT_FALSE(f.rule);
    out.push_back(f.error.text());
  }
  return out;
}

TEST(StrictLint, RefusesInlineMatrixInstructionsWithTheComponentToUse) {
  const std::vector<std::pair<const char*, const char*>> cases{
      {R"(asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0}, ..." : );)",
       "make_tiled_mma"},
      {R"(asm("{ wgmma.mma_async" ".sync.aligned.m64n128k16.f32.bf16.bf16 ...; }");)",
       "cutegen::WgmmaGemm"},
      {R"(asm("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0}, [%1];" : );)", "SM75_U32x4_LDSM_N"},
      {R"(asm("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1};" : );)", "SM90_U32x4_STSM_N"},
      {"#define MMA(a, b) asm(\"mma.sync.aligned.m16n8k8 ...\" : : \"r\"(a), \"r\"(b))\n",
       "make_tiled_mma"}};
  for (const auto& [source, component] : cases) {
    SCOPED_TRACE(source);
    const auto all = strict_findings(source);
    ASSERT_EQ(all.size(), 1U);
    EXPECT_THAT(all[0], HasSubstr(component));
    EXPECT_THAT(all[0], HasSubstr("kernel.cu:1:"));
    EXPECT_THAT(all[0], HasSubstr("the dialect is cute-strict"));
  }
}

TEST(StrictLint, RefusesSwizzlesByHand) {
  for (const char* source :
       {"float v = tile[row * 64 + (col ^ row)];",
        "int at = row * 64 + ((col / 8) ^ (row & 7)) * 8;", "int chunk = c ^ (r % 4);",
        "store[r][c ^ s] = v;", "#define SWZ(r, c) ((c) ^ ((r) & 7))\n"}) {
    SCOPED_TRACE(source);
    const auto all = strict_findings(source);
    ASSERT_EQ(all.size(), 1U);
    EXPECT_THAT(all[0], HasSubstr("composition(Swizzle<"));
  }
}

TEST(StrictLint, LeavesOtherCodeAlone) {
  for (const char* source :
       {"sum += __shfl_xor_sync(~0u, sum, 1);", "v = __shfl_sync(~0u, v, (lane & 15) ^ 1);",
        "h = (h ^ (h >> 15)) * 0x85ebca6b;", "h ^= h & 7;", "flags = a ^ b;",
        R"(asm("cp.async.cg.shared.global [%0], [%1], 16;" : );)",
        R"(asm("fma.rn.f32 %0, %1, %2, %3;" : );)", "// mma.sync and row ^ (col & 7)\n",
        "Tensor t = make_tensor(p, composition(Swizzle<2, 3, 3>{}, Rows{}));",
        "gemm(mma, a, b, sums);", "const char* text = \"gemma.it\";"})
    EXPECT_THAT(strict_findings(source), IsEmpty()) << source;
}

TEST(StrictLint, OnlyProgramsOfTheDialectAreChecked) {
  KernelProgram program;
  program.sources["kernel.cu"] =
      "extern \"C\" __global__ void k(float* out) { asm(\"mma.sync.aligned\"); }";
  program.plan.sources = {"kernel.cu"};
  for (const auto& [dialect, count] : {std::pair{Dialect::cute, 0}, std::pair{Dialect::cuda, 0},
                                       std::pair{Dialect::cute_strict, 1}}) {
    program.plan.dialect = dialect;
    EXPECT_EQ(lint_program(program).size(), size_t(count)) << to_string(dialect);
  }
}

}  // namespace
}  // namespace cutegen::eval
