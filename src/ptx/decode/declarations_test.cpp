// SPDX-License-Identifier: Apache-2.0
// Entries and constants can be read whatever the instructions are.
#include "ptx/decode/declarations.h"

#include <gtest/gtest.h>

namespace cutegen::ptx {
namespace {

constexpr const char* kUnknown = R"(.version 9.0
.target sm_90a
.address_size 64
.visible .const .align 4 .u32 cg_smem = 98304;
.visible .global .align 4 .b8 cg_tma_a[8] = {1, 0, 0, 0, 2, 0, 0, 0};
.global .align 4 .s32 _ZN3hidE = 3;
.visible .entry gemm(.param .align 64 .b8 gemm_map[128], .param .u64 gemm_out)
.maxntid 384, 1, 1
{
  .reg .b32 %r<4>;
  wgmma.of.the.future.sync.aligned {%r1, %r2}, %r3;
  ret;
}
)";

TEST(Declarations, AreReadThoughAnOpcodeIsUnknown) {
  auto d = read_declarations(kUnknown);
  ASSERT_TRUE(d) << d.error().text();
  ASSERT_EQ(d->entries.size(), 1U);
  const Entry& e = d->entries[0];
  EXPECT_EQ(e.name, "gemm");
  ASSERT_EQ(e.params.size(), 2U);
  EXPECT_EQ(e.params[0].size, 128U);
  EXPECT_EQ(e.params[0].align, 64U);
  EXPECT_EQ(e.params[1].size, 8U);
  EXPECT_EQ(e.max_block[0], 384);
  EXPECT_EQ(d->integers.at("cg_smem"), 98304);
  EXPECT_FALSE(d->integers.contains("_ZN3hidE"));
  ASSERT_TRUE(d->bytes.contains("cg_tma_a"));
  EXPECT_EQ(d->bytes.at("cg_tma_a")[4], std::byte{2});
}

TEST(Declarations, WhatIsNoModuleIsRefused) {
  EXPECT_FALSE(read_declarations(".version"));
  EXPECT_FALSE(read_declarations(".visible .entry f(.param .u64"));
  EXPECT_FALSE(read_declarations(std::string(size_t{33} << 20, ' ')));
}

}  // namespace
}  // namespace cutegen::ptx
