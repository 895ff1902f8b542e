// SPDX-License-Identifier: Apache-2.0
#include "eval/source/start_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/hash.h"

namespace cutegen::eval {
namespace {

using testing::HasSubstr;

constexpr const char* kStartSource = R"(#include <cuda_fp16.h>
namespace { __device__ float twice(float v) { return 2 * v; } }

__global__ void scale(const half* __restrict__ x, float* out, int n, float by) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = twice(__half2float(x[i])) * by;
}
)";
constexpr const char* kSide = R"toml([kernel]
name = "scale"
args = ["x", "out", {i32 = "size(x)"}, {f32 = "attr(by)"}]
grid = "ceil_div(size(x), 256)"
block = 256
)toml";

Task scale_task() {
  Task t;
  t.tensors = {{.name = "x", .role = TensorRole::input, .dtype = DType::f16, .shape = {8, 16}},
               {.name = "out", .role = TensorRole::output, .dtype = DType::f32, .shape = {8, 16}}};
  t.attributes = {{.name = "by", .value = 2.0}};
  ShapeCase official{.name = "official"};
  official.tensors = {{"x", {8, 16}}, {"out", {8, 16}}};
  t.shapes = {official};
  return t;
}

class StartProgram : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("cutegen-start-" + random_id());
    ASSERT_TRUE(private_dir(folder_));
    ASSERT_TRUE(write_file(folder_ / "scale.py", "import torch\n"));
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  Result<KernelProgram> read(const std::string& source, const std::string& side) {
    EXPECT_TRUE(write_file(folder_ / "scale.cu", source));
    EXPECT_TRUE(write_file(folder_ / "scale.toml", side));
    return start_program(folder_ / "scale.cu", scale_task());
  }
  // The error that the source gives after these replacements.
  std::string of_source(const std::string& from, const std::string& to) {
    return error(changed(kStartSource, from, to), kSide);
  }
  std::string of_side(const std::string& from, const std::string& to) {
    return error(kStartSource, changed(kSide, from, to));
  }

 private:
  static std::string changed(std::string text, const std::string& from, const std::string& to) {
    return text.replace(text.find(from), from.size(), to);
  }
  std::string error(const std::string& source, const std::string& side) {
    auto program = read(source, side);
    return program ? "no error" : program.error().text();
  }

  std::filesystem::path folder_;
};

TEST_F(StartProgram, IsTheSourceWithItsLaunch) {
  auto program = read(kStartSource, kSide);
  ASSERT_TRUE(program) << program.error().text();
  EXPECT_THAT(program->sources.at("scale.cu"), HasSubstr("\nextern \"C\" __global__ void scale("));
  EXPECT_EQ(program->plan.steps.at(0).kernel, "scale");
  EXPECT_EQ(program->plan.dialect, Dialect::cuda);
}

TEST_F(StartProgram, AnExternalKernelStaysAsItIs) {
  for (const std::string open : {"extern \"C\" __global__", "extern \"C\" {\n__global__"}) {
    std::string source = kStartSource;
    source.replace(source.find("__global__"), 10, open);
    if (open.find('{') != std::string::npos) source += "}\n";
    auto program = read(source, kSide);
    ASSERT_TRUE(program) << program.error().text();
    EXPECT_EQ(program->sources.at("scale.cu"), source);
  }
  EXPECT_THAT(of_source("__global__", "static __global__"),
              HasSubstr("scale.cu:4:24: error: the kernel 'scale' is not extern \"C\""));
}

TEST_F(StartProgram, TheKernelMustBeThereAndNoTemplate) {
  EXPECT_THAT(of_side("\"scale\"", "\"scal\""),
              HasSubstr("scale.toml:2:8: error: scale.cu has no kernel 'scal'"));
  EXPECT_THAT(of_side("\"scale\"", "\"scal\""), HasSubstr("did you mean 'scale'?"));
  EXPECT_THAT(of_source("__global__ void", "void"),
              HasSubstr("declare it extern \"C\" __global__"));
  EXPECT_THAT(of_source("__global__", "template <int N>\n__global__"),
              HasSubstr("scale.cu:5:17: error: 'scale' is a template"));
}

TEST_F(StartProgram, TheSideFileMustAgreeWithTheParameters) {
  EXPECT_THAT(of_side(", {f32 = \"attr(by)\"}", ""),
              HasSubstr("scale.toml:3:8: error: the kernel 'scale' has 4 parameters, the side file "
                        "gives 3 arguments"));
  EXPECT_THAT(of_side("i32", "i64"),
              HasSubstr("scale.toml:3:21: error: size(x) is i64, the kernel's parameter is i32"));
  EXPECT_THAT(of_side("\"x\", \"out\"", "\"out\", \"x\""),
              HasSubstr("'out' is f32, the kernel's parameter points to f16"));
  EXPECT_THAT(of_side("\"x\", \"out\", {i32", "\"x\", {i32 = 1}, {i32"),
              HasSubstr("1 is a number, the kernel's parameter is a pointer"));
  EXPECT_THAT(of_side("{i32 = \"size(x)\"}", "\"x\""),
              HasSubstr("'x' is a tensor, the kernel's parameter is a value"));
  EXPECT_THAT(of_source("float* out", "const float* out"),
              HasSubstr("the kernel must write 'out', but its parameter is const"));
  // A type that cutegen does not know fits.
  EXPECT_EQ(of_source("const half* __restrict__ x", "const Packed<half>* x"), "no error");
}

TEST_F(StartProgram, TheSideFileMustAgreeWithTheTask) {
  EXPECT_THAT(of_side("\"x\", \"out\"", "\"y\", \"out\""), HasSubstr("scale.toml:3:9: error: "));
  EXPECT_THAT(of_side("attr(by)", "attr(eps)"), HasSubstr("scale.toml:3:47: error: "));
  EXPECT_THAT(of_side("block = 256", "block = 2048"), HasSubstr("scale.toml:5:9: error: "));
  EXPECT_THAT(of_side("block = 256", "block = \"256 +\""), HasSubstr("scale.toml:5:9: error: "));
}

TEST_F(StartProgram, SaysWhatIsNotOfferedAndWhatToDo) {
  const std::string header = of_source("cuda_fp16.h", "torch/extension.h");
  EXPECT_THAT(header,
              HasSubstr("scale.cu:1:1: error: the header 'torch/extension.h' is not allowed"));
  EXPECT_THAT(header, HasSubstr("copy what the kernel uses of others into this file"));
  const std::string host =
      of_source("__global__", "void launch() { scale<<<1, 1>>>(0, 0, 0, 0); }\n__global__");
  EXPECT_THAT(host, HasSubstr("scale.cu:4:"));
  EXPECT_THAT(
      host,
      HasSubstr("leave host code out of this file, or name the function that launches the kernel"));
}

}  // namespace
}  // namespace cutegen::eval
