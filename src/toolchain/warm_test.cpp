// SPDX-License-Identifier: Apache-2.0
// Compiles programs from the place where they differ from a parsed one, with the real compiler.
// Skipped if the compiler is not built or installed.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <thread>

#include "base/text.h"
#include "toolchain/toolchain.h"
#include "toolchain/warm_parents.h"

namespace cutegen::toolchain {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using toolchain::WarmParent;
using toolchain::WarmParents;

// Half a second of template instantiations, most of them before the loop.
constexpr const char* kParent = R"(#include <cute/tensor_impl.hpp>
using namespace cute;
constexpr int kTile = 64;
extern "C" __device__ const int cg_tile = kTile;
__device__ float twice(float x) { return 2 * x; }
extern "C" __global__ void __launch_bounds__(128) move(const float* from, float* to, int m, int n) {
  auto rows = Layout<Shape<_8, _32>, Stride<_32, _1>>{};
  auto places = tile_to_shape(rows, Shape<Int<kTile>, _32, _2>{});
  Tensor source = local_tile(make_tensor(make_gmem_ptr(from), make_shape(m, n), make_stride(n, _1{})),
                             Shape<Int<kTile>, _32>{}, make_coord(int(blockIdx.y), _));
  Tensor target = zipped_divide(make_tensor(make_gmem_ptr(to), make_shape(m, n), make_stride(n, _1{})),
                                Shape<Int<kTile>, _32>{});
  __syncthreads();
  for (int i = threadIdx.x; i < kTile * 32; i += 128) {
    float x = twice(source(i / 32, i % 32, int(blockIdx.x)));
    target(make_coord(i / 32, i % 32), make_coord(int(blockIdx.y), int(blockIdx.x))) = x + places(i);
  }
}
)";

std::string edited(const std::string& from, const std::string& to) {
  const std::string source = kParent;
  EXPECT_NE(source.find(from), std::string::npos);
  return replace_all(source, from, to);
}

class WarmTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    ::setenv("CUTEGEN_BIN", CUTEGEN_BIN_DIR, 0);
    ::setenv("CUTEGEN_SHARE", CUTEGEN_SOURCE_DIR, 1);
    auto found = find_tools();
    if (found) paths_ = *found;
  }
  void SetUp() override {
    if (paths_.nvrtc.empty()) GTEST_SKIP() << "no compiler here";
  }
  static std::unique_ptr<Toolchain> open(int64_t warm_bytes) {
    auto made =
        Toolchain::open({.paths = paths_, .warm_memory_bytes = warm_bytes, .use_cache = false});
    EXPECT_TRUE(made) << made.error().text();
    return std::move(*made);
  }
  static CompileRequest request(const std::string& source) {
    return {.name = "kernel.cu", .source = source, .defines = {{"UNUSED", "7"}}, .arch = "sm_90a"};
  }
  static CompileResult compile(Toolchain& toolchain, const std::string& source) {
    auto r = toolchain.compile(Context().with_timeout(seconds(180)), request(source));
    EXPECT_TRUE(r) << r.error().text();
    return r ? std::move(*r) : CompileResult{};
  }
  // Compiles until a result used the parent, which the server parses in the background.
  static CompileResult warm(Toolchain& toolchain, const std::string& source) {
    CompileResult r;
    for (int i = 0; i < 60 && r.how != "warm"; ++i) {
      if (i > 0) std::this_thread::sleep_for(seconds(2));
      r = compile(toolchain, source);
    }
    return r;
  }
  static std::shared_ptr<WarmParent> start(const std::string& source) {
    const std::string text = "#line 1 \"a.cu\"\n" + source;
    toolchain::ServerSetup setup;
    setup.paths = paths_;
    setup.options = {"--gpu-architecture=compute_90a", "-default-device"};
    setup.prefix = "cutegen/prelude.cuh";
    setup.keep = true;
    auto made = WarmParent::start(setup, text, toolchain::find_cuts(text, 15), "a.cu",
                                  {.memory_bytes = int64_t{1} << 30, .timeout = seconds(60)});
    EXPECT_TRUE(made) << made.error().text();
    return *made;
  }
  // Waits until `done`, at most a minute.
  static bool wait_for(const std::function<bool()>& done) {
    for (int i = 0; i < 600 && !done(); ++i) std::this_thread::sleep_for(milliseconds(100));
    return done();
  }

  static inline ToolPaths paths_;
};

// One toolchain for all cases, because starting it takes most of the time.
TEST_F(WarmTest, GivesByteForByteWhatACompileFromTheBeginningGives) {
  auto cold = open(0), kept = open(int64_t{8} << 30);
  CompileResult parent = compile(*kept, kParent);
  ASSERT_TRUE(parent.ok) << parent.digest;
  kept->expect_children(request(kParent), 1000);
  ASSERT_TRUE(compile(*cold, kParent).ok);
  cold->expect_children(request(kParent), 1000);  // has no memory to keep a parsed program
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
           {"target(make_coord", "if (x > 0) target(make_coord"},
           {"  __syncthreads();\n", "  __syncthreads();\n\n  __syncwarp();\n"},
           {"float x = twice(source(", "float x = nothing(source("}}) {  // an error
    const std::string child = edited(from, to);
    CompileResult fast = warm(*kept, child), slow = compile(*cold, child);
    EXPECT_EQ(fast.how, "warm") << to;
    EXPECT_EQ(slow.how, "forked");
    EXPECT_GT(fast.saved.count(), 0);
    EXPECT_EQ(fast.ok, slow.ok);
    EXPECT_EQ(fast.ptx, slow.ptx) << to;  // with .loc, .file and the debug sections
    EXPECT_EQ(fast.log, slow.log);
    EXPECT_EQ(fast.digest, slow.digest);
    EXPECT_EQ(fast.build_id, slow.build_id);
    EXPECT_EQ(fast.grade.label, slow.grade.label);
  }
  EXPECT_EQ(compile(*kept, edited("kTile = 64", "kTile = 32")).how, "forked");
  EXPECT_EQ(compile(*kept, edited("i += 128) {", "i += 128) {\n#line 5 \"kernel.cu\"\n")).how,
            "forked");
  auto other = request(edited("x = twice", "x = 1 + twice"));
  other.defines = {{"UNUSED", "8"}};
  auto r = kept->compile(Context(), other);
  ASSERT_TRUE(r);
  EXPECT_EQ(r->how, "forked");
}

TEST(WarmPays, WhereTheChildrenRepayTheReading) {
  EXPECT_FALSE(toolchain::warm_pays(seconds(20), 1));
  EXPECT_FALSE(toolchain::warm_pays(seconds(1), 5));
  EXPECT_FALSE(toolchain::warm_pays(seconds(0), 1000));
  EXPECT_TRUE(toolchain::warm_pays(seconds(20), 4));
}

// The test sets the memory that the parents use. The least recently used parent goes.
TEST_F(WarmTest, TheOneUsedLeastRecentlyGoesWhenMemoryIsShort) {
  std::map<const WarmParent*, int64_t> bytes;
  WarmParents kept(100, [&](const WarmParent& p) { return bytes[&p]; });
  kept.hold(true);  // no parsing, because only memory matters here
  std::vector<std::shared_ptr<WarmParent>> parents;
  for (int i = 0; i < 3; ++i) {
    parents.push_back(start("int a" + std::to_string(i) + ";\nint b;\n"));
    bytes[parents.back().get()] = 40;
    kept.keep("k", parents.back());
  }
  kept.settle();
  EXPECT_EQ(kept.count(), 2u);
  EXPECT_FALSE(kept.has("k", parents[0]->text()));
  EXPECT_TRUE(kept.has("k", parents[2]->text()));
  EXPECT_FALSE(kept.has("other", parents[2]->text()));
  bytes[parents[2].get()] = 200;  // alone exceeds the budget
  kept.settle();
  EXPECT_EQ(kept.count(), 0u);
}

TEST_F(WarmTest, MemoryIsWhatTheProcessesUse) {
  auto parent = start("int a;\nint b;\n");
  ASSERT_TRUE(wait_for([&] { return parent->look() && parent->complete(); }));
  EXPECT_GT(parent->memory(), int64_t{20} << 20);
  EXPECT_LT(parent->memory(), int64_t{2} << 30);
  WarmParents kept(int64_t{10} << 20);
  kept.keep("k", parent);
  EXPECT_TRUE(wait_for([&] { return kept.count() == 0; }))
      << "the watcher must notice that it exceeds the budget";
}

TEST_F(WarmTest, OneThatBreaksIsDropped) {
  auto parent = start("int a;\n#include <cutegen/nothing.cuh>\nint b;\nint c;\n");
  WarmParents kept(int64_t{8} << 30);
  kept.keep("k", parent);
  EXPECT_TRUE(wait_for([&] { return !parent->look(); }));
  EXPECT_FALSE(kept.find("k", parent->text()));
  EXPECT_EQ(kept.count(), 0u);
  EXPECT_NE(parent->error_text().find("nothing"), std::string::npos);
}

TEST_F(WarmTest, OneThatNeverEndsIsNoCandidatesTrouble) {
  auto parent = start(
      "int a;\ntemplate <int N> struct S { static constexpr int v = "
      "S<N - 1>::v + S<N - 2>::v; };\nint b = S<5000>::v;\nint c;\n");
  WarmParents kept(int64_t{8} << 30);
  kept.keep("k", parent);
  auto found = kept.find("k", "#line 1 \"a.cu\"\nint z;\n");
  EXPECT_FALSE(found);
}  // the process ends here with its owner

TEST_F(WarmTest, IsNotReadWhileItIsHeld) {
  auto parent = start("int a;\nint b;\n");
  parent->hold(true);
  std::this_thread::sleep_for(seconds(2));
  EXPECT_TRUE(parent->look());
  EXPECT_FALSE(parent->complete());
  parent->hold(false);
  EXPECT_TRUE(wait_for([&] { return parent->look() && parent->complete(); }));
  parent->hold(true);  // hold() stops parsing only, so a complete parent still serves
  EXPECT_TRUE(parent->best("#line 1 \"a.cu\"\nint a;\nint b;\nint c;\n"));
}

}  // namespace
}  // namespace cutegen::toolchain
