// SPDX-License-Identifier: Apache-2.0
// Orders of CTAs and warps: a program that relies on one order fails in another; correct ones pass
// all.
#include "ptx/testing/test_machine.h"

namespace cutegen::ptx {
namespace {

constexpr Order kOrders[] = {Order::in_order, Order::reversed, Order::mixed};

Module order_kernel(const std::string& body) {
  auto m = Module::parse(
      ".version 9.0\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 out) {\n"
      ".reg .b32 %r<20>; .reg .b64 %rd<12>; .reg .pred %p<6>; .shared .align 16 .b8 s[256];\n"
      "mov.u32 %r0, %tid.x; mov.u32 %r9, %ctaid.x; ld.param.u64 %rd0, [out];\n"
      "mul.wide.u32 %rd1, %r9, 8; add.s64 %rd2, %rd0, %rd1;\n" +
      body + "\nret;\n}\n");
  if (!m) ADD_FAILURE() << m.error().text();
  return std::move(*m);
}

class Orders : public testing::Test {
 protected:
  LaunchReport run(const std::string& body, int64_t grid, int64_t block, Order order,
                   LaunchStatus status = LaunchStatus::ok) {
    out.assign(4096, 0);
    sim.options.order = order;
    return sim.run(order_kernel(body), "k", grid, block, {sim.output("out", out)}, 0, status);
  }
  std::vector<int> out;
  Sim sim;
};

// Each CTA adds its number to the value that the previous CTA stores, but does not wait for it.
constexpr const char* kNoWait =
    "setp.ne.u32 %p1, %r0, 0; @%p1 ret; mov.u32 %r1, 0; setp.eq.u32 %p2, %r9, 0; @%p2 bra ADD;\n"
    "ld.volatile.global.u32 %r1, [%rd2+-8];\n"
    "ADD: add.u32 %r1, %r1, %r9; st.volatile.global.u32 [%rd2], %r1;";

TEST_F(Orders, ACtaThatTrustsAnEarlierOneIsWrongInOthers) {
  sim.options.threads = 1;
  run(kNoWait, 40, 32, Order::in_order);
  EXPECT_EQ(out[78], 780);  // the checks report nothing, because all accesses are volatile
  for (Order order : {Order::reversed, Order::mixed}) {
    run(kNoWait, 40, 32, order);
    EXPECT_NE(out[78], 780);
  }
}

// The same with a flag that says when the value is ready: a look-back by the index of the CTA.
constexpr const char* kLookBack =
    "setp.ne.u32 %p1, %r0, 0; @%p1 ret; mov.u32 %r1, 0; setp.eq.u32 %p2, %r9, 0; @%p2 bra ADD;\n"
    "WAIT: ld.volatile.global.u32 %r2, [%rd2+-4]; setp.eq.u32 %p3, %r2, 0; @%p3 bra WAIT;\n"
    "ld.volatile.global.u32 %r1, [%rd2+-8];\n"
    "ADD: add.u32 %r1, %r1, %r9; st.volatile.global.u32 [%rd2], %r1; membar.gl;\n"
    "mov.u32 %r3, 1; st.volatile.global.u32 [%rd2+4], %r3;";

TEST_F(Orders, ALookBackPassesThemAll) {
  for (int threads : {1, 2}) {
    for (int64_t resident : {0, 4}) {  // fewer CTAs than the grid has
      sim.options.threads = threads, sim.options.resident_ctas = resident;
      for (Order order : kOrders) {
        auto r = run(kLookBack, 300, 32, order);
        EXPECT_EQ(r.ctas_run, 300);
        EXPECT_EQ(out[598], 299 * 150) << int(order);
        if (threads == 1) {
          EXPECT_LT(r.counters.warp_instructions, 1'500'000u) << int(order);
        }
      }
    }
  }
}

TEST_F(Orders, AWarpThatTrustsAnEarlierOneIsWrongInOthers) {
  // Warp 0 writes, warp 1 reads. Both are volatile, so that no race is reported.
  const char* body =
      "setp.ge.u32 %p1, %r0, 32; @%p1 bra READ; mov.u32 %r1, 7; st.volatile.shared.u32 [s], %r1;\n"
      "ret;\nREAD: ld.volatile.shared.u32 %r1, [s]; st.global.u32 [%rd0], %r1;";
  sim.options.checks = Checks::none();
  run(body, 1, 64, Order::in_order);
  EXPECT_EQ(out[0], 7);
  run(body, 1, 64, Order::reversed);
  EXPECT_NE(out[0], 7);
}

TEST_F(Orders, BarriersLocksAndLastBlocksPassThemAll) {
  const std::string lock =
      "setp.ne.u32 %p1, %r0, 0; @%p1 ret;\n"
      "TAKE: atom.global.cas.b32 %r1, [%rd0], 0, 1; setp.ne.u32 %p2, %r1, 0; @%p2 bra TAKE;\n"
      "membar.gl; ld.volatile.global.u32 %r2, [%rd0+4]; add.u32 %r2, %r2, 1;\n"
      "st.volatile.global.u32 [%rd0+4], %r2; membar.gl; atom.global.exch.b32 %r1, [%rd0], 0;";
  const std::string barrier =
      "shl.b32 %r1, %r0, 2; mov.u32 %r2, s; add.u32 %r1, %r1, %r2; st.shared.u32 [%r1], %r0;\n"
      "bar.sync 0; xor.b32 %r3, %r0, 63; shl.b32 %r3, %r3, 2; add.u32 %r3, %r3, %r2;\n"
      "ld.shared.u32 %r4, [%r3]; mul.wide.u32 %rd3, %r0, 4; add.s64 %rd3, %rd0, %rd3;\n"
      "st.global.u32 [%rd3], %r4;";
  for (Order order : kOrders) {
    run(lock, 40, 32, order);
    EXPECT_EQ(out[1], 40);
    auto r = run(barrier, 1, 64, order);
    EXPECT_TRUE(r.communicates);
    for (int i = 0; i < 64; ++i) ASSERT_EQ(out[size_t(i)], 63 - i);
  }
}

TEST_F(Orders, OneSeedGivesOneOrder) {
  sim.options.threads = 1;
  run(kNoWait, 40, 32, Order::mixed);
  const std::vector<int> first = out;
  run(kNoWait, 40, 32, Order::mixed);
  EXPECT_EQ(out, first);
  sim.options.order_seed = 2;
  run(kNoWait, 40, 32, Order::mixed);
  EXPECT_NE(out, first);
}

TEST_F(Orders, AKernelWithoutCommunicationSaysSo) {
  EXPECT_FALSE(run("st.global.u32 [%rd2], %r9;", 4, 1, Order::in_order).communicates);
  EXPECT_TRUE(run("red.global.add.u32 [%rd0], 1;", 4, 32, Order::in_order).communicates);
  EXPECT_TRUE(run("ld.volatile.global.u32 %r1, [%rd0];", 4, 32, Order::in_order).communicates);
  EXPECT_TRUE(run("st.shared.u32 [s], 1;", 4, 32, Order::in_order).communicates);
}

// Programmatic launches: `second` may begin before `first` has ended.
class Overlap : public testing::Test {
 protected:
  LaunchReport run(const std::string& first, const std::string& second, bool overlaps = true,
                   bool settle = false) {
    Memory memory;
    std::vector<int> x(64), y(64);
    const auto a = arg(memory.add("x", std::as_writable_bytes(std::span(x)), Access::read_write)),
               b = arg(memory.add("y", std::as_writable_bytes(std::span(y)), Access::read_write));
    auto launch = [&](const std::string& body, bool late) {
      auto m = Module::parse(
          ".version 9.0\n.target sm_90a\n.address_size 64\n"
          ".visible .entry k(.param .u64 x, .param .u64 y) {\n.reg .b32 %r<9>; .reg .b64 %rd<9>;\n"
          ".reg .b16 %h<3>; .reg .pred %p<3>; mov.u32 %r0, %tid.x; mul.wide.u32 %rd0, %r0, 4;\n"
          "ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [y]; add.s64 %rd3, %rd1, %rd0;\n"
          "add.s64 %rd4, %rd2, %rd0;\n" +
          body + "\nret;\n}\n");
      if (!m) ADD_FAILURE() << m.error().text();
      LaunchConfig config{.grid = {1, 1, 1},
                          .block = {64, 1, 1},
                          .cluster = {1, 1, 1},
                          .shared_bytes = 0,
                          .cooperative = false,
                          .overlaps = late};
      auto r = ptx::launch(Context(), memory, *m, "k", config, {a, b}, {});
      if (!r) ADD_FAILURE() << r.error().text();
      return *r;
    };
    EXPECT_EQ(launch(first, false).status, LaunchStatus::ok);
    if (settle) memory.settle();
    if (!third.empty()) {
      EXPECT_EQ(launch(second, overlaps).status, LaunchStatus::ok);
    }
    return launch(third.empty() ? second : third, overlaps);
  }
  std::string third;
};

constexpr const char* kWriteX = "st.global.u32 [%rd3], %r0;";
constexpr const char* kReadX = "ld.global.u32 %r1, [%rd3]; st.global.u32 [%rd4], %r1;";
const std::string kGridWait = "griddepcontrol.wait;\n";

TEST_F(Overlap, AReadBeforeTheWaitIsFound) {
  auto r = run(kWriteX, kReadX);
  ASSERT_TRUE(r.finding);
  EXPECT_EQ(r.finding->kind, "pdl_race");
  EXPECT_NE(r.reason.find("read of 4 bytes at offset 0 of x by thread 0 before "
                          "griddepcontrol.wait: the previous step, which writes them"),
            std::string::npos)
      << r.reason;
  EXPECT_FALSE(run(kWriteX, kGridWait + kReadX).finding);
  EXPECT_FALSE(run(kWriteX, kReadX, false).finding);
  EXPECT_FALSE(run(kWriteX, kReadX, true, true).finding);
}

TEST_F(Overlap, AWriteBeforeTheWaitIsFound) {
  auto r = run(kReadX, kWriteX);
  ASSERT_TRUE(r.finding);
  EXPECT_NE(r.reason.find("write of 4 bytes"), std::string::npos) << r.reason;
  EXPECT_NE(r.reason.find("which reads them"), std::string::npos) << r.reason;
  EXPECT_FALSE(run(kReadX, kGridWait + kWriteX).finding);
  EXPECT_TRUE(run(kWriteX, kWriteX).finding);
}

TEST_F(Overlap, VolatileAccessesAndNarrowOnesAreSeenToo) {
  EXPECT_TRUE(run(kWriteX, "ld.volatile.global.u32 %r1, [%rd3];").finding);
  EXPECT_TRUE(run(kWriteX, "ld.global.u16 %h1, [%rd3+2];").finding);
  EXPECT_TRUE(run("st.global.u16 [%rd3], 1;", "ld.global.u32 %r1, [%rd3];").finding);
  EXPECT_FALSE(run("st.global.u16 [%rd3], 1;", "ld.global.u16 %h1, [%rd3+2];").finding);
}

TEST_F(Overlap, EachWarpWaitsOrMeetsOneThatDid) {
  const std::string first_warp = "setp.lt.u32 %p1, %r0, 32; @%p1 griddepcontrol.wait;\n";
  EXPECT_TRUE(run(kWriteX, first_warp + kReadX).finding);
  EXPECT_FALSE(run(kWriteX, first_warp + "bar.sync 0;\n" + kReadX).finding);
}

// The code that copies 256 bytes between a buffer and shared memory, and waits for the copy.
const std::string kCopyFromX =
    ".shared .align 16 .b8 s[256]; .shared .align 8 .b64 full;\n"
    "setp.ne.u32 %p1, %r0, 0; @%p1 bra E;\nmbarrier.init.shared::cta.b64 [full], 1;\n"
    "fence.mbarrier_init.release.cluster;\n"
    "mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 256;\n"
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [%rd1], 256, [full];\n"
    "W:\nmbarrier.try_wait.parity.shared::cta.b64 %p2, [full], 0;\n@!%p2 bra W;\nE:\n";
const std::string kCopyToX =
    ".shared .align 16 .b8 s[256]; mov.u32 %r2, s; shl.b32 %r3, %r0, 2; add.u32 %r2, %r2, %r3;\n"
    "st.shared.u32 [%r2], %r0; fence.proxy.async; bar.sync 0;\n"
    "setp.ne.u32 %p1, %r0, 0; @%p1 bra E;\ncp.async.bulk.global.shared::cta.bulk_group [%rd1], "
    "[s], 256; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;\nE:\n";

TEST_F(Overlap, ABulkCopyBeforeTheWaitIsFound) {
  auto r = run(kWriteX, kCopyFromX);
  ASSERT_TRUE(r.finding);
  EXPECT_EQ(r.finding->kind, "pdl_race");
  EXPECT_NE(r.reason.find("256 bytes at offset 0 of x before griddepcontrol.wait: the previous "
                          "step, which writes them"),
            std::string::npos)
      << r.reason;
  EXPECT_FALSE(run(kWriteX, kGridWait + kCopyFromX).finding);
  EXPECT_FALSE(run(kReadX, kCopyFromX).finding);
  r = run(kReadX, kCopyToX);
  ASSERT_TRUE(r.finding);
  EXPECT_NE(r.reason.find("which reads them"), std::string::npos) << r.reason;
  // One warp waits, and a barrier tells the other one.
  const std::string last_warp = "setp.ge.u32 %p1, %r0, 32; @%p1 griddepcontrol.wait;\n";
  EXPECT_FALSE(run(kReadX, last_warp + kCopyToX).finding);
}

TEST_F(Overlap, WhoDoesNotWaitLetsLaterStepsBeginEarly) {
  third = kReadX;
  EXPECT_TRUE(run(kWriteX, "mov.u32 %r1, 0;").finding);  // the step before the previous one
  third = kGridWait + kReadX;
  EXPECT_FALSE(run(kWriteX, "mov.u32 %r1, 0;").finding);
  third = kReadX;
  EXPECT_FALSE(run(kWriteX, kGridWait).finding);
}

}  // namespace
}  // namespace cutegen::ptx
