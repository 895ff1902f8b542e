// SPDX-License-Identifier: Apache-2.0
#include "toolchain/compile_memory.h"

#include <gtest/gtest.h>

namespace cutegen::toolchain {
namespace {

TEST(CompileMemory, TakesSizes) {
  EXPECT_EQ(compile_memory("4G").value_or(-1), int64_t{4} << 30);
  EXPECT_EQ(compile_memory("768M").value_or(-1), int64_t{768} << 20);
  EXPECT_EQ(compile_memory("1073741824").value_or(-1), int64_t{1} << 30);
  EXPECT_EQ(compile_memory("0").value_or(-1), 0);
  EXPECT_EQ(compile_memory("1M").value_or(-1), 0) << "too little for one program";
  EXPECT_GE(compile_memory("").value_or(-1), 0);
  EXPECT_LE(compile_memory("").value_or(-1), int64_t{8} << 30);
}

TEST(CompileMemory, RefusesTheRest) {
  for (const char* bad : {"4T", "G", "-1G", "4 G", "four", "1e9", "99999999999G", "4GB"}) {
    auto r = compile_memory(bad);
    ASSERT_FALSE(r) << bad;
    EXPECT_EQ(r.error().kind, ErrorKind::user);
    EXPECT_NE(r.error().remedy.find("4G"), std::string::npos);
  }
}

TEST(CompileMemory, IsGrantedInShares) {
  ::unsetenv("CUTEGEN_COMPILE_MEMORY");
  EXPECT_EQ(granted_compile_memory(), 0) << "no share without a grant";
  ASSERT_TRUE(grant_compile_memory("4G", 2));
  EXPECT_EQ(granted_compile_memory(), int64_t{2} << 30);
  ASSERT_TRUE(grant_compile_memory("0", 1));
  EXPECT_EQ(granted_compile_memory(), 0);
  EXPECT_FALSE(grant_compile_memory("much", 1));
  ::unsetenv("CUTEGEN_COMPILE_MEMORY");
}

}  // namespace
}  // namespace cutegen::toolchain
