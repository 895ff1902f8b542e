// SPDX-License-Identifier: Apache-2.0
#include "eval/source/lint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cutegen::eval {
namespace {

using testing::HasSubstr;

constexpr const char* kHonest = R"(
extern "C" __device__ const float* const kNowhere = nullptr;
struct Tool { static __device__ int twice(int x) { static constexpr int kTwo = 2; return kTwo * x; } };
static __device__ inline int once(int x) { static const int kOne = 1; return kOne * x; }
#include <cute/tensor.hpp>
#include <cutegen/vec.cuh>
#include <cuda_fp16.h>
#pragma once
#define WIDTH 4
extern "C" __device__ const int cg_smem = 1024;  // new, malloc: words in comments are fine
__constant__ float kTable[4];
namespace detail {
struct Pair { float a, b; void operator=(Pair const&) = delete; };
template <int N> __device__ inline float twice(float x) { float t[N]; t[0] = 2 * x; return t[0]; }
}
extern "C" __global__ void __launch_bounds__(256, 2)
    scale(const float* __restrict__ x, float* out, int n, float factor) {
  __shared__ float tile[256];
  #pragma unroll 4
  for (int i = threadIdx.x; i < n; i += 256) {
    tile[threadIdx.x] = x[i]; out[i] = factor * tile[threadIdx.x]; }
  asm volatile("bar.sync 0;" ::: "memory");
}
)";

std::string findings_of(const std::string& source) {
  std::string out;
  for (const LintFinding& f : lint_source("kernel.cu", source))
    out += (f.rule ? "rule " : "fail ") + f.error.text() + "\n";
  return out;
}

TEST(Lint, HonestSourcePasses) {
  EXPECT_EQ(findings_of(kHonest), "");
}

TEST(Lint, BrokenRules) {
  for (const char* source : {"#include \"/etc/passwd\"",
                             "#include \"../secret.h\"",
                             "#include <cute/../../x>",
                             "#embed \"/etc/passwd\"",
                             "#define F <x.h>\n#include F",
                             "%:include </etc/passwd>",
                             "#inc\\\nlude </etc/passwd>",
                             "#/* */include /* */ \"/etc/passwd\"",
                             "#pragma include_alias(\"a\", \"b\")",
                             "_Pragma(\"message\")",
                             "#if __has_include(<x>)\n#endif",
                             "const char* t = __DATE__;",
                             "#define T __TIME__",
                             "__device__ int counter;",
                             "__device__ float memory[4] = {0};",
                             "static __device__ unsigned ticket = 0;",
                             "namespace a { namespace b { __device__ int c; } }",
                             "extern \"C\" { __device__ int c; }",
                             "alignas(16) __device__ int c;",
                             "__device__ const float* last;",
                             "__device__ int f() { static int n; return n++; }",
                             "__device__ int f() { static alignas(8) int n = 1; return n; }",
                             "__managed__ int m;",
                             "void f() { asm(\".inc\" \"bin \\\"/etc/passwd\\\"\"); }",
                             "void f() { asm(R\"(.include \"x\")\"); }",
                             "void f() { k<<<1, 1>>>(); }",
                             "void f() { cudaStreamCreate(0); }",
                             "void f() { system(\"ls\"); }"})
    EXPECT_THAT(findings_of(source), HasSubstr("rule kernel.cu:")) << source;
}

TEST(Lint, NotOffered) {
  for (const char* source :
       {"#include <iostream>", "__device__ void f() { malloc(4); }",
        "__device__ int* f() { return new int; }", "__device__ void f(int* p) { delete p; }",
        "__device__ void f() { printf(\"x\"); }", "cudaTextureObject_t t;"})
    EXPECT_THAT(findings_of(source), testing::StartsWith("fail kernel.cu:")) << source;
}

TEST(Lint, AVariableMayHaveTheNameOfALibraryFunction) {
  for (const char* source : {"__device__ int f() { int free = 3; free += 1; return min(free, 4); }",
                             "__device__ int f(const int free) { return free; }",
                             "__device__ void f(float* free, int n) { free[n] = 1; }",
                             "__device__ void f() { int system[4]; system[0] = 1; }"})
    EXPECT_EQ(findings_of(source), "") << source;
  for (const char* source :
       {"__device__ void f(int* p) { free(p); }",
        "__device__ void f(int* p) { int free = 1; free(p); }",
        "__device__ auto f() { return free; }", "__device__ auto f() { auto g = &free; return g; }",
        "#define give free", "__device__ void f(int* p) { ::free(p); }"})
    EXPECT_THAT(findings_of(source), HasSubstr("'free'")) << source;
}

TEST(Lint, NamesThePlace) {
  auto found = lint_source("a.cu", "// one\n/* two\n*/  #include <iostream>\n");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].error.where, "a.cu:3:5");
}

TEST(Lint, HostileTextEndsWell) {
  for (const char* source : {"\"",
                             "'",
                             "R\"(",
                             "R\"abc",
                             "/*",
                             "#",
                             "%:",
                             "\\",
                             "#include",
                             "{{{{",
                             "}}}}",
                             "__global__",
                             "extern \"C\" __global__ void f(",
                             "1'",
                             "u8R\"x",
                             "static",
                             "static int",
                             "_Pragma",
                             "_Pragma(",
                             "new",
                             "operator",
                             "extern",
                             "extern \"C\"",
                             "namespace",
                             "<",
                             "<<",
                             "__device__",
                             "alignas",
                             "__global__ void f",
                             "__global__ __launch_bounds__",
                             "__global__ __launch_bounds__(",
                             "static alignas(",
                             "\\\r",
                             "a\\",
                             "/",
                             "#pragma",
                             "#define",
                             "L",
                             "R\""})
    (void)findings_of(source), (void)kernel_signatures(scan_source(source));
  SUCCEED();
}

TEST(Signatures, KernelsAndTheirParameters) {
  auto s = kernel_signatures(scan_source(kHonest));
  ASSERT_EQ(s.size(), 1u);
  EXPECT_EQ(s[0].name, "scale");
  EXPECT_EQ(s[0].parameters.size(), 4u);
  auto more = kernel_signatures(
      scan_source("extern \"C\" __global__ void a() {}\nextern \"C\" __global__ void b(void);\n"
                  "extern \"C\" __launch_bounds__(128) __global__ void c(Pair<int, float> p, float "
                  "(*q)[3]) {}"));
  ASSERT_EQ(more.size(), 3u);
  EXPECT_TRUE(more[0].parameters.empty());
  EXPECT_TRUE(more[1].parameters.empty());
  EXPECT_EQ(more[2].parameters.size(), 2u);
  EXPECT_EQ(more[1].line, 2);
}

KernelProgram program_with(const std::string& kernel, size_t args) {
  KernelProgram p;
  p.sources["kernel.cu"] = "extern \"C\" __global__ void scale(const float* x, float* out) {}";
  p.plan.sources = {"kernel.cu"};
  Step step;
  step.kernel = kernel;
  step.args.resize(args);
  p.plan.steps = {step};
  return p;
}

TEST(Lint, PlanAndKernelsMustAgree) {
  EXPECT_TRUE(lint_program(program_with("scale", 2)).empty());
  auto count = lint_program(program_with("scale", 3));
  ASSERT_EQ(count.size(), 1u);
  EXPECT_EQ(count[0].error.text().find("plan.json#/steps/0/args"), 0u);
  EXPECT_THAT(count[0].error.message, HasSubstr("'scale' takes 2 arguments, the step gives 3"));
  auto name = lint_program(program_with("scal", 2));
  ASSERT_EQ(name.size(), 1u);
  EXPECT_THAT(name[0].error.remedy, HasSubstr("did you mean 'scale'"));
}

TEST(Lint, HugeProgramsAreRefused) {
  KernelProgram p = program_with("scale", 2);
  p.sources["kernel.cu"] += std::string(2 << 20, ' ');
  auto found = lint_program(p);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_THAT(found[0].error.message, HasSubstr("the limits are"));
}

}  // namespace
}  // namespace cutegen::eval
