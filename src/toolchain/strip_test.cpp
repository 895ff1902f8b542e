// SPDX-License-Identifier: Apache-2.0
#include "toolchain/strip.h"

#include <gtest/gtest.h>

namespace cutegen::toolchain {
namespace {

constexpr const char* kPtxHead = ".version 9.0\n.target sm_90a\n.address_size 64\n\n";

std::string body(const std::string& text) {
  return strip_ptx(kPtxHead + text, "kernel.cu").substr(std::string(kPtxHead).size());
}

TEST(Strip, RemovesWhatNothingUses) {
  EXPECT_EQ(body(".global .align 1 .u8 _ZN4cute1aE;\n"
                 ".global .align 4 .b8 _ZN4cute1bE[8] = {1, 2,\n 3};\n"
                 ".const .align 4 .u32 _ZN4cute1cE = 7;\n"
                 ".visible .entry k()\n{\n\tret;\n}\n"),
            ".visible .entry k()\n{\n\tret;\n}\n");
}

TEST(Strip, KeepsWhatCodeUses) {
  std::string text =
      ".global .align 4 .u32 used;\n"
      ".const .align 4 .b8 table[16];\n"
      ".visible .entry k()\n{\n\tld.global.u32 %r1, [used];\n\tmov.u64 %rd1, table;\n\tret;\n}\n";
  EXPECT_EQ(body(text), text);
}

TEST(Strip, KeepsWhatAKeptInitialiserUses) {
  EXPECT_EQ(body(".global .align 4 .u32 leaf;\n"
                 ".global .align 4 .u32 other;\n"
                 ".global .align 8 .u64 pointers[2] = {generic(leaf), 0};\n"
                 ".func f()\n{\n\tmov.u64 %rd1, pointers;\n}\n"),
            ".global .align 4 .u32 leaf;\n"
            ".global .align 8 .u64 pointers[2] = {generic(leaf), 0};\n"
            ".func f()\n{\n\tmov.u64 %rd1, pointers;\n}\n");
}

TEST(Strip, KeepsWhatOthersMayAskFor) {
  std::string text =
      ".visible .global .align 4 .u32 named = 5;\n"
      ".extern .shared .align 16 .b8 smem[];\n"
      ".weak .global .align 4 .u32 w;\n"
      ".global .align 4 .u32 cg_none;\n"
      ".global .align 4 .u32 shared_bytes = 1024;\n"
      ".global .align 64 .b8 spec_of_a[24] = {1, 0};\n";
  EXPECT_EQ(body(text), text);
}

TEST(Strip, ANameThatIsPartOfAnotherIsNotAUse) {
  EXPECT_EQ(body(".global .align 4 .u32 ab;\n.func f()\n{\n\tmov.u64 %rd1, abc;\n}\n"),
            ".func f()\n{\n\tmov.u64 %rd1, abc;\n}\n");
}

TEST(Strip, SourceNamesLoseTheirFolder) {
  EXPECT_EQ(body(".file\t1 \"/kernel.cu\"\n"), ".file\t1 \"kernel.cu\"\n");
}

TEST(Strip, OddTextIsLeftAlone) {
  for (const char* text :
       {"", ".global ", ".global .u32 never_ends", ".global ;\n", ".const =;", "\n\n"})
    EXPECT_NO_FATAL_FAILURE((void)strip_ptx(text, "kernel.cu")) << text;
  EXPECT_EQ(strip_ptx(".global .u32 never_ends", "k.cu"), ".global .u32 never_ends");
}

}  // namespace
}  // namespace cutegen::toolchain
