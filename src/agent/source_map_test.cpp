// SPDX-License-Identifier: Apache-2.0
#include "agent/source_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/testing/test_program.h"

namespace cutegen::agent {
namespace {

using testing::ElementsAre;

std::vector<std::string> names(std::string_view text) {
  std::vector<std::string> out;
  for (const Definition& d : definitions_in(text)) out.push_back(d.name);
  return out;
}

TEST(SourceMap, OnlyCodeIsLeft) {
  EXPECT_EQ(code_only("a /* { */ b // }\nc"), "a         b     \nc");
  auto words = [](const char* text) {
    std::string code = code_only(text);
    EXPECT_EQ(code.size(), std::string_view(text).size());
    std::erase(code, ' ');
    return code;
  };
  EXPECT_EQ(words("f(\"{\\\"\", '}', 1'000)"), "f(,,1'000)");
  EXPECT_EQ(words("x R\"t({)\" )t\" y"), "xRy");
  EXPECT_EQ(words("#define A {\\\n {\nb"), "\n\nb");
  EXPECT_EQ(code_only("#if A /* {\n{ */ && B\n").find('{'), std::string::npos);
  EXPECT_EQ(code_only("/* never closed {").find('{'), std::string::npos);
}

TEST(SourceMap, FindsDefinitionsOfTheTestProgram) {
  EXPECT_THAT(names(test_source()), ElementsAre("Pair", "total", "widen", "scale", "finish"));
  std::string text = test_source();
  auto all = definitions_in(text);
  EXPECT_TRUE(all[0].is_type);
  EXPECT_EQ(text.substr(all[0].begin, all[0].size), "struct Pair {\n  float a, b;\n};");
  EXPECT_EQ(text.compare(all[2].begin, 16, "template <int V>"), 0);
  EXPECT_EQ(all[1].line, 14);
}

TEST(SourceMap, HeadsOfManyForms) {
  EXPECT_THAT(names("namespace a { namespace { int f() { return 0; } } }"), ElementsAre("f"));
  EXPECT_THAT(names("extern \"C\" {\n__global__ void k(int a) {}\n}"), ElementsAre("k"));
  EXPECT_THAT(names("__global__ void __launch_bounds__(128, 2) k() {}"), ElementsAre("k"));
  EXPECT_THAT(names("constexpr int a[] = {1, 2}; auto f = [](int x) { return x; };\nint g() {}"),
              ElementsAre("g"));
  EXPECT_THAT(names("template <class T, class = std::enable_if_t<(sizeof(T) > 2)>>\nint f(T) {}"),
              ElementsAre("f"));
  EXPECT_THAT(names("struct alignas(sizeof(T) > 2 ? 4 : 2) Pack { int f() { return 1; } };"),
              ElementsAre("Pack"));
  EXPECT_THAT(names("enum class Kind : int { a };\nclass B : public A<int> {};"),
              ElementsAre("Kind", "B"));
  EXPECT_THAT(names("auto f() -> decltype(g(1)) { return {}; }"), ElementsAre("f"));
  EXPECT_THAT(names("int f(int (*g)(int), int b = h({1})) { return 0; }"), ElementsAre("f"));
  EXPECT_THAT(names("int f();\n#define X {\nint g() { return 1; }"), ElementsAre("g"));
}

TEST(SourceMap, TextThatIsNoSourceGivesNothing) {
  for (const char* text :
       {"", "{", "}", "((((", "template <", "struct", "int f() {", "\\", "'", "#", "/*", "R\"(",
        "extern \"C\" {", "template <class T> struct", "a{}{}{}"})
    EXPECT_TRUE(names(text).empty()) << text;
}

TEST(SourceMap, BracketsOutOfBalance) {
  EXPECT_FALSE(first_imbalance(test_source()));
  EXPECT_FALSE(first_imbalance("#if A\nvoid f() {\n#else\nvoid g() {\n#endif\n}"));
  auto message = [](const char* text) {
    auto found = first_imbalance(text);
    return found ? found->message : std::string();
  };
  EXPECT_EQ(message("a\n{\n(\n)"), "'{' of line 2 is never closed");
  EXPECT_EQ(message("a\n}\n"), "'}' of line 2 closes nothing");
  EXPECT_EQ(message("(\n]"), "']' of line 2 does not fit '(' of line 1");
  EXPECT_EQ(message("#if A\nx"), "#if of line 1 has no #endif");
  EXPECT_EQ(message("x\n#endif\n"), "#endif of line 2 has no #if");
  EXPECT_EQ(message("// { \n \"(\" '{' /* [ */"), "");
}

}  // namespace
}  // namespace cutegen::agent
