// SPDX-License-Identifier: Apache-2.0
// Tests the pages: every class has guidance, every symbol leads to its page, every example
// compiles.
#include "agent/library.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "toolchain/toolchain.h"

namespace cutegen::agent {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsSupersetOf;
using testing::Not;

Task task_of(const std::string& workload) {
  Task task;
  task.workload = workload;
  return task;
}

TEST(Library, EveryClassHasGuidance) {
  EXPECT_THAT(
      guidance_classes(),
      IsSupersetOf({"matmul", "gemv", "elementwise", "softmax", "norm", "reduction", "pooling",
                    "conv", "transposed_conv", "depthwise", "scan", "loss", "attention", "fused"}));
  EXPECT_THAT(classes_of("transposed conv+norm"), ElementsAre("transposed_conv", "fused", "norm"));
  EXPECT_THAT(classes_of("matmul+elementwise"), ElementsAre("matmul", "fused"));
  EXPECT_THAT(classes_of("something new"), ElementsAre("elementwise"));
  for (const std::string& name : guidance_classes())
    EXPECT_GT(guidance_for(task_of(name), 1).size(), 300u) << name;
}

TEST(Library, EverySymbolLeadsToItsPage) {
  for (const Component& c : components()) {
    EXPECT_EQ(find_component(c.name), &c);
    EXPECT_FALSE(c.title.empty() || c.symbols.empty() || c.classes.empty() || c.archs.empty())
        << c.name;
    for (const std::string& symbol : c.symbols) EXPECT_TRUE(find_component(symbol)) << symbol;
    for (const std::string& name : c.classes)
      EXPECT_THAT(guidance_classes(), testing::Contains(name)) << c.name;
  }
  EXPECT_EQ(find_component("cutegen::combine_row")->name, "reduce");
  EXPECT_EQ(find_component("cutegen/vec.cuh")->name, "vec");
  EXPECT_EQ(find_component("no such thing"), nullptr);
}

TaskBrief brief_of(const std::string& workload, MathMode mode, const char* gpu = "h200") {
  TaskBrief brief;
  brief.task.workload = workload;
  brief.task.math_mode = mode;
  brief.gpu = find_gpu(gpu).value();
  return brief;
}

std::vector<std::string> pages_of(const TaskBrief& brief) {
  std::vector<std::string> out;
  for (const Component* c : components_for(brief)) out.push_back(c->name);
  return out;
}

TEST(Library, PagesAreChosenByClass) {
  EXPECT_THAT(pages_of(brief_of("softmax", MathMode::fp32)), Contains("reduce"));
  EXPECT_THAT(pages_of(brief_of("softmax", MathMode::fp32)), Not(Contains("gemm")));
  EXPECT_THAT(pages_of(brief_of("matmul+elementwise", MathMode::fp32)), Contains("math"));
  auto cuda = brief_of("matmul", MathMode::fp16);
  cuda.dialect = Dialect::cuda;
  EXPECT_THAT(pages_of(cuda), Not(Contains("tiled_mma")));
}

// A page about matrix products in a coarse type does not fit a task that needs float32's accuracy.
TEST(Library, PagesAreAsAccurateAsTheTaskDemands) {
  EXPECT_THAT(
      pages_of(brief_of("matmul", MathMode::fp32)),
      ElementsAre("gemm_wgmma", "gemm_wgmma_pairs", "three_products", "gemm", "tiled_epilogue"));
  EXPECT_THAT(pages_of(brief_of("matmul", MathMode::fp16)),
              ElementsAre("gemm_wgmma_halves", "tiled_mma", "gemm", "tiled_epilogue"));
  auto conv = brief_of("conv", MathMode::fp32);
  EXPECT_THAT(pages_of(conv),
              ElementsAre("conv_wgmma", "three_products", "gemm", "tiled_epilogue"));
  conv.task.tf32_convolutions = true;
  EXPECT_THAT(pages_of(conv), ElementsAre("conv_wgmma", "tiled_mma", "gemm", "tiled_epilogue"));
  conv.task.workload = "conv+matmul";
  EXPECT_THAT(pages_of(conv), AllOf(Contains("tiled_mma"), Contains("three_products")));
}

// Where CuTe is shorter than CUDA by hand, a page shows how. A page in CuTe only is not for plain
// CUDA.
TEST(Library, CuteHasPagesForProductsTilesAndEpilogues) {
  for (const char* name : {"three_products", "tma_tiles", "tiled_epilogue", "tiled_mma"}) {
    const Component* page = find_component(name);
    ASSERT_NE(page, nullptr) << name;
    EXPECT_THAT(page->example, HasSubstr("#include <cute/tensor.hpp>")) << name;
  }
  EXPECT_EQ(find_component("Swizzle"), find_component("tiled_epilogue"));
  auto strict = brief_of("matmul", MathMode::fp16);
  strict.dialect = Dialect::cute_strict;
  EXPECT_EQ(pages_of(strict), pages_of(brief_of("matmul", MathMode::fp16)));
  strict.dialect = Dialect::cuda;
  EXPECT_THAT(pages_of(strict), Not(Contains("tiled_epilogue")));
}

TEST(Library, PagesAboutAnOperatorServeOnlyTasksThatHaveIt) {
  auto brief = brief_of("reduction", MathMode::fp32);
  EXPECT_THAT(pages_of(brief), Not(Contains("order")));
  brief.task.graph.nodes.push_back({.op = "aten.topk.default"});
  EXPECT_THAT(pages_of(brief), Contains("order"));
}

TEST(Library, PagesRunOnTheDevice) {
  for (const char* gpu : {"a100", "h100", "h200"})
    for (const Component* page : components_for(brief_of("matmul+softmax", MathMode::fp16, gpu)))
      EXPECT_TRUE(page->archs.front() == "sm_80" || std::string(gpu) != "a100") << page->name;
}

TEST(Library, GuidanceSaysWhichProductsAreAccurateEnough) {
  for (const char* workload : {"matmul", "conv", "attention"}) {
    Task task = brief_of(workload, MathMode::fp32).task;
    EXPECT_THAT(guidance_for(task, 1), HasSubstr("as accurate as float32")) << workload;
    EXPECT_THAT(guidance_for(task, 1), Not(HasSubstr("one product in"))) << workload;
    task.math_mode = MathMode::bf16;
    EXPECT_THAT(guidance_for(task, 1), HasSubstr("one product in bf16")) << workload;
    EXPECT_THAT(guidance_for(task, 1), Not(HasSubstr("float32"))) << workload;
  }
  Task conv = brief_of("conv", MathMode::fp32).task;
  conv.tf32_convolutions = true;
  EXPECT_THAT(guidance_for(conv, 1), HasSubstr("one product in tf32"));
}

// One test compiles all examples. Splitting it by page and architecture would not compile less.
TEST(Library, EveryExampleCompilesForEachOfItsArchitectures) {
  ::setenv("CUTEGEN_BIN", CUTEGEN_BIN_DIR, 0);
  ::setenv("CUTEGEN_SHARE", CUTEGEN_SOURCE_DIR, 1);
  auto tools = toolchain::find_tools();
  if (!tools) GTEST_SKIP() << "no compiler here";
  toolchain::ToolchainOptions options;
  options.paths = *tools;
  auto toolchain = toolchain::Toolchain::open(options);
  ASSERT_TRUE(toolchain) << toolchain.error().text();
  for (const Component& c : components())
    for (const std::string& arch : c.archs) {
      auto result =
          (*toolchain)->compile({}, {.name = c.name + ".cu", .source = c.example, .arch = arch});
      ASSERT_TRUE(result) << result.error().text();
      EXPECT_TRUE(result->ok) << c.name << " for " << arch << "\n" << result->digest;
      EXPECT_THAT(result->ptx, HasSubstr(".entry")) << c.name;
    }
}

}  // namespace
}  // namespace cutegen::agent
