// SPDX-License-Identifier: Apache-2.0
// Chain: dependencies in one warp, counted by hand with latencies that are easy to tell apart.
#include "ptx/model/chain.h"

#include <fmt/format.h>

#include "ptx/testing/test_machine.h"

namespace cutegen::ptx {
namespace {

constexpr double kArithmetic = 4, kSharedWait = 30, kGlobal = 1000, kBarrier = 100,
                 kTensorWait = 50;

GpuLatency latencies() {
  GpuLatency l;
  l.arithmetic = kArithmetic, l.shared = kSharedWait, l.global = kGlobal, l.barrier = kBarrier;
  l.tensor = kTensorWait, l.special = 20, l.shuffle = 25;
  return l;
}

class ChainOf : public testing::Test {
 protected:
  bool follow = true;
  int shared = 4096;  // bytes
  // Returns the clocks that `body` adds to a kernel.
  double added(const std::string& body, int64_t grid = 1, int64_t block = 32) {
    return clocks(body, grid, block) - clocks("", grid, block);
  }
  double clocks(const std::string& body, int64_t grid = 1, int64_t block = 32) {
    auto m = Module::parse(
        ".version 9.0\n.target sm_90a\n.address_size 64\n"
        ".visible .entry k(.param .u64 out, .param .u64 in) {\n"
        ".reg .b32 %r<24>; .reg .b64 %rd<12>; .reg .pred %p<6>; .reg .f32 %f<40>;\n"
        ".shared .align 1024 .b8 s[" +
        std::to_string(shared) +
        "];\n"
        "mov.u32 %r0, %tid.x; ld.param.u64 %rd0, [out]; ld.param.u64 %rd1, [in];\n"
        "mul.wide.u32 %rd2, %r0, 4; add.s64 %rd3, %rd0, %rd2; add.s64 %rd4, %rd1, %rd2;\n"
        "mov.u32 %r11, s; shl.b32 %r12, %r0, 2; add.u32 %r12, %r12, %r11;\n"
        "mov.f32 %f0, 0f3F800000; mov.f32 %f1, %f0; bra.uni GO;\nGO:\n" +
        body + "\nret;\n}\n");
    if (!m) {
      ADD_FAILURE() << m.error().text();
      return 0;
    }
    std::vector<float> x(4096, 1), y(4096, 0);
    Sim sim;
    const GpuLatency latency = latencies();
    if (follow) sim.options.latency = &latency;
    const LaunchReport r = sim.run(*m, "k", grid, block, {sim.output("y", y), sim.input("x", x)});
    return r.chain_clocks;
  }
};

std::string times(int n, const std::string& text) {
  std::string out;
  for (int i = 0; i < n; ++i) out += text + "\n";
  return out;
}

TEST_F(ChainOf, ArithmeticThatWaitsCostsItsLatencyAndElseOneClock) {
  const double serial = added(times(20, "fma.rn.f32 %f1, %f1, %f0, %f0;"));
  EXPECT_NEAR(serial, 20 * kArithmetic, 8);
  const double independent = added(times(20, "fma.rn.f32 %f2, %f0, %f0, %f0;"));
  EXPECT_NEAR(independent, 20, 8);
}

TEST_F(ChainOf, LoadsWaitTogetherUnlessOneIsTheAddressOfTheNext) {
  const double four = added(
      "ld.global.f32 %f2, [%rd4]; ld.global.f32 %f3, [%rd4+128]; ld.global.f32 %f4, [%rd4+256];\n"
      "add.f32 %f5, %f2, %f3; add.f32 %f5, %f5, %f4; st.global.f32 [%rd3], %f5;");
  EXPECT_NEAR(four, kGlobal, 40);
  const double serial = added(
      "ld.global.u32 %r2, [%rd1]; and.b32 %r2, %r2, 4; cvt.u64.u32 %rd6, %r2; add.s64 %rd7, %rd1, "
      "%rd6;\nld.global.f32 %f2, [%rd7]; st.global.f32 [%rd3], %f2;");
  EXPECT_NEAR(serial, 2 * kGlobal, 40);
}

TEST_F(ChainOf, ALoadDoesNotPassAStoreUnlessItIsOfConstantData) {
  auto two = [&](const char* load) {
    return added(
        fmt::format("ld.global.f32 %f2, [%rd4]; st.global.f32 [%rd3], %f2;\n"
                    "{} %f3, [%rd4+128]; st.global.f32 [%rd3+128], %f3;",
                    load));
  };
  EXPECT_NEAR(two("ld.global.f32"), 2 * kGlobal, 40);
  EXPECT_NEAR(two("ld.global.nc.f32"), kGlobal, 40);
}

// A loop that loads for its next iteration, and does arithmetic meanwhile.
std::string ahead(int work) {
  return "ld.global.f32 %f2, [%rd4]; mov.u32 %r3, 0;\nLOOP:\nmov.f32 %f3, %f2; bra.uni MORE;\n"
         "MORE:\nld.global.f32 %f2, [%rd4+128];\n" +
         times(work, "fma.rn.f32 %f1, %f1, %f0, %f0;") +
         "add.f32 %f4, %f4, %f3; add.u32 %r3, %r3, 1; setp.lt.u32 %p1, %r3, 10; @%p1 bra LOOP;";
}

TEST_F(ChainOf, WhatIsLoadedForTheNextTurnIsHiddenByEnoughWork) {
  EXPECT_NEAR(added("mov.f32 %f4, %f0;" + ahead(10)), 11 * kGlobal, 1000);
  const double enough = added("mov.f32 %f4, %f0;" + ahead(300));
  EXPECT_NEAR(enough, kGlobal + 10 * 300 * kArithmetic, 1000);
}

std::string copies(int ahead, int work) {
  const char* copy = "cp.async.ca.shared.global [%r12], [%rd4], 4; cp.async.commit_group;\n";
  return times(ahead, copy) + "mov.u32 %r3, 0;\nLOOP:\n" + copy +
         fmt::format("cp.async.wait_group {};\n", ahead) +
         times(work, "fma.rn.f32 %f1, %f1, %f0, %f0;") +
         "add.u32 %r3, %r3, 1; setp.lt.u32 %p1, %r3, 10; @%p1 bra LOOP;\ncp.async.wait_all;";
}

TEST_F(ChainOf, CopiesCostTheirLatencyAtTheWaitForTheirGroup) {
  EXPECT_NEAR(added(copies(0, 1)), 10 * kGlobal, 400);
  // Each iteration but one issues a copy, works for 400 clocks and waits for the previous copy. So
  // two iterations take a copy's latency plus the work of one. The kernel ends with a wait for the
  // last copy.
  EXPECT_NEAR(added(copies(1, 100)), 5 * (kGlobal + 100 * kArithmetic) + kGlobal, 600);
  EXPECT_NEAR(added(copies(3, 100)), 10 * 100 * kArithmetic + kGlobal, 600);  // all but the first
}

TEST_F(ChainOf, SharedMemoryAndBarriers) {
  EXPECT_NEAR(added("st.shared.f32 [%r12], %f0; bar.sync 0; ld.shared.f32 %f2, [%r12];\n"
                    "st.global.f32 [%rd3], %f2;"),
              kBarrier + kSharedWait, 20);
  EXPECT_NEAR(
      added("ex2.approx.ftz.f32 %f2, %f0; ex2.approx.ftz.f32 %f3, %f2; st.global.f32 [%rd3], %f3;"),
      2 * 24, 12);
}

TEST_F(ChainOf, TheLongestCtaCounts) {
  const std::string body = "mov.u32 %r4, %ctaid.x; setp.eq.u32 %p2, %r4, 0; @!%p2 bra END;\n" +
                           times(400, "fma.rn.f32 %f1, %f1, %f0, %f0;") + "END:";
  EXPECT_GT(added(body, 4), 300);
}

TEST_F(ChainOf, NothingIsFollowedUnlessItIsAskedFor) {
  follow = false;
  EXPECT_EQ(clocks(""), 0);
}

// A product of N columns occupies the tensor pipe for N / 2 clocks. Only wait_group waits for it.
TEST_F(ChainOf, AWarpgroupWaitsForItsProductsAtTheWait) {
  const std::string product =
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {%f2, %f3, %f4, %f5, %f6, %f7, %f8, %f9, "
      "%f10, %f11, %f12, %f13, %f14, %f15, %f16, %f17, %f18, %f19, %f20, %f21, %f22, %f23, %f24, "
      "%f25, %f26, %f27, %f28, %f29, %f30, %f31, %f32, %f33}, %rd5, %rd5, 0, 1, 1, 0, 0;";
  const std::string begin = "mov.b64 %rd5, 4611686293305360384;\nwgmma.fence.sync.aligned;\n",
                    commit = "wgmma.commit_group.sync.aligned;\n",
                    wait = "wgmma.wait_group.sync.aligned ";
  shared = 16384;
  const double none = clocks(begin + commit + wait + "0;", 1, 128);
  EXPECT_NEAR(clocks(begin + times(4, product) + commit + wait + "0;", 1, 128) - none,
              4 * 32 + kTensorWait, 12);
  const std::string work = times(40, "fma.rn.f32 %f1, %f1, %f0, %f0;");  // during the products
  EXPECT_NEAR(clocks(begin + times(4, product) + commit + work + wait + "0;", 1, 128) - none,
              4 * 32 + kTensorWait, 16);
  // wait_group 1 leaves one group in flight, so only the first two products count.
  EXPECT_NEAR(clocks(begin + times(2, product) + commit + times(2, product) + commit + wait + "1;",
                     1, 128) -
                  none,
              2 * 32 + kTensorWait, 16);
}

}  // namespace
}  // namespace cutegen::ptx
