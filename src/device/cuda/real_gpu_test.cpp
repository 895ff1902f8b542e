// SPDX-License-Identifier: Apache-2.0
// Tests that need a real GPU: faults at guards, endless kernels, clusters, large shared memory,
// overlapping launches, tensor maps. Without a GPU, each is skipped and says why.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <numeric>

#include "device/cuda/gpu_info.h"

namespace cutegen::device::cuda {
namespace {

using testing::Each;
using testing::ElementsAreArray;
using testing::HasSubstr;

constexpr int kWords = 32;

// Kernels over 32 words, with one thread per block: block N writes word N.
constexpr const char* kWordsModule = R"(.version 8.0
.target sm_90
.address_size 64
.extern .shared .align 16 .b8 dynamic[];
.visible .entry sevens(.param .u64 sevens_p)
{
  .reg .b64 %rd<4>;
  .reg .b32 %r<4>;
  ld.param.u64 %rd1, [sevens_p];
  mov.u32 %r1, %ctaid.x;
  mul.wide.u32 %rd2, %r1, 4;
  add.u64 %rd3, %rd1, %rd2;
  mov.u32 %r2, 7;
  st.global.u32 [%rd3], %r2;
  ret;
}
.visible .entry plus_one(.param .u64 plus_one_p)
{
  .reg .b64 %rd<4>;
  .reg .b32 %r<4>;
  ld.param.u64 %rd1, [plus_one_p];
  mov.u32 %r1, %ctaid.x;
  mul.wide.u32 %rd2, %r1, 4;
  add.u64 %rd3, %rd1, %rd2;
  griddepcontrol.wait;
  ld.global.u32 %r2, [%rd3];
  add.u32 %r2, %r2, 1;
  st.global.u32 [%rd3], %r2;
  ret;
}
.visible .entry cluster_size(.param .u64 cluster_size_p)
{
  .reg .b64 %rd<4>;
  .reg .b32 %r<4>;
  ld.param.u64 %rd1, [cluster_size_p];
  mov.u32 %r1, %ctaid.x;
  mul.wide.u32 %rd2, %r1, 4;
  add.u64 %rd3, %rd1, %rd2;
  mov.u32 %r2, %cluster_nctaid.x;
  st.global.u32 [%rd3], %r2;
  ret;
}
.visible .entry shared_far(.param .u64 shared_far_p)
{
  .reg .b64 %rd<4>;
  .reg .b32 %r<5>;
  ld.param.u64 %rd1, [shared_far_p];
  mov.u32 %r1, %ctaid.x;
  mul.wide.u32 %rd2, %r1, 4;
  add.u64 %rd3, %rd1, %rd2;
  mov.u32 %r3, dynamic;
  mov.u32 %r2, 9;
  st.shared.u32 [%r3+200000], %r2;
  ld.shared.u32 %r4, [%r3+200000];
  st.global.u32 [%rd3], %r4;
  ret;
}
.visible .entry before(.param .u64 before_p)
{
  .reg .b64 %rd<4>;
  .reg .b32 %r<4>;
  ld.param.u64 %rd1, [before_p];
  mov.u32 %r2, 7;
  st.global.u32 [%rd1+-4], %r2;
  ret;
}
.visible .entry behind(.param .u64 behind_p)
{
  .reg .b64 %rd<4>;
  .reg .b32 %r<4>;
  ld.param.u64 %rd1, [behind_p];
  mov.u32 %r2, 7;
  st.global.u32 [%rd1+256], %r2;
  ret;
}
.visible .entry endless(.param .u64 endless_p)
{
  .reg .b64 %rd<4>;
  .reg .b32 %r<4>;
  .reg .pred %p<2>;
  ld.param.u64 %rd1, [endless_p];
AGAIN:
  ld.volatile.global.u32 %r1, [%rd1];
  setp.ne.u32 %p1, %r1, 123456789;
  @%p1 bra AGAIN;
  ret;
}
.visible .entry by_tma(.param .align 64 .b8 by_tma_map[128], .param .u64 by_tma_out)
{
  .reg .b64 %rd<8>;
  .reg .b32 %r<8>;
  .reg .pred %p<3>;
  .shared .align 128 .b8 tile[128];
  .shared .align 8 .b64 bar;
  ld.param.u64 %rd1, [by_tma_out];
  mov.b64 %rd2, by_tma_map;
  cvta.param.u64 %rd3, %rd2;
  mov.u32 %r1, bar;
  mov.u32 %r2, tile;
  mov.u32 %r3, 0;
  mbarrier.init.shared::cta.b64 [%r1], 1;
  fence.mbarrier_init.release.cluster;
  mbarrier.arrive.expect_tx.shared::cta.b64 %rd4, [%r1], 128;
  cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r2], [%rd3, {%r3}], [%r1];
WAIT:
  mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r1], 0;
  @!%p1 bra WAIT;
COPY:
  ld.shared.u32 %r4, [%r2];
  st.global.u32 [%rd1], %r4;
  add.u32 %r2, %r2, 4;
  add.u64 %rd1, %rd1, 4;
  add.u32 %r3, %r3, 1;
  setp.lt.u32 %p2, %r3, 32;
  @%p2 bra COPY;
  ret;
}
)";

// Tells what an earlier run left at byte 16 of 8 KiB of local memory, and leaves 0x5eed there. With
// 512 threads per block, the place is known only at run time, so that the compiler keeps the loads.
// The stack grows down, so a kernel with less local memory does not write this place.
constexpr const char* kLeavesModule = R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry leaves(.param .u64 leaves_p)
{
  .local .align 16 .b8 stash[8192];
  .reg .b64 %rd<8>;
  .reg .b32 %r<8>;
  .reg .pred %p<2>;
  ld.param.u64 %rd1, [leaves_p];
  mov.u32 %r1, %ctaid.x;
  mul.wide.u32 %rd2, %r1, 4;
  add.u64 %rd3, %rd1, %rd2;
  mov.u64 %rd4, stash;
  mov.u32 %r4, %ntid.x;
  shr.u32 %r4, %r4, 5;
  cvt.u64.u32 %rd5, %r4;
  add.u64 %rd6, %rd4, %rd5;
  ld.local.u32 %r2, [%rd6];
  st.global.u32 [%rd3], %r2;
  mov.u32 %r3, 0x5eed;
  st.local.u32 [%rd6], %r3;
  add.u64 %rd7, %rd4, %rd2;
  ld.local.u32 %r5, [%rd7];
  setp.eq.u32 %p1, %r5, 305419896;
  @%p1 st.global.u32 [%rd3], %r5;
  ret;
}
)";

// Each body runs in a process of its own, because a fault ends the context and a fork must not
// share one.
void on_gpu(const std::function<void(Device&)>& body) {
  constexpr int kNoGpu = 77;
  pid_t pid = ::fork();
  ASSERT_GE(pid, 0);
  if (pid == 0) {
    auto gpus = list_devices();
    if (!gpus) {
      std::fprintf(stderr, "no GPU here: %s\n", gpus.error().message.c_str());
      ::_exit(kNoGpu);
    }
    auto device = open_device("cuda:0");
    EXPECT_TRUE(device) << device.error().text();
    auto loaded = (*device)->load({kWordsModule});
    EXPECT_TRUE(loaded) << loaded.error().text();
    if (loaded) body(**device);
    std::fflush(nullptr);
    ::_exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNoGpu) GTEST_SKIP() << "no GPU here";
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "see the failure above";
}

Launch words_launch(const std::string& kernel) {
  return {.step = kernel, .kernel = kernel, .grid = {kWords, 1, 1}, .args = {{.buffer = "out"}}};
}

struct Memory {
  std::vector<int32_t> x = std::vector<int32_t>(kWords), out = std::vector<int32_t>(kWords, -1);
  Memory() { std::iota(x.begin(), x.end(), 100); }
  Result<RunReport> run(Device& device, const std::vector<std::variant<Launch, Fill>>& steps,
                        const RunSettings& settings = {}) {
    CG_CHECK(device.bind({{"x", std::as_writable_bytes(std::span(x)), true},
                          {"out", std::as_writable_bytes(std::span(out))}}));
    return device.run(Context(), steps, settings);
  }
};

void expect_words(Device& device, const Launch& launch, int32_t word) {
  Memory m;
  auto report = m.run(device, {launch});
  ASSERT_TRUE(report) << report.error().text();
  EXPECT_EQ(report->status, RunReport::Status::ok) << report->message;
  EXPECT_THAT(m.out, Each(word));
}

TEST(RealGpu, LaunchesWithClustersAndLargeSharedMemory) {
  on_gpu([](Device& device) {
    expect_words(device, words_launch("sevens"), 7);
    Launch clusters = words_launch("cluster_size");
    clusters.cluster = {4, 1, 1};
    expect_words(device, clusters, 4);
    clusters.cluster = {16, 1, 1};  // beyond the portable size
    expect_words(device, clusters, 16);
    Launch shared = words_launch("shared_far");
    shared.shared_bytes = 220 << 10;
    expect_words(device, shared, 9);
  });
}

TEST(RealGpu, ACooperativeGridThatDoesNotFitIsRefused) {
  on_gpu([](Device& device) {
    Launch launch = words_launch("sevens");
    launch.cooperative = true;
    expect_words(device, launch, 7);
    launch.grid = {1 << 20, 1, 1};
    Memory m;
    auto refused = m.run(device, {launch});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, ErrorKind::user);
    expect_words(device, words_launch("sevens"), 7);
  });
}

TEST(RealGpu, OverlappingStepsWaitForEachOther) {
  on_gpu([](Device& device) {
    Memory m;
    Launch second = words_launch("plus_one");
    second.pdl = true;
    const PlanSteps steps{words_launch("sevens"), second, second};
    auto report = m.run(device, steps);
    ASSERT_TRUE(report) << report.error().text();
    EXPECT_THAT(m.out, Each(9));
    for (TimeMode mode : {TimeMode::cold, TimeMode::warm, TimeMode::graph, TimeMode::call}) {
      auto timed = device.time(Context(), {.mode = mode, .steps = steps, .samples = 9});
      ASSERT_TRUE(timed) << timed.error().text();
      ASSERT_EQ(timed->samples_ns.size(), 9U);
      for (double ns : timed->samples_ns)
        EXPECT_THAT(ns, testing::AllOf(testing::Gt(500), testing::Lt(1e6)));
      if (mode == TimeMode::call) continue;
      EXPECT_THAT(timed->state["sm_clock_least_hz"],
                  testing::AllOf(testing::Gt(2e8), testing::Lt(4e9)));
      EXPECT_FALSE(timed->state.contains("power_w"));  // reported only with `watch`
    }
  });
}

TEST(RealGpu, LocalMemoryIsOverwrittenBetweenTimedRuns) {
  on_gpu([](Device& device) {
    ASSERT_TRUE(device.load({kLeavesModule}));
    Launch leaves = words_launch("leaves");
    leaves.block = {512, 1, 1};
    Memory m;
    for (int run = 0; run < 2; ++run) ASSERT_TRUE(m.run(device, {leaves}));
    EXPECT_THAT(m.out, testing::Contains(0x5eed)) << "nothing overwrites it between other runs";
    auto timed = device.time(Context(), {.steps = {leaves}, .samples = 3});
    ASSERT_TRUE(timed) << timed.error().text();
    EXPECT_FALSE(timed->state.contains("not_scrubbed.local memory"));
    EXPECT_THAT(m.out, testing::Not(testing::Contains(0x5eed)));
  });
}

TEST(RealGpu, ATensorMapBringsATile) {
  on_gpu([](Device& device) {
    Memory m;
    // rank, dims, strides; version, rank, box, mode, bits, swizzle
    const std::vector<int64_t> words{1, kWords, 1, 1, 1, kWords, 1,  1, 1,
                                     1, 0,      0, 0, 0, 0,      32, 0, 4};
    LaunchArg map{.buffer = "x", .bytes = std::vector<std::byte>(words.size() * 8)};
    std::memcpy(map.bytes.data(), words.data(), map.bytes.size());
    Launch launch{.step = "tma", .kernel = "by_tma", .args = {map, {.buffer = "out"}}};
    auto report = m.run(device, {launch});
    ASSERT_TRUE(report) << report.error().text();
    EXPECT_EQ(report->status, RunReport::Status::ok) << report->message;
    EXPECT_THAT(m.out, ElementsAreArray(m.x));
  });
}

// bind() alternates between the ends of the block, so one of two runs faults, and the other changes
// the guard.
void expect_found(const std::string& kernel) {
  for (int runs : {1, 2}) {
    on_gpu([&](Device& device) {
      Memory m;
      for (int i = 1; i < runs; ++i) EXPECT_TRUE(m.run(device, {words_launch("sevens")}));
      auto report = m.run(device, {words_launch(kernel)});
      ASSERT_TRUE(report) << report.error().text();
      EXPECT_EQ(report->status, RunReport::Status::finding);
      EXPECT_THAT(report->message, HasSubstr("out_of_bounds"));
      const bool fault = kernel == "behind" ? runs == 1 : runs == 2;
      EXPECT_EQ(report->device_lost, fault) << report->message;
      if (!fault) {
        EXPECT_THAT(report->message, HasSubstr("memory " + kernel + " 'out' was written"));
      }
    });
  }
}

TEST(RealGpu, AWriteBeforeABufferIsFoundAtBothEnds) {
  expect_found("before");
}
TEST(RealGpu, AWriteBehindABufferIsFoundAtBothEnds) {
  expect_found("behind");
}

TEST(RealGpu, AKernelThatDoesNotEndIsGivenUp) {
  on_gpu([](Device& device) {
    Memory m;
    RunSettings settings;
    settings.limit = std::chrono::milliseconds(300);
    auto report = m.run(device, {words_launch("endless")}, settings);
    ASSERT_TRUE(report) << report.error().text();
    EXPECT_EQ(report->status, RunReport::Status::out_of_budget);
    EXPECT_TRUE(report->device_lost);
  });
  on_gpu([](Device& device) { expect_words(device, words_launch("sevens"), 7); });
}

}  // namespace
}  // namespace cutegen::device::cuda
