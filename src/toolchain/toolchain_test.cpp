// SPDX-License-Identifier: Apache-2.0
// Tests the whole path of client, sandboxed server and NVRTC. Skipped if these are not built or
// installed.
#include "toolchain/toolchain.h"
#include "toolchain/host_places.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "base/hash.h"
#include "base/text.h"
#include "toolchain/scan.h"

namespace cutegen::toolchain {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;

constexpr const char* kScale = R"(
extern "C" __global__ void scale(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = FACTOR * x[i];
}
)";

class ToolchainTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    ::setenv("CUTEGEN_BIN", CUTEGEN_BIN_DIR, 0);
    ::setenv("CUTEGEN_SHARE", CUTEGEN_SOURCE_DIR, 1);
    if (auto found = find_tools()) {
      found->cache_dir = fs::temp_directory_path() / ("cutegen_toolchain_test_" + random_id());
      paths_ = *found;
      shared_ = open({}).release();
    }
  }
  static void TearDownTestSuite() {
    delete shared_;
    shared_ = nullptr;
    if (!paths_.cache_dir.empty()) fs::remove_all(paths_.cache_dir);
  }
  void SetUp() override {
    if (!shared_) GTEST_SKIP() << "no compiler here";
  }
  static std::unique_ptr<Toolchain> open(ToolchainOptions options) {
    options.paths = paths_;
    auto made = Toolchain::open(std::move(options));
    EXPECT_TRUE(made) << made.error().text();
    return std::move(*made);
  }
  static CompileResult compile(Toolchain& toolchain, const std::string& source,
                               const std::string& arch = "sm_80",
                               std::vector<std::pair<std::string, std::string>> defines = {
                                   {"FACTOR", "2.0f"}}) {
    auto r = toolchain.compile(
        Context().with_timeout(seconds(120)),
        {.name = "kernel.cu", .source = source, .defines = std::move(defines), .arch = arch});
    EXPECT_TRUE(r) << r.error().text();
    return r ? std::move(*r) : CompileResult{};
  }
  static CompileResult compile(const std::string& source) { return compile(*shared_, source); }

  static inline ToolPaths paths_;
  static inline Toolchain* shared_ = nullptr;
};

// The cutegen-compiler processes below this process.
std::vector<pid_t> servers() {
  std::map<pid_t, std::pair<pid_t, std::string>> all;  // pid -> parent, name
  for (const auto& e : fs::directory_iterator("/proc")) {
    if (std::atoi(e.path().filename().c_str()) == 0) continue;
    std::ifstream stat(e.path() / "stat");
    std::string text((std::istreambuf_iterator<char>(stat)), {});
    size_t open = text.find('('), close = text.rfind(") ");
    if (open == std::string::npos || close == std::string::npos) continue;
    all[std::atoi(text.c_str())] = {std::atoi(text.c_str() + close + 4),
                                    text.substr(open + 1, close - open - 1)};
  }
  std::vector<pid_t> out;
  for (const auto& [pid, entry] : all) {
    bool ours = false;
    for (pid_t up = entry.first; all.count(up); up = all[up].first) ours = ours || up == ::getpid();
    if (ours && entry.second.starts_with("cutegen-compile")) out.push_back(pid);
  }
  return out;
}

TEST_F(ToolchainTest, CompilesPlainCudaToSmallPtxWithLines) {
  CompileResult r = compile(kScale);
  ASSERT_TRUE(r.ok) << r.digest;
  EXPECT_EQ(r.how, "forked");
  EXPECT_NE(r.ptx.find(".visible .entry scale("), std::string::npos);
  EXPECT_NE(r.ptx.find(".target sm_80"), std::string::npos);
  EXPECT_NE(r.ptx.find("\"kernel.cu\""), std::string::npos);
  EXPECT_NE(r.ptx.find(".loc\t1 4 "), std::string::npos) << r.ptx;
  EXPECT_LT(r.ptx.size(), 4096u) << "unused constants were not stripped";
  EXPECT_EQ(r.build_id.size(), 64u);
  EXPECT_EQ(r.digest, "");
  EXPECT_FALSE(r.cached);
}

TEST_F(ToolchainTest, SecondTimeComesFromTheCacheAlsoInANewProcess) {
  std::string source = std::string(kScale) + "// cached\n";
  CompileResult first = compile(source), second = compile(source);
  EXPECT_FALSE(first.cached);
  auto other = open({});
  CompileResult third = compile(*other, source);
  for (const CompileResult& again : {second, third}) {
    EXPECT_TRUE(again.cached);
    EXPECT_EQ(again.ptx, first.ptx);
    EXPECT_EQ(again.build_id, first.build_id);
    EXPECT_EQ(again.grade.label, first.grade.label);
  }
}

TEST_F(ToolchainTest, NoServerStartsAheadForProgramsThatTheCacheHas) {
  const size_t others = servers().size();
  auto servers_ahead = [&](const std::string& programs, const char* source) {
    int misses = 0;
    auto own = open({.before_compile = [&] { ++misses; }});
    EXPECT_TRUE(own->warm_up(Context().with_timeout(seconds(120)), "sm_80", programs));
    const bool ahead = servers().size() > others;
    EXPECT_TRUE(compile(*own, source).ok);
    own.reset();
    for (int i = 0; i < 500 && servers().size() > others; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return std::pair(ahead, misses);
  };
  const std::string source = std::string(kScale) + "// known\n";
  EXPECT_EQ(servers_ahead("some task", source.c_str()), std::pair(true, 1));
  EXPECT_EQ(servers_ahead("some task", source.c_str()), std::pair(false, 0));
  EXPECT_EQ(servers_ahead("another task", source.c_str()), std::pair(true, 0));
}

TEST_F(ToolchainTest, DefinesAndArchitectureAreInTheIdentity) {
  CompileResult a = compile(*shared_, kScale, "sm_80", {{"FACTOR", "2.0f"}});
  CompileResult b = compile(*shared_, kScale, "sm_80", {{"FACTOR", "3.0f"}});
  EXPECT_NE(a.build_id, b.build_id);
  EXPECT_NE(a.ptx, b.ptx);
}

TEST_F(ToolchainTest, CompilesCute) {
  ASSERT_TRUE(shared_->warm_up(Context().with_timeout(seconds(120)), "sm_90a"));
  CompileResult r = compile(*shared_, R"(#include <cute/tensor.hpp>
using namespace cute;
extern "C" __device__ const int cg_smem = 4096;
extern "C" __global__ void relu(const float* x, float* y, int n) {
  auto gx = make_tensor(make_gmem_ptr(reinterpret_cast<const float4*>(x)), make_shape(n / 4));
  auto gy = make_tensor(make_gmem_ptr(reinterpret_cast<float4*>(y)), make_shape(n / 4));
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n / 4) return;
  float4 v = gx(i);
  gy(i) = make_float4(fmaxf(v.x, 0), fmaxf(v.y, 0), fmaxf(v.z, 0), fmaxf(v.w, 0));
}
)",
                            "sm_90a");
  ASSERT_TRUE(r.ok) << r.digest;
  EXPECT_EQ(r.how, "forked");
  EXPECT_LT(r.ptx.size(), 8192u);
  EXPECT_NE(r.ptx.find("cg_smem = 4096"), std::string::npos) << r.ptx;
  EXPECT_NE(r.ptx.find("ld.global.v4.f32"), std::string::npos);
}

TEST_F(ToolchainTest, ThePreludeHasWhatSourcesExpect) {
  CompileResult r = compile(R"(#include <cstdint>
#include <cmath>
#include <math.h>
#include <float.h>
#include <algorithm>
#include <limits>
#include <cuda_runtime.h>
extern "C" __global__ void k(float* x, __half* h, __nv_bfloat16* b, uint32_t* u) {
  x[0] = INFINITY; x[1] = NAN; x[2] = FLT_MAX; x[3] = M_PI; x[4] = INT_MAX;
  x[5] = std::max(x[6], std::exp(x[7])) + std::numeric_limits<float>::infinity();
  h[0] = __float2half(x[0]); b[0] = __float2bfloat16(x[1]); u[0] = uint32_t(x[2]);
}
)");
  EXPECT_TRUE(r.ok) << r.digest;
}

TEST_F(ToolchainTest, ErrorsAreVerdictsAndCachedToo) {
  CompileResult r = compile("extern \"C\" __global__ void k(float* y) {\n  y[0] = nothing;\n}\n");
  EXPECT_FALSE(r.ok);
  EXPECT_TRUE(r.digest.starts_with("kernel.cu:2:10: error: identifier \"nothing\" is undefined\n"))
      << r.digest;
  EXPECT_EQ(r.log.find("/tmp"), std::string::npos);
  EXPECT_TRUE(compile("extern \"C\" __global__ void k(float* y) {\n  y[0] = nothing;\n}\n").cached);
}

// The headers may come back. An environment that is removed for a moment must not leave such
// failures in the cache for good.
TEST_F(ToolchainTest, AMissingHeaderIsNotCached) {
  const char* source = "#include \"cute/no_such_header.hpp\"\n";
  EXPECT_NE(compile(source).digest.find("open source file"), std::string::npos);
  EXPECT_FALSE(compile(source).cached);
}

TEST_F(ToolchainTest, TheTimeOfTheBuildHasNoValue) {
  for (const char* name : {"__TI, ME__", "__DA, TE__"}) {
    CompileResult r = compile(
        "#define P(a, b) a##b\n#define Q(a, b) P(a, b)\n"
        "extern \"C\" __global__ void k(float* y) {\n  y[0] = Q(" +
        std::string(name) + ")[3];\n}\n");
    EXPECT_FALSE(r.ok);
    EXPECT_NE(r.digest.find("\"_NOW\" is undefined"), std::string::npos) << r.digest;
  }
  // A name of the program's own must not be mistaken for one of cutegen's.
  EXPECT_TRUE(compile("__device__ const int _NOW = 1;\nextern \"C\" __global__ void k(float* y) {\n"
                      "  y[0] = _NOW;\n}\n")
                  .ok);
}

TEST_F(ToolchainTest, NoFileOutsideTheHeadersCanBeRead) {
  for (const char* path :
       {"/etc/passwd", "/proc/self/environ", "/proc/self/mem", "/dev/stdin", "../../etc/passwd"}) {
    CompileResult direct = compile("#include \"" + std::string(path) + "\"\n");
    EXPECT_FALSE(direct.ok);
    EXPECT_NE(direct.digest.find("is not allowed"), std::string::npos) << direct.digest;
    CompileResult hidden = compile("#define FILE \"" + std::string(path) + "\"\n#include FILE\n");
    EXPECT_FALSE(hidden.ok);
    EXPECT_NE(hidden.digest.find("open source file"), std::string::npos) << hidden.digest;
    EXPECT_EQ(hidden.log.find("root:"), std::string::npos);
  }
  CompileResult refused = compile("#define FILE \"/etc/passwd\"\n#include FILE\n");
  EXPECT_NE(refused.digest.find("Only headers of CuTe"), std::string::npos) << refused.digest;
  EXPECT_FALSE(compile("#define FILE \"/etc/passwd\"\nconst char x[] = {\n#embed FILE\n};\n").ok);
  EXPECT_FALSE(compile("#if __has_include(\"/etc/passwd\")\n#include_next <passwd>\n#else\n#error "
                       "none\n#endif\n")
                   .ok);
}

TEST_F(ToolchainTest, EndlessTemplatesAreAnError) {
  CompileResult r = compile(
      "template <int N> struct A { static constexpr int v = A<N + 1>::v; };\n"
      "extern \"C\" __global__ void k(int* y) { y[0] = A<0>::v; }\n");
  EXPECT_FALSE(r.ok);
  EXPECT_NE(r.digest.find("excessive recursion"), std::string::npos) << r.digest;
}

// Doubles at each level, so compiling it never ends and needs ever more memory.
constexpr const char* kExploding = R"(
template <int N, unsigned long long M> struct F {
  static constexpr int v = F<N - 1, 2 * M>::v + F<N - 1, 2 * M + 1>::v;
};
template <unsigned long long M> struct F<0, M> { static constexpr int v = 1; };
extern "C" __global__ void k(int* y) { y[0] = F<40, 0>::v; }
)";

TEST_F(ToolchainTest, TimeAndMemoryAreLimitedAndTheNextCandidateIsFine) {
  auto hasty = open({.compile_timeout = seconds(1)});
  CompileResult slow = compile(*hasty, kExploding);
  EXPECT_FALSE(slow.ok);
  EXPECT_EQ(slow.digest, "kernel.cu: error: compiling took longer than 1 s");
  EXPECT_FALSE(compile(*hasty, kExploding).cached) << "timeouts are not cached";
  auto small = open({.compile_memory_bytes = int64_t{256} << 20});
  CompileResult big = compile(*small, "__device__ int big[1 << 30] = {1};\n");
  EXPECT_FALSE(big.ok);
  EXPECT_NE(big.digest.find("needed more than 256 MiB"), std::string::npos) << big.digest;
  EXPECT_TRUE(compile(*small, std::string(kScale) + "// after\n").ok);
}

TEST_F(ToolchainTest, TheTimeOfABusyMachineDoesNotCount) {
  auto own = open({.compile_timeout = seconds(1), .use_cache = false});
  ASSERT_TRUE(compile(*own, kScale).ok);
  std::thread busy([] {  // no compiler process runs for longer than the limit
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const std::vector<pid_t> stopped = servers();
    for (pid_t pid : stopped) ::kill(pid, SIGSTOP);
    std::this_thread::sleep_for(std::chrono::milliseconds(1500));
    for (pid_t pid : stopped) ::kill(pid, SIGCONT);
  });
  const CompileResult r = compile(*own, std::string(kScale) + "// on a busy machine\n");
  busy.join();
  EXPECT_TRUE(r.ok) << r.digest;
}

TEST_F(ToolchainTest, ParenthesesWithoutEndAreAnError) {
  CompileResult r = compile("int x = " + std::string(100'000, '(') + "1;\n");
  EXPECT_FALSE(r.ok);
  EXPECT_TRUE(r.digest.starts_with("kernel.cu:1")) << r.digest;
  EXPECT_TRUE(compile(std::string(kScale) + "// after it\n").ok);
}

TEST_F(ToolchainTest, LargeSourcesAndZeroBytes) {
  EXPECT_TRUE(compile(kScale + std::string((1 << 20) - 1024, ' ')).ok);
  EXPECT_NE(compile(std::string((1 << 20) + 1, ' ')).digest.find("the limit is 1048576"),
            std::string::npos);
  EXPECT_NE(compile(std::string("int\0x;", 6)).digest.find("zero byte"), std::string::npos);
  EXPECT_TRUE(compile("").ok);
}

TEST_F(ToolchainTest, UnknownArchitecturesAreUserErrors) {
  for (const char* arch : {"", "sm_", "compute_90", "sm_90a -I/etc", "sm_11"}) {
    auto r = shared_->compile(
        Context(),
        {.name = "kernel.cu", .source = kScale, .defines = {{"FACTOR", "1"}}, .arch = arch});
    ASSERT_FALSE(r) << arch;
    EXPECT_EQ(r.error().kind, ErrorKind::user) << r.error().text();
  }
}

TEST_F(ToolchainTest, CandidatesCompileSideBySide) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([t] {
      CompileResult r = compile(std::string(kScale) + "// thread " + std::to_string(t) + "\n");
      EXPECT_TRUE(r.ok) << r.digest;
    });
  for (auto& t : threads) t.join();
}

TEST_F(ToolchainTest, PlainPathGivesTheSamePtx) {
  auto plain = open({.use_cache = false, .allow_fork = false});
  CompileResult a = compile(*plain, kScale), b = compile(kScale);
  EXPECT_EQ(a.how, "plain");
  EXPECT_EQ(a.ptx, b.ptx);
  EXPECT_EQ(a.build_id, b.build_id);
}

TEST_F(ToolchainTest, AKilledServerIsReplaced) {
  auto own = open({.use_cache = false});
  EXPECT_TRUE(compile(*own, kScale).ok);
  for (pid_t pid : servers()) ::kill(pid, SIGKILL);
  EXPECT_TRUE(compile(*own, kScale).ok);
  EXPECT_TRUE(compile(std::string(kScale) + "// after a kill\n").ok);
}

TEST_F(ToolchainTest, AServerKilledInTheMiddleIsTriedOncePlain) {
  auto own = open({.compile_timeout = seconds(2), .use_cache = false});
  EXPECT_TRUE(compile(*own, kScale).ok);
  std::thread killer([] {
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    for (pid_t pid : servers()) ::kill(pid, SIGKILL);
  });
  CompileResult r = compile(*own, kExploding);
  killer.join();
  EXPECT_EQ(r.digest, "kernel.cu: error: compiling took longer than 2 s")
      << "the retry met the time limit";
}

TEST_F(ToolchainTest, StoppingEndsTheWaitAndTheChild) {
  auto own = open({.use_cache = false});
  EXPECT_TRUE(compile(*own, kScale).ok);
  auto r = own->compile(Context().with_timeout(std::chrono::milliseconds(300)),
                        {.name = "kernel.cu", .source = kExploding, .arch = "sm_80"});
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().kind, ErrorKind::timeout);
  EXPECT_TRUE(compile(*own, kScale).ok);
}

TEST(FindTools, SaysWhatIsMissingAndTheRemedy) {
  fs::path share = fs::temp_directory_path() / ("cutegen_share_" + random_id());
  fs::create_directories(share / "include/cutegen");
  ::setenv("CUTEGEN_SHARE", share.c_str(), 1);
  if (!toolchain::nvrtcs({}, toolchain::toolkits()).empty()) GTEST_SKIP() << "a toolkit is here";
  const ToolSearch nowhere{.python = "/no/such/python"};
  auto none = find_tools(nowhere);
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message.find("NVRTC"), std::string::npos);
  EXPECT_NE(none.error().remedy.find("make setup"), std::string::npos);
  ::setenv("CUTEGEN_NVRTC", "/no/such/lib.so", 1);
  EXPECT_EQ(find_tools(nowhere).error().kind, ErrorKind::user);
  ::unsetenv("CUTEGEN_NVRTC");
  fs::path lib = share / ".venv/lib/python3.11/site-packages/nvidia/cu13/lib";
  fs::create_directories(lib);
  std::ofstream(lib / "libnvrtc.so.13") << "x";
  EXPECT_NE(find_tools(nowhere).error().message.find("CuTe headers"), std::string::npos);
  ::setenv("CUTEGEN_INCLUDE", "/no/such/folder", 1);
  EXPECT_NE(find_tools(nowhere).error().message.find("/no/such/folder"), std::string::npos);
  ::unsetenv("CUTEGEN_INCLUDE");
  ::setenv("CUTEGEN_SHARE", CUTEGEN_SOURCE_DIR, 1);
  fs::remove_all(share);
}

}  // namespace
}  // namespace cutegen::toolchain
