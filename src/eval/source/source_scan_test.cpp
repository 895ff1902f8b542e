// SPDX-License-Identifier: Apache-2.0
#include "eval/source/source_scan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "eval/source/lint.h"

namespace cutegen::eval {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// "kind:text" of each token, with a letter for the kind.
std::vector<std::string> tokens(std::string_view source) {
  std::vector<std::string> out;
  for (const Token& t : scan_source(source))
    out.push_back(std::string(1, "wnscdp"[int(t.kind)]) + ":" + t.text);
  return out;
}

TEST(Scan, KindsAndTexts) {
  EXPECT_THAT(
      tokens("a_1 $b 12.5e3 1'000u 'x' \"t\\\"u\" +;"),
      ElementsAre("w:a_1", "w:$b", "n:12.5e3", "n:1'000u", "c:x", "s:t\\\"u", "p:+", "p:;"));
  EXPECT_THAT(tokens("0x1F 3.f 1'"), ElementsAre("n:0x1F", "n:3.f", "n:1", "c:"));
  EXPECT_THAT(tokens("a/b"), ElementsAre("w:a", "p:/", "w:b"));
}

TEST(Scan, CommentsAndSplicesAreNothing) {
  EXPECT_THAT(tokens("a /* b \n c */ d // e\nf"), ElementsAre("w:a", "w:d", "w:f"));
  EXPECT_THAT(tokens("a/**/b /***/ c /* /* */ d */"),
              ElementsAre("w:a", "w:b", "w:c", "w:d", "p:*", "p:/"));
  EXPECT_THAT(tokens("ab\\\ncd e\\\r\nf"), ElementsAre("w:abcd", "w:ef"));
  EXPECT_THAT(tokens("a \\ b"), ElementsAre("w:a", "p:\\", "w:b"));
  EXPECT_THAT(tokens("// a\\\nb\nc"), ElementsAre("w:c"));
  EXPECT_THAT(tokens("a /* never closed"), ElementsAre("w:a"));
}

TEST(Scan, DirectivesAreOneToken) {
  EXPECT_THAT(tokens("#  include   <a.h> // why\nx"), ElementsAre("d:#include <a.h>", "w:x"));
  EXPECT_THAT(tokens("  %: define A/* b */c\\\n d"), ElementsAre("d:#define A c d"));
  EXPECT_THAT(tokens("x # y"), ElementsAre("w:x", "p:#", "w:y"));
  EXPECT_THAT(tokens("x % y"), ElementsAre("w:x", "p:%", "w:y"));
  EXPECT_THAT(tokens("% y"), ElementsAre("p:%", "w:y"));
  EXPECT_THAT(tokens("/* a */ #if 1\n#endif"), ElementsAre("d:#if 1", "d:#endif"));
}

TEST(Scan, LiteralsWithPrefixes) {
  for (const char* prefix : {"L", "u8", "u", "U"})
    EXPECT_THAT(tokens(prefix + std::string("\"t\" x")), ElementsAre("s:t", "w:x")) << prefix;
  for (const char* prefix : {"R", "LR", "u8R", "uR", "UR"})
    EXPECT_THAT(tokens(prefix + std::string("\"d(a\")\n\\\" )d\" x")),
                ElementsAre("s:a\")\n\\\" ", "w:x"))
        << prefix;
  EXPECT_THAT(tokens("X\"t\""), ElementsAre("w:X", "s:t"));
  EXPECT_THAT(tokens("R\"(open"), ElementsAre("s:open"));
  EXPECT_THAT(tokens("\"two\nlines"), ElementsAre("s:two", "w:lines"));
}

TEST(Scan, PlacesCountLinesAndColumns) {
  auto t = scan_source("a b\n  cc\\\nd R\"(1\n2)\" e\n/* x\n*/ f 'q' g");
  std::vector<std::string> at;
  for (const Token& token : t)
    at.push_back(token.text + "@" + std::to_string(token.line) + ":" +
                 std::to_string(token.column));
  EXPECT_EQ(at[0], "a@1:1");
  EXPECT_EQ(at[1], "b@1:3");
  EXPECT_EQ(at[2], "ccd@2:3");
  EXPECT_EQ(at[3], "1\n2@3:3");
  EXPECT_EQ(t[4].line, 4);
  EXPECT_EQ(at[5], "f@6:4");
  EXPECT_EQ(at[6], "q@6:6");
  EXPECT_EQ(at[7], "g@6:10");
}

TEST(Signatures, ParametersAreSplitAtTheirCommas) {
  auto s = kernel_signatures(
      scan_source("extern \"C\" __global__ __attribute__((used, noinline)) void\n  "
                  "__cluster_dims__(2, 1, 1) f(Pair<int, float> p, float (*q)[3], int a[2, 3]) {}\n"
                  "__global__ void __maxnreg__(32) g(const int* const x, ) {}"));
  ASSERT_THAT(s, SizeIs(2));
  EXPECT_EQ(s[0].name, "f");
  EXPECT_EQ(s[0].line, 2);
  EXPECT_EQ(s[0].column, 29);
  EXPECT_THAT(s[0].parameters,
              ElementsAre("Pair < int , float > p", "float ( * q ) [ 3 ]", "int a [ 2 , 3 ]"));
  EXPECT_THAT(s[1].parameters, ElementsAre("const int * const x"));
}

TEST(Signatures, WhatIsNoKernelIsNone) {
  EXPECT_THAT(kernel_signatures(scan_source("void f(int a) {} __global__ int x; __global__ {")),
              IsEmpty());
  auto s = kernel_signatures(scan_source("__global__ void a(int x, void) {}"));
  ASSERT_THAT(s, SizeIs(1));
  EXPECT_THAT(s[0].parameters, ElementsAre("int x", "void"));
  EXPECT_THAT(kernel_signatures(scan_source("__global__ void b(int x")), SizeIs(1));
}

std::vector<std::string> found(const std::string& source) {
  std::vector<std::string> out;
  for (const LintFinding& f : lint_source("k.cu", source))
    out.push_back((f.rule ? "rule " : "fail ") + f.error.where + " " + f.error.message);
  return out;
}

TEST(LintPlaces, EachFindingStandsOnce) {
  EXPECT_THAT(found("int a;\n  __device__ int b;"),
              ElementsAre("rule k.cu:2:3 a writable __device__ variable keeps state between "
                          "launches"));
  EXPECT_THAT(found("void f() {\n k<<<1, 2>>>(); }"),
              ElementsAre("rule k.cu:2:3 launches from the device are not available"));
  EXPECT_THAT(found("#define A \\\n malloc"),
              ElementsAre("fail k.cu:1:3 'malloc' the device heap is not available"));
  EXPECT_THAT(found("void f() { asm(\"a\" \".inc\" \"lude\"); }"),
              ElementsAre("rule k.cu:1:16 '.include' is not allowed in assembly"));
  EXPECT_THAT(found("#pragma message(x)"),
              ElementsAre("rule k.cu:1:1 #pragma message(x) is not allowed"));
  std::string many;
  for (int i = 0; i < 40; ++i) many += "__device__ int v" + std::to_string(i) + ";\n";
  EXPECT_THAT(found(many), SizeIs(32));
}

TEST(LintPlaces, WhatLooksAlikeIsFine) {
  for (const char* source :
       {"int f(int a, int b) { return a < b; }", "bool x = a < < < b;",
        "struct S { S(S const&) = delete; void* operator new(size_t, void*); };",
        "struct S { void* operator new[](size_t); };",
        "__device__ void f(void* p) { new (p) int(3); }", "void f() { asm(\"vertex.x\"); }",
        "_Pragma(\"unroll 4\")", "#include \"cute/tensor.hpp\"",
        "__device__ int* const p = nullptr;",
        "void f() { static __shared__ float x[2]; static constexpr int y = 3; }",
        "static __device__ float g(float x) { return x; }", "namespace a { struct B { int c; }; }",
        "__device__ int h(int x) { int y = x; { int z = y; y = z; } return y; }\nint k();",
        "extern \"C\" { __global__ void k(); } __constant__ int t[2] = {1, 2};",
        "using A = int; typedef int B; template <class T> __device__ T id(T x) { return x; }",
        "#if defined(A)\n#endif\n#define TWICE(x) (2 * (x))", "alignas(8) struct C { int a; };"})
    EXPECT_THAT(found(source), IsEmpty()) << source;
}

TEST(LintPlaces, WhatHidesIsFound) {
  for (const char* source : {"_Pragma(NAME)",
                             "_Pragma(",
                             "#include_next <a>",
                             "#import <a>",
                             "#include NAME",
                             "#include <",
                             "#include \"a",
                             "#include <cute\\x>",
                             "void f() { asm(\" tex.2d\"); }",
                             "void f() { asm(\"tex.2d\"); }",
                             "#define S \".incbin\"",
                             "int cudaStreamX;",
                             "void f() {} __device__ int a;",
                             "namespace n { void f() {} } __device__ int a;",
                             "#define X\n__device__ int a;",
                             "__device__ const int* const* p;",
                             "__align__(8) __device__ int a;",
                             "void f() { static __align__(8) int a; }",
                             "extern \"C\" __device__ int a;",
                             "struct S {}; __device__ S s{1};",
                             "void f() { static int a = 1; }"})
    EXPECT_FALSE(found(source).empty()) << source;
  EXPECT_THAT(found("#include <vector>"), ElementsAre(HasSubstr("fail ")));
  for (const char* empty : {"#include <>", "#include \"\""})
    EXPECT_THAT(found(empty), ElementsAre(HasSubstr("rule k.cu:1:1 an include must name")))
        << empty;
  EXPECT_THAT(found("void f(int* p) { delete p; p = new int; }"), SizeIs(2));
}

KernelProgram with_kernels(const std::string& source) {
  KernelProgram p;
  p.sources["kernel.cu"] = source;
  p.plan.sources = {"kernel.cu"};
  return p;
}

TEST(LintPlan, StepsAndPreparationAreChecked) {
  KernelProgram p =
      with_kernels("__global__ void one(int a) {} __global__ void two(int a, int b) {}");
  Step good, far, fill, few;
  good.kernel = "two";
  good.args.resize(2);
  far.kernel = "something_else";
  fill.is_fill = true;
  few.kernel = "one";
  p.plan.steps = {good, fill, far};
  p.plan.prepare = {good, few};
  auto out = lint_program(p);
  ASSERT_THAT(out, SizeIs(2));
  EXPECT_EQ(out[0].error.where, "plan.json#/prepare/1/args");
  EXPECT_EQ(out[0].error.message, "'one' takes 1 argument, the step gives 0");
  EXPECT_EQ(out[1].error.where, "plan.json#/steps/2/kernel");
  EXPECT_EQ(out[1].error.remedy, "declare it: extern \"C\" __global__ void something_else(...)");
  EXPECT_FALSE(out[0].rule);
}

TEST(LintPlan, AMacroMayDeclareKernels) {
  KernelProgram p =
      with_kernels("#define KERNEL(n) extern \"C\" __global__ void n()\nKERNEL(f) {}");
  Step step;
  step.kernel = "f";
  p.plan.steps = {step};
  EXPECT_THAT(lint_program(p), IsEmpty());
  p.sources["kernel.cu"] = "#define OTHER void\n";
  EXPECT_THAT(lint_program(p), SizeIs(1));
}

TEST(LintPlan, TheLimitsAreExact) {
  KernelProgram p = with_kernels(std::string(1 << 20, ' '));
  EXPECT_THAT(lint_program(p), IsEmpty());
  p.sources["kernel.cu"] += ' ';
  EXPECT_THAT(lint_program(p), SizeIs(1));
  p.sources.clear();
  for (size_t i = 0; i < kMostSources; ++i) p.sources["k" + std::to_string(i)] = "";
  EXPECT_THAT(lint_program(p), IsEmpty());
  p.sources["more"] = "";
  auto out = lint_program(p);
  ASSERT_THAT(out, SizeIs(1));
  EXPECT_EQ(out[0].error.message, "257 sources with 0 bytes; the limits are 256 and 1048576");
}

}  // namespace
}  // namespace cutegen::eval
