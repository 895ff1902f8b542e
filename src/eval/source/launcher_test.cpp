// SPDX-License-Identifier: Apache-2.0
// Launches that start_program reads from a host function of the source.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/hash.h"
#include "eval/source/start_program.h"

namespace cutegen::eval {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// As SGLang and vLLM write it.
constexpr const char* kLauncherSource = R"(#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <algorithm>

#define CHECK_INPUT(x) TORCH_CHECK(x.is_cuda(), #x " must be on the GPU")

namespace ours {

constexpr int kMost = 1024;

__device__ __forceinline__ float silu(float z) { return z / (1.0f + expf(-z)); }

template <typename scalar_t, int VEC>
__global__ void __launch_bounds__(kMost) act_kernel(scalar_t* __restrict__ out,
                                                    const scalar_t* __restrict__ input, int d) {
  const scalar_t* x = input + (long long)blockIdx.x * 2 * d;
  for (int i = threadIdx.x; i < d; i += blockDim.x)
    out[(long long)blockIdx.x * d + i] = scalar_t(silu(float(x[i])) * float(x[d + i]));
}

}  // namespace ours

inline int64_t div_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

void silu_and_mul(torch::Tensor& out, torch::Tensor& input) {
  CHECK_INPUT(input);
  int d = input.size(-1) / 2;
  int64_t num_tokens = input.numel() / input.size(-1);
  TORCH_CHECK(d % 8 == 0 && input.is_contiguous(), "d must be a multiple of 8");
  if (num_tokens == 0) return;
  dim3 grid(num_tokens);
  dim3 block(std::min(d, ours::kMost));
  const at::cuda::OptionalCUDAGuard device_guard(device_of(input));
  const cudaStream_t stream = at::cuda::getCurrentCUDAStream();
  // LAUNCH
  AT_DISPATCH_FLOATING_TYPES_AND_HALF(input.scalar_type(), "act_kernel", [&] {
    ours::act_kernel<scalar_t, 8><<<grid, block, 0, stream>>>(
        out.data_ptr<scalar_t>(), input.data_ptr<scalar_t>(), d);
  });
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("silu_and_mul", &silu_and_mul); }
)";
constexpr const char* kLauncherSide = R"toml([kernel]
launcher = "silu_and_mul"
args = ["out", "x"]
)toml";

// A plain launcher, for variations of its body.
constexpr const char* kPlainSource = R"(
__global__ void scale(const float* x, float* out, int n, float by) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] * by;
}
%HELPER%
void launch(float* out, const float* x, int n, int rows, double by, cudaStream_t stream) {
  %BODY%
  scale<<<%GRID%, %BLOCK%, %SHARED%, stream>>>(x, out, n, by);
}
)";
constexpr const char* kPlainSide = R"toml([kernel]
launcher = "launch"
args = ["out", "x", { i32 = "size(x)" }, { i32 = "dim(x,0)" }, { f64 = "attr(by)" }]
)toml";

struct Plain {
  std::string body = "", grid = "(n + 255) / 256", block = "256", shared = "0", helper = "";
};

Task silu_task(DType dtype) {
  Task t;
  t.tensors = {{.name = "x", .role = TensorRole::input, .dtype = dtype, .shape = {8, 64}},
               {.name = "out", .role = TensorRole::output, .dtype = dtype, .shape = {8, 32}}};
  t.attributes = {{.name = "by", .value = 2.0}};
  ShapeCase official{.name = "official"};
  official.tensors = {{"x", {8, 64}}, {"out", {8, 32}}};
  t.shapes = {official};
  return t;
}

class Launcher : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("cutegen-launcher-" + random_id());
    ASSERT_TRUE(private_dir(folder_));
    ASSERT_TRUE(write_file(folder_ / "k.py", "import torch\n"));
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  Result<KernelProgram> read(const std::string& source, const std::string& side = kLauncherSide,
                             DType dtype = DType::f16) {
    EXPECT_TRUE(write_file(folder_ / "k.cu", source));
    EXPECT_TRUE(write_file(folder_ / "k.toml", side));
    return start_program(folder_ / "k.cu", silu_task(dtype));
  }
  std::string error(const std::string& source, const std::string& side = kLauncherSide,
                    DType dtype = DType::f16) {
    auto program = read(source, side, dtype);
    return program ? "no error" : program.error().text();
  }
  static std::string changed(std::string text, const std::string& from, const std::string& to) {
    EXPECT_NE(text.find(from), std::string::npos) << from;
    return text.replace(text.find(from), from.size(), to);
  }
  static std::string plain(const Plain& p) {
    std::string text = kPlainSource;
    for (const auto& [from, to] :
         {std::pair("%BODY%", p.body), std::pair("%GRID%", p.grid), std::pair("%BLOCK%", p.block),
          std::pair("%SHARED%", p.shared), std::pair("%HELPER%", p.helper)})
      text = changed(text, from, to);
    return text;
  }
  std::string plain_error(const Plain& p) { return error(plain(p), kPlainSide, DType::f32); }
  // "grid | block | shared | requires" of a plain launcher, or its error.
  std::string launch(const Plain& p) {
    auto program = read(plain(p), kPlainSide, DType::f32);
    if (!program) return program.error().text();
    const Step& s = program->plan.steps.at(0);
    std::string out = fmt::format("{},{},{} | {},{},{} | {}", s.grid[0].text(), s.grid[1].text(),
                                  s.grid[2].text(), s.block[0].text(), s.block[1].text(),
                                  s.block[2].text(), s.shared_bytes.text());
    for (const Expr& e : program->plan.requires_) out += " | " + e.text();
    return out;
  }
  std::string grid(const Plain& p) {
    const std::string all = launch(p);
    return all.substr(0, all.find(",1,1 |"));
  }

  std::filesystem::path folder_;
};

TEST_F(Launcher, ReadsAPyTorchExtension) {
  auto program = read(kLauncherSource);
  ASSERT_TRUE(program) << program.error().text();
  const Step& step = program->plan.steps.at(0);
  EXPECT_EQ(step.kernel, "act_kernel");
  EXPECT_EQ(step.grid[0].text(), "size(x)/dim(x,-1)");
  EXPECT_EQ(step.block[0].text(), "min(dim(x,-1)/2, 1024)");
  EXPECT_EQ(step.shared_bytes.text(), "0");
  ASSERT_EQ(step.args.size(), 3u);
  EXPECT_EQ(step.args[0].name, "out");
  EXPECT_EQ(step.args[1].name, "x");
  EXPECT_EQ(step.args[2].kind, ArgSpec::Kind::i32);
  EXPECT_EQ(step.args[2].value.text(), "dim(x,-1)/2");
  std::vector<std::string> conditions;
  for (const Expr& e : program->plan.requires_) conditions.push_back(e.text());
  EXPECT_THAT(conditions, ElementsAre("dim(x,-1)/2%8 == 0", "size(x)/dim(x,-1) != 0"));
}

TEST_F(Launcher, TheProgramHasOnlyTheDeviceCode) {
  auto program = read(kLauncherSource);
  ASSERT_TRUE(program) << program.error().text();
  const std::string& text = program->sources.at("k.cu");
  for (const char* host : {"torch", "silu_and_mul", "<<<", "PYBIND11", "algorithm", "div_up"})
    EXPECT_THAT(text, Not(HasSubstr(host)));
  EXPECT_THAT(text, HasSubstr("#include <cuda_fp16.h>"));
  EXPECT_THAT(text, HasSubstr("__device__ __forceinline__ void"));
  EXPECT_THAT(text, HasSubstr("extern \"C\" __global__ void __launch_bounds__ ( kMost ) act_kernel("
                              "__half * __restrict__ out, const __half * __restrict__ input, int d)"
                              " { act_kernel_body<__half, 8>(out, input, d); }"));
  // Every line of the device code keeps its number.
  const std::string source = kLauncherSource;
  EXPECT_EQ(std::ranges::count(text, '\n'), std::ranges::count(source, '\n'));
}

TEST_F(Launcher, TheTaskSaysTheDtype) {
  auto program = read(kLauncherSource, kLauncherSide, DType::bf16);
  ASSERT_TRUE(program) << program.error().text();
  EXPECT_THAT(program->sources.at("k.cu"), HasSubstr("act_kernel_body<__nv_bfloat16, 8>"));
  EXPECT_THAT(program->sources.at("k.cu"), HasSubstr("#include <cuda_bf16.h>"));
  const std::string branches = changed(
      changed(kLauncherSource,
              "AT_DISPATCH_FLOATING_TYPES_AND_HALF(input.scalar_type(), "
              "\"act_kernel\", [&] {",
              "if (input.scalar_type() == at::ScalarType::Half) { using scalar_t = at::Half;"),
      "d);\n  });", "d);\n  } else { TORCH_CHECK(false, \"no\"); }");
  auto half = read(branches);
  ASSERT_TRUE(half) << half.error().text();
  EXPECT_THAT(half->sources.at("k.cu"), HasSubstr("act_kernel_body<__half, 8>"));
  EXPECT_THAT(error(branches, kLauncherSide, DType::f32),
              HasSubstr("the launcher refuses this task here"));
}

TEST_F(Launcher, MayAllocateItsResults) {
  const std::string source = changed(
      changed(
          changed(kLauncherSource, "void silu_and_mul(torch::Tensor& out, torch::Tensor& input)",
                  "torch::Tensor silu_and_mul(torch::Tensor input)"),
          "CHECK_INPUT(input);",
          "auto y = torch::empty({input.size(0), input.size(1) / 2}, input.options());"),
      "  });\n}", "  });\n  return y;\n}");
  const std::string own = changed(changed(source, "out.data_ptr", "y.data_ptr"),
                                  "  if (num_tokens == 0) return;\n", "");
  auto program = read(own, "[kernel]\nlauncher = \"silu_and_mul\"\nargs = [\"x\"]\n");
  ASSERT_TRUE(program) << program.error().text();
  EXPECT_EQ(program->plan.steps[0].args[0].name, "out");
  EXPECT_THAT(error(changed(own, "return y;", "return input;"),
                    "[kernel]\nlauncher = \"silu_and_mul\"\nargs = [\"x\"]\n"),
              HasSubstr("the launcher allocates 'y', which it does not return"));
}

TEST_F(Launcher, ArgumentsMayHaveTheNamesOfTheTask) {
  std::string source = kLauncherSource;
  for (size_t at; (at = source.find("input")) != std::string::npos;) source.replace(at, 5, "x");
  auto program = read(source, "[kernel]\nlauncher = \"silu_and_mul\"\n");
  ASSERT_TRUE(program) << program.error().text();
  EXPECT_EQ(program->plan.steps[0].args[1].name, "x");
  EXPECT_THAT(error(kLauncherSource, "[kernel]\nlauncher = \"silu_and_mul\"\n"),
              HasSubstr("the task has nothing named 'input' (list what the launcher's parameters "
                        "are: args = [...] in [kernel])"));
}

// A macro with the whole launcher, and a function as template argument.
TEST_F(Launcher, ReadsTheFormOfVllm) {
  auto program = read(R"(#include <torch/all.h>
#include <c10/cuda/CUDAGuard.h>
namespace vllm {
template <typename T>
__device__ __forceinline__ T silu_kernel(const T& x) { return (T)((float)x / (1.0f + expf((float)-x))); }
template <typename scalar_t, scalar_t (*ACT_FN)(const scalar_t&), bool act_first>
__global__ void act_and_mul_kernel(scalar_t* __restrict__ out, const scalar_t* __restrict__ input,
                                   const int d) {}
}
#define LAUNCH(KERNEL, ACT_FIRST)                                       \
  int d = input.size(-1) / 2;                                           \
  int64_t num_tokens = input.numel() / input.size(-1);                  \
  dim3 grid(num_tokens);                                                \
  dim3 block(std::min(d, 1024));                                        \
  if (num_tokens == 0) {                                                \
    return;                                                             \
  }                                                                     \
  const at::cuda::OptionalCUDAGuard device_guard(device_of(input));     \
  const cudaStream_t stream = at::cuda::getCurrentCUDAStream();         \
  VLLM_DISPATCH_FLOATING_TYPES(                                         \
      input.scalar_type(), "act_and_mul_kernel", [&] {                  \
        vllm::act_and_mul_kernel<scalar_t, KERNEL<scalar_t>, ACT_FIRST> \
            <<<grid, block, 0, stream>>>(out.data_ptr<scalar_t>(),      \
                                         input.data_ptr<scalar_t>(), d); \
      });
void silu_and_mul(torch::Tensor& out, torch::Tensor& input) { LAUNCH(vllm::silu_kernel, true); }
)");
  ASSERT_TRUE(program) << program.error().text();
  EXPECT_EQ(program->plan.steps[0].block[0].text(), "min(dim(x,-1)/2, 1024)");
  EXPECT_THAT(
      program->sources.at("k.cu"),
      HasSubstr("act_and_mul_kernel_body<__half, vllm::silu_kernel<__half>, true>(out, input, d)"));
}

// The type has another name than scalar_t, and the block depends on its size.
TEST_F(Launcher, ReadsTheFormOfFlashInfer) {
  auto program = read(R"(#include <torch/all.h>
template <typename T, float (*F)(const float&)>
__global__ void act_kernel(T* out, const T* input, const int d) {}
__device__ float silu(const float& x) { return x; }
void silu_and_mul(at::Tensor& out, at::Tensor& input) {
  int d = input.size(-1) / 2;
  dim3 grid(input.numel() / input.size(-1));
  cudaLaunchConfig_t config;
  config.gridDim = 3;
  DISPATCH_PYTORCH_DTYPE_TO_CTYPE_FLOAT_FP16(input.scalar_type(), c_type, [&] {
    uint32_t vec_size = 16 / sizeof(c_type);
    dim3 block(std::min(d / vec_size, 1024U));
    act_kernel<c_type, silu><<<grid, block, 0, at::cuda::getCurrentCUDAStream()>>>(
        static_cast<c_type*>(out.data_ptr()), (const c_type*)input.data_ptr(), d);
    return true;
  });
}
)");
  ASSERT_TRUE(program) << program.error().text();
  EXPECT_EQ(program->plan.steps[0].block[0].text(), "min(dim(x,-1)/2/8, 1024)");
  EXPECT_THAT(program->sources.at("k.cu"),
              HasSubstr("act_kernel_body<__half, silu>(out, input, d)"));
}

TEST_F(Launcher, ReadsArithmetic) {
  EXPECT_EQ(launch({}), "(size(x) + 255)/256,1,1 | 256,1,1 | 0");
  EXPECT_EQ(grid({.grid = "(unsigned)n"}), "size(x)");
  EXPECT_EQ(grid({.grid = "static_cast<unsigned int>(n - (rows + 1))"}),
            "size(x) - (dim(x,0) + 1)");
  EXPECT_EQ(grid({.grid = "n / (4 * 8)"}), "size(x)/32");
  EXPECT_EQ(grid({.grid = "n > 4 ? n * 2 : 1"}), "size(x) > 4 ? size(x)*2 : 1");
  EXPECT_EQ(grid({.grid = "std::max<int>({n, rows, 3})"}), "max(max(size(x), dim(x,0)), 3)");
  EXPECT_EQ(grid({.grid = "n << 3"}), "size(x)*8");
  EXPECT_EQ(grid({.grid = "n > 3 && rows ? 1 : 2"}), "(size(x) > 3 ? dim(x,0) != 0 : 0) ? 1 : 2");
  EXPECT_EQ(grid({.grid = "!(n % 4) || rows > 2"}), "size(x)%4 == 0 ? 1 : dim(x,0) > 2");
  EXPECT_EQ(grid({.grid = "0x10 + 0b11 + 010 + 1'000u"}), "1027");
  EXPECT_EQ(grid({.grid = "n & 31"}), "(size(x)%32 + 32)%32");
  EXPECT_EQ(
      launch({.grid = "dim3(rows, 2)", .block = "dim3{32u, 4}", .shared = "64 * sizeof(float)"}),
      "dim(x,0),2,1 | 32,4,1 | 256");
}

TEST_F(Launcher, ReadsVariables) {
  EXPECT_EQ(
      grid({.body = "const int threads = 128; auto g = (n + threads - 1) / threads;", .grid = "g"}),
      "(size(x) + 128 - 1)/128");
  EXPECT_EQ(
      launch(
          {.body = "dim3 g(rows), b; b.x = 64; b.y *= 2; g.z = n / 2;", .grid = "g", .block = "b"}),
      "dim(x,0),1,size(x)/2 | 64,2,1 | 0");
  EXPECT_EQ(grid({.body = "int t = 32, g = 1; if (n > 64) { t = 64; g += n; } else t = 16;",
                  .grid = "g",
                  .block = "32"}),
            "size(x) > 64 ? 1 + size(x) : 1");
  EXPECT_EQ(grid({.body = "int t = 1; { int t = 2; t = 3; } t++;", .grid = "t"}), "2");
  EXPECT_EQ(
      grid({.body = "constexpr bool wide = true; int t; if constexpr (wide) t = n; else t = 1;",
            .grid = "t"}),
      "size(x)");
  EXPECT_EQ(launch({.body = "if (rows > 2) { if (n < 8) return; }"}),
            "(size(x) + 255)/256,1,1 | 256,1,1 | 0");
}

TEST_F(Launcher, ReadsHelpersOfTheFile) {
  const std::string expected = "(size(x) + 256 - 1)/256";
  EXPECT_EQ(grid({.grid = "up(n, 256)",
                  .helper = "template <typename T> T up(T a, T b) { return (a + b - 1) / b; }"}),
            expected);
  EXPECT_EQ(
      grid({.grid = "UP(n, T)", .helper = "#define T 256\n#define UP(a, b) (((a) + (b)-1) / (b))"}),
      expected);
  EXPECT_EQ(grid({.body = "auto up = [](int a, int b) { return (a + b - 1) / b; };",
                  .grid = "up(n, kT)",
                  .helper = "constexpr int kT = 2 * kHalf; static const int kHalf = 128;"}),
            expected);
  EXPECT_EQ(grid({.grid = "at::ceil_div(n, 256)"}), "ceil_div(size(x), 256)");
  EXPECT_EQ(grid({.grid = "at::cuda::getCurrentDeviceProperties()->multiProcessorCount * 2"}),
            "gpu.sms*2");
}

TEST_F(Launcher, AKernelMayHaveAVariable) {
  EXPECT_EQ(
      launch({.body = "auto k = &scale; cudaFuncSetAttribute(k, x, 3); k<<<n, 1>>>(x, out, n, "
                      "by); return;"}),
      "size(x),1,1 | 1,1,1 | 0");
}

TEST_F(Launcher, WhatItCannotReadIsAnErrorOnlyIfTheLaunchNeedsIt) {
  EXPECT_EQ(grid({.body = "auto props = properties(stream);"}), "(size(x) + 255)/256");
  const std::string needed = plain_error({.body = "int g = blocks(n);", .grid = "g"});
  EXPECT_THAT(needed, HasSubstr("k.cu:8:11: error: cutegen cannot see what 'blocks' returns (write "
                                "grid = \"...\" into [kernel] of the side file)"));
  // A call may change the variables that it receives.
  EXPECT_THAT(plain_error({.body = "int g = 4; int ok = blocks(&g);", .grid = "g"}),
              HasSubstr("cutegen cannot see what 'blocks' returns"));
  EXPECT_EQ(grid({.body = "const int g = 4; int ok = blocks(g);", .grid = "g"}), "4");
}

TEST_F(Launcher, AnUnreadableAssignmentChangesAllThatItMentions) {
  const std::string needed = plain_error({.body = "dim3 g(rows); g.x = n, g.y = 2;", .grid = "g"});
  EXPECT_THAT(needed, HasSubstr("k.cu:8:24: error: unexpected ','"));
  EXPECT_EQ(grid({.body = "const int c = 3; dim3 g(rows), h; h.x = c, h.y = 2;", .grid = "g"}),
            "dim(x,0)");
}

TEST_F(Launcher, TheSideFileHasPriority) {
  const std::string source = plain({.grid = "blocks(n)"});
  auto program =
      read(source, std::string(kPlainSide) + "grid = \"ceil_div(size(x), 256)\"\n", DType::f32);
  ASSERT_TRUE(program) << program.error().text();
  EXPECT_EQ(program->plan.steps[0].grid[0].text(), "ceil_div(size(x), 256)");
}

TEST_F(Launcher, RefusesWhatWouldHaveToRun) {
  const auto body = [&](const std::string& text) { return plain_error({.body = text}); };
  EXPECT_THAT(body("for (int i = 0; i < 3; ++i) n += i;"),
              HasSubstr("k.cu:8:3: error: cutegen does not run host code such as 'for' (write the "
                        "launch into [kernel] of the side file instead: name, args, grid, block)"));
  EXPECT_THAT(body("while (n > 3) n /= 2;"), HasSubstr("such as 'while'"));
  EXPECT_THAT(body("switch (n) { case 1: n = 2; }"), HasSubstr("such as 'switch'"));
  EXPECT_THAT(body("prepare(x);"), HasSubstr("cutegen cannot read this statement, which begins "
                                             "with 'prepare'"));
  EXPECT_THAT(body("cudaMemsetAsync(out, 0, n, stream);"), HasSubstr("begins with 'cudaMemset"));
  EXPECT_THAT(body("scale<<<1, 1>>>(x, out, n, by);"),
              HasSubstr("the launcher launches a second time"));
  EXPECT_THAT(
      body("if (n > 3) scale<<<1, 1>>>(x, out, n, by); else scale<<<2, 1>>>(x, out, n, by);"),
      HasSubstr("the launcher launches a second time"));
  EXPECT_THAT(body("#ifdef FAST\nn = 3;\n#endif"), HasSubstr("a preprocessor directive"));
  EXPECT_THAT(plain_error({.grid = "n * 0.5"}), HasSubstr("floating-point arithmetic"));
  EXPECT_THAT(plain_error({.grid = "1 << n"}), HasSubstr("a plan has no operator '<<'"));
  EXPECT_THAT(plain_error({.grid = "up(n, 4)",
                           .helper = "int up(int a, int b) { while (a % b) ++a; "
                                     "return a; }"}),
              HasSubstr("'up' does more than return an expression"));
  EXPECT_THAT(plain_error({.grid = "f(n)", .helper = "int f(int a) { return f(a); }"}),
              HasSubstr("too long or too deep"));
  EXPECT_THAT(plain_error({.grid = "x"}), HasSubstr("the grid is no dim3"));
  EXPECT_THAT(plain_error({.body = "int g = 2;" +
                                   [] {
                                     std::string doubled;
                                     for (int i = 0; i < 60; ++i) doubled += "g = g * n + g;";
                                     return doubled;
                                   }(),
                           .grid = "g"}),
              HasSubstr("longer than a plan accepts"));
}

TEST_F(Launcher, RefusesLaunchesItCannotMatch) {
  const std::string source = plain({});
  EXPECT_THAT(error(changed(source, "scale<<<", "scales<<<"), kPlainSide, DType::f32),
              HasSubstr("has no kernel 'scales'"));
  EXPECT_THAT(error(changed(source, "n, by);", "n);"), kPlainSide, DType::f32),
              HasSubstr("the kernel 'scale' has 4 parameters, the launch gives 3"));
  EXPECT_THAT(error(changed(source, "n, by);", "by, by);"), kPlainSide, DType::f32),
              HasSubstr("attr(by) is floating point, the kernel's parameter is 'int n'"));
  EXPECT_THAT(error(changed(source, "(x, out,", "(x + 4, out,"), kPlainSide, DType::f32),
              HasSubstr("this is no integer"));
  EXPECT_THAT(error(changed(source, "(x, out,", "(out, x,"), kPlainSide, DType::f32),
              HasSubstr("k.cu:9:"));
  EXPECT_THAT(error(changed(source, "int n, float by", "bool n, float by"), kPlainSide, DType::f32),
              HasSubstr("cutegen cannot pass a number to the parameter 'bool n'"));
  EXPECT_THAT(error(changed(source, "stream>>>", "stream>>"), kPlainSide, DType::f32),
              HasSubstr("cutegen cannot read this launch"));
  EXPECT_THAT(error(changed(source, "scale<<<(n + 255) / 256, 256, 0, stream>>>", "f"), kPlainSide,
                    DType::f32),
              HasSubstr("begins with 'f'"));
}

TEST_F(Launcher, RefusesASideFileThatDisagrees) {
  const auto side = [&](const std::string& from, const std::string& to) {
    return error(kLauncherSource, changed(kLauncherSide, from, to));
  };
  EXPECT_THAT(side("silu_and_mul", "silu_and_mull"), HasSubstr("k.toml:2:12: error: "));
  EXPECT_THAT(side("silu_and_mul", "silu_and_mull"), HasSubstr("did you mean 'silu_and_mul'?"));
  EXPECT_THAT(side("silu_and_mul", "act_kernel"), HasSubstr("'act_kernel' is no host function"));
  EXPECT_THAT(side(", \"x\"", ""),
              HasSubstr("k.toml:3:8: error: the launcher 'silu_and_mul' has 2 parameters, the side "
                        "file gives 1"));
  EXPECT_THAT(side("\"x\"", "\"y\""), HasSubstr("k.toml:3:16: error: the task has no tensor 'y'"));
  EXPECT_THAT(side("\"x\"", "{ i32 = 3 }"),
              HasSubstr("3 is a number, the launcher's parameter is a tensor"));
  EXPECT_THAT(side("launcher", "name = \"other\"\nlauncher"),
              HasSubstr("launches 'act_kernel', not 'other'"));
  EXPECT_THAT(side("\"silu_and_mul\"", "7"), HasSubstr("'launcher' is not the name of a function"));
}

TEST_F(Launcher, RefusesTemplatesItCannotMatch) {
  const auto with = [&](const std::string& from, const std::string& to) {
    return error(changed(kLauncherSource, from, to));
  };
  EXPECT_THAT(with("<scalar_t, 8>", ""), HasSubstr("'act_kernel' is a template"));
  EXPECT_THAT(with("<scalar_t, 8>", "<scalar_t>"),
              HasSubstr("the launch does not say the template argument 'VEC'"));
  EXPECT_THAT(with("<scalar_t, 8>", "<scalar_t, 8, 9>"),
              HasSubstr("the launch has too many template arguments"));
  EXPECT_THAT(with("<scalar_t, 8>", "<scalar_t, d>"),
              HasSubstr("the template argument 'd' is no constant"));
  EXPECT_EQ(error(changed(changed(kLauncherSource, "<scalar_t, 8>", "<scalar_t>"), "int VEC",
                          "int VEC = 16 / sizeof(scalar_t)")),
            "no error");
  EXPECT_THAT(with("void silu_and_mul(", "template <class T> void silu_and_mul("),
              HasSubstr("the launcher 'silu_and_mul' is a template"));
}

}  // namespace
}  // namespace cutegen::eval
