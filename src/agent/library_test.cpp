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

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsSupersetOf;

TEST(Library, EveryClassHasGuidance) {
  EXPECT_THAT(
      guidance_classes(),
      IsSupersetOf({"matmul", "gemv", "elementwise", "softmax", "norm", "reduction", "pooling",
                    "conv", "transposed_conv", "depthwise", "scan", "loss", "attention", "fused"}));
  EXPECT_THAT(classes_of("transposed conv+norm"), ElementsAre("transposed_conv", "norm", "fused"));
  EXPECT_THAT(classes_of("something new"), ElementsAre("elementwise"));
  for (const std::string& name : guidance_classes())
    EXPECT_GT(guidance_for(name, 1).size(), 300u) << name;
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

TEST(Library, PagesAreChosenByClass) {
  auto pages = components_for("matmul+elementwise", Dialect::cute);
  ASSERT_FALSE(pages.empty());
  EXPECT_EQ(pages.front()->name, "gemm");
  for (const Component* c : components_for("matmul", Dialect::cuda))
    EXPECT_NE(c->name, "tiled_mma");
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
      auto result = (*toolchain)->compile({}, {c.name + ".cu", c.example, {}, arch});
      ASSERT_TRUE(result) << result.error().text();
      EXPECT_TRUE(result->ok) << c.name << " for " << arch << "\n" << result->digest;
      EXPECT_THAT(result->ptx, HasSubstr(".entry")) << c.name;
    }
}

}  // namespace
}  // namespace cutegen::agent
