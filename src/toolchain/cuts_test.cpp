// SPDX-License-Identifier: Apache-2.0
#include "toolchain/cuts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "toolchain/scan.h"

namespace cutegen::toolchain {
namespace {

using testing::ElementsAre;

Cuts cuts_of(const std::string& source,
             std::vector<std::pair<std::string, std::string>> defines = {}) {
  const std::string text = full_source(
      {.name = "kernel.cu", .source = source, .defines = std::move(defines), .arch = "sm_90a"});
  return find_cuts(text, text.size() - source.size() - 1);
}

std::vector<int> lines_of(const std::string& source) {
  std::vector<int> out;
  for (const Cut& cut : cuts_of(source).at) out.push_back(cut.line);
  return out;
}

TEST(Cuts, LieAfterStatementsAndBraces) {
  EXPECT_THAT(lines_of("#include <cute/tensor.hpp>\nint a;\nvoid f() {\n  int b;\n  g(b);\n}\n"),
              ElementsAre(3, 4, 5, 6, 7));
}

TEST(Cuts, NotWithinAStatementOrItsParentheses) {
  EXPECT_THAT(lines_of("int a =\n  1;\nauto x = f([&] {\n  g();\n});\nint b;\n"),
              ElementsAre(3, 6, 7));
}

TEST(Cuts, OffsetsAreOfTheWholeText) {
  const std::string source = "int a;\nint b;\n";
  const std::string text = full_source(
      {.name = "kernel.cu", .source = source, .defines = {{"N", "4"}}, .arch = "sm_90a"});
  auto cuts = find_cuts(text, text.size() - source.size() - 1);
  ASSERT_EQ(cuts.at.size(), 2u);
  EXPECT_EQ(text.substr(cuts.at[0].offset, 6), "int b;");
  EXPECT_EQ(cuts.at[0].line, 2);
}

TEST(Cuts, CommentsAndLiteralsHaveNone) {
  EXPECT_THAT(lines_of("int a; /* {\n;\n*/ int b;\nchar c = ';';\nauto s = \"{\";  // }\n"),
              ElementsAre(4, 5, 6));
  EXPECT_THAT(lines_of("int a = 1'000;\nint b = 2;\n"), ElementsAre(2, 3));
}

TEST(Cuts, GroupsOfIfHaveNone) {
  EXPECT_THAT(lines_of("int a;\n#if N\nint b;\nint c;\n#else\nint d;\n#endif\nint e;\n"),
              ElementsAre(2, 8, 9));
}

TEST(Cuts, MacrosMayGoOverSeveralLines) {
  EXPECT_THAT(lines_of("#define F(x) \\\n  g(x); \\\n  h(x)\nint a;\nint b;\n"), ElementsAre(5, 6));
}

TEST(Cuts, SourcesThatBeginAlikeShareThem) {
  const std::string begin = "int a;\nvoid f() {\n  g();\n";
  auto one = cuts_of(begin + "  h();\n}\n"), two = cuts_of(begin + "  k(1,\n 2); // odd\n}\n");
  ASSERT_GE(two.at.size(), 3u);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(one.at[i].offset, two.at[i].offset);
}

TEST(Cuts, AreNotTooMany) {
  std::string source;
  for (int i = 0; i < 3000; ++i) source += "int a" + std::to_string(i) + ";\n";
  auto cuts = cuts_of(source);
  EXPECT_EQ(cuts.at.size(), 256u);
  EXPECT_EQ(cuts.at.back().line, 3001);
}

// Texts that could distinguish a piece from the whole, or that this scan may misread.
TEST(Cuts, OddTextsHaveNone) {
  for (const char* odd : {
           "#line 7 \"other.cu\"\nint a;\n",
           "# 7 \"other.cu\"\nint a;\n",
           "int a = __INCLUDE_LEVEL__;\n",
           "auto t = __TIME__;\n",
           "#if __has_include(<x>)\n#endif\nint a;\n",
           "#include \"candidate.cuh\"\nint a;\n",
           "#include \"beside.cuh\"\nint a;\n",
           "#include \"./cutegen/vec.cuh\"\nint a;\n",
           "#define H <cute/tensor.hpp>\n#include H\nint a;\n",
           "#embed \"kernel.cu\"\nint a;\n",
           "#pragma nv_hdrstop\nint a;\n",
           "#pragma push_macro(\"X\")\nint a;\n",
           "auto r = R\"(;\n)\";\nint a;\n",
           "int a; // \\\nint b;\n",
           "int a; /\\\n* ;\n*/ int b;\n",
           "#define OPEN f(\nOPEN 1);\nint a;\n",
           "#if N\nf(\n#else\ng(\n#endif\n1);\n",
           "int a; /* no end\n",
           "char c = 'x\n';\nint a;\n",
           "int a);\nint b;\n",
           "int a;\r\nint b;\n",
       }) {
    auto cuts = cuts_of(odd);
    EXPECT_FALSE(cuts.plain) << odd;
    EXPECT_TRUE(cuts.at.empty()) << odd;
  }
}

TEST(Cuts, ADefineThatOpensACommentIsOdd) {
  EXPECT_FALSE(cuts_of("*/ int a;\nint b;\n", {{"X", "/*"}}).plain);
  EXPECT_TRUE(cuts_of("int a;\nint b;\n", {{"X", "1 /* one */"}}).plain);
}

}  // namespace
}  // namespace cutegen::toolchain
