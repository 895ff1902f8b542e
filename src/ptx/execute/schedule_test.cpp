// SPDX-License-Identifier: Apache-2.0
// Barriers, deadlocks, and CTAs that wait for one another.
#include "ptx/testing/test_machine.h"

namespace cutegen::ptx {
namespace {

Module schedule_kernel(const std::string& body, const std::string& params = ".param .u64 out") {
  auto m =
      Module::parse(".version 9.0\n.target sm_90a\n.address_size 64\n.visible .entry k(" + params +
                    ") {\n.reg .b32 %r<20>; .reg .b64 %rd<12>; .reg .pred %p<6>; .reg .f32 %f<8>;\n"
                    "mov.u32 %r0, %tid.x; mov.u32 %r9, %ctaid.x; ld.param.u64 %rd0, [out];\n" +
                    body + "\nret;\n}\n");
  if (!m) ADD_FAILURE() << m.error().text();
  return std::move(*m);
}

class Schedule : public testing::Test {
 protected:
  LaunchReport run(const std::string& body, int64_t grid, int64_t block,
                   LaunchStatus status = LaunchStatus::ok, bool cooperative = false) {
    out.assign(size_t(elements > 0 ? elements : std::max<int64_t>(grid * block, 64)), 0);
    Module m = schedule_kernel(body);
    auto r = ptx::launch(sim.context, sim.memory, m, "k",
                         {.grid = {grid, 1, 1},
                          .block = {block, 1, 1},
                          .cluster = {1, 1, 1},
                          .shared_bytes = 0,
                          .cooperative = cooperative},
                         {sim.output("out", out)}, sim.options);
    if (!r) {
      error = r.error().text();
      return {};
    }
    EXPECT_EQ(r->status, status) << r->reason;
    return *r;
  }
  std::string kind(const std::string& body, int64_t grid, int64_t block) {
    auto r = run(body, grid, block, LaunchStatus::finding);
    return r.finding ? r.finding->kind : "";
  }
  int64_t elements = 0;  // of `out`; 0: one for each thread
  std::vector<int> out;
  std::string error;
  Sim sim;
};

constexpr const char* kStoreR1 =
    "mad.lo.u32 %r10, %r9, %ntid.x, %r0; mul.wide.u32 %rd2, %r10, 4; add.s64 %rd2, %rd0, %rd2;\n"
    "st.global.u32 [%rd2], %r1;\n";

TEST_F(Schedule, ABarrierAfterSomeThreadsEndedIsFound) {
  const char* body = "setp.ge.u32 %p1, %r0, 40; @%p1 ret; bar.sync 0;";
  auto r = run(body, 1, 64, LaunchStatus::finding);
  ASSERT_TRUE(r.finding);
  EXPECT_EQ(r.finding->kind, "exited_before_barrier");
  EXPECT_EQ(r.finding->message,
            "barrier 0 is for all 64 threads, but 24 of them have ended, first thread 40");
  EXPECT_EQ(kind("setp.ge.u32 %p1, %r0, 32; @%p1 ret; bar.sync 0;", 1, 64),
            "exited_before_barrier");
  sim.options.checks.barriers = false;
  run(body, 1, 64);
}

TEST_F(Schedule, ThreadsMayEndBehindTheLastBarrier) {
  run("bar.sync 0; setp.ge.u32 %p1, %r0, 40; @%p1 ret; mov.u32 %r1, 1;", 3, 50);
}

TEST_F(Schedule, WrongCountsAreFound) {
  EXPECT_EQ(kind("bar.sync 1, 128;", 1, 64), "deadlock");
  EXPECT_EQ(kind("bar.sync 1, 40;", 1, 64), "bad_barrier");
  EXPECT_EQ(kind("setp.ge.u32 %p1, %r0, 32; @%p1 bra B; bar.sync 1, 64; bra.uni E;\n"
                 "B: bar.sync 1, 96;\nE:",
                 1, 64),
            "bad_barrier");
}

TEST_F(Schedule, ADeadlockTellsWhereEachWarpIs) {
  auto r = run(
      "setp.ge.u32 %p1, %r0, 64; @%p1 bra B; bar.sync 1; bra.uni E;\nB: setp.ge.u32 %p2, %r0, 96;\n"
      "@%p2 ret; bar.sync 2, 64;\nE:",
      1, 128, LaunchStatus::finding);
  EXPECT_EQ(r.finding->kind, "deadlock");
  EXPECT_NE(r.reason.find("warps 0-1 at barrier 1, ptx line"), std::string::npos) << r.reason;
  EXPECT_NE(r.reason.find("which 64 of all 128 threads have reached"), std::string::npos)
      << r.reason;
  EXPECT_NE(r.reason.find("warp 2 at barrier 2"), std::string::npos) << r.reason;
  EXPECT_NE(r.reason.find("(bar.sync 2, 64), which 32 of 64 threads have reached; warp 3 ended"),
            std::string::npos)
      << r.reason;
}

TEST_F(Schedule, ProducersAndConsumersMeetAtNamedBarriers) {
  // Ten times, warp 0 writes a word of shared memory and warp 1 reads it. Barrier 1: full; 2:
  // empty.
  run(".shared .align 4 .b8 box[4]; mov.u32 %r3, 0; mov.u32 %r1, 0;\n"
      "setp.ge.u32 %p1, %r0, 32; @%p1 bra CONSUMER;\n"
      "PRODUCER: st.shared.u32 [box], %r3; bar.arrive 1, 64; bar.sync 2, 64; add.u32 %r3, %r3, 1;\n"
      "setp.lt.u32 %p2, %r3, 10; @%p2 bra PRODUCER; bra.uni END;\n"
      "CONSUMER: bar.sync 1, 64; ld.shared.u32 %r4, [box]; add.u32 %r1, %r1, %r4; bar.arrive 2, "
      "64;\nadd.u32 %r3, %r3, 1; setp.lt.u32 %p2, %r3, 10; @%p2 bra CONSUMER;\nEND:\n" +
          std::string(kStoreR1),
      1, 64);
  EXPECT_EQ(out[63], 45);
  EXPECT_EQ(out[0], 0);
}

TEST_F(Schedule, BarriersReduce) {
  run("setp.lt.u32 %p1, %r0, 37; barrier.cta.red.popc.aligned.u32 %r1, 0, %p1;\n" +
          std::string(kStoreR1),
      1, 96);
  EXPECT_EQ(out[95], 37);
  run("setp.lt.u32 %p1, %r0, 37; barrier.red.or.pred %p2, 3, 96, %p1; selp.u32 %r1, 1, 0, %p2;\n" +
          std::string(kStoreR1),
      1, 96);
  EXPECT_EQ(out[95], 1);
  run("setp.lt.u32 %p1, %r0, 37; bar.red.and.pred %p2, 0, %p1; selp.u32 %r1, 1, 0, %p2;\n" +
          std::string(kStoreR1),
      1, 96);
  EXPECT_EQ(out[95], 0);
}

TEST_F(Schedule, ACtaMayWaitForALaterOne) {
  // CTA 0 polls a word that the last CTA writes.
  const char* body =
      "setp.ne.u32 %p1, %r9, 0; @%p1 bra OTHERS;\n"
      "WAIT: ld.volatile.global.u32 %r1, [%rd0+64]; setp.eq.u32 %p2, %r1, 0; @%p2 bra WAIT;\n"
      "st.global.u32 [%rd0], %r1; ret;\n"
      "OTHERS: setp.ne.u32 %p1, %r9, 9; @%p1 ret; mov.u32 %r1, 5; st.volatile.global.u32 [%rd0+64],"
      " %r1;";
  for (int threads : {1, 3}) {
    sim.options.threads = threads;
    auto r = run(body, 10, 32);
    EXPECT_EQ(out[0], 5);
    EXPECT_EQ(r.ctas_run, 10);
  }
}

TEST_F(Schedule, PollingWhatNobodyWritesIsADeadlock) {
  for (int threads : {1, 2}) {
    sim.options.threads = threads;
    auto r =
        run("WAIT: ld.acquire.gpu.global.u32 %r1, [%rd0]; setp.eq.u32 %p2, %r1, 0; @%p2 bra WAIT;",
            3, 64, LaunchStatus::finding);
    ASSERT_TRUE(r.finding);
    EXPECT_EQ(r.finding->kind, "deadlock");
    EXPECT_NE(r.reason.find("resident CTAs poll memory and none writes it"), std::string::npos);
  }
}

TEST_F(Schedule, ALockThatCtasPassOnMakesProgress) {
  // Every CTA takes the lock, increments a plain counter and releases the lock.
  for (int threads : {1, 2}) {
    sim.options.threads = threads;
    run("setp.ne.u32 %p1, %r0, 0; @%p1 ret;\n"
        "TAKE: atom.global.cas.b32 %r1, [%rd0], 0, 1; setp.ne.u32 %p2, %r1, 0; @%p2 bra TAKE;\n"
        "membar.gl; ld.volatile.global.u32 %r2, [%rd0+4]; add.u32 %r2, %r2, 1;\n"
        "st.volatile.global.u32 [%rd0+4], %r2; membar.gl; atom.global.exch.b32 %r1, [%rd0], 0;",
        40, 32);
    EXPECT_EQ(out[1], 40);
  }
}

// this_grid().sync() of cooperative_groups: the barrier comes after the workspace's size.
constexpr const char* kGridSync = R"(
  mov.u32 %r11, %envreg1; mov.u32 %r12, %envreg2; mov.b64 %rd5, {%r12, %r11};
  setp.ne.u64 %p1, %rd5, 0; @%p1 bra VALID; trap; VALID:
  barrier.sync 0; setp.ne.u32 %p1, %r0, 0; @%p1 bra JOIN;
  mov.u32 %r13, 1; setp.ne.u32 %p2, %r9, 0; @%p2 bra ARRIVE;
  mov.u32 %r14, %nctaid.x; sub.u32 %r14, %r14, 1; sub.u32 %r13, 0x80000000, %r14;
ARRIVE: atom.add.release.gpu.u32 %r15, [%rd5+4], %r13;
POLL: ld.acquire.gpu.u32 %r16, [%rd5+4]; xor.b32 %r17, %r16, %r15; setp.ge.s32 %p3, %r17, 0;
  @%p3 bra POLL;
JOIN: barrier.sync 0;
)";

TEST_F(Schedule, CooperativeLaunchesMeetAtTheGridBarrier) {
  // Each CTA writes a number. After the barrier, each reads the number of the next CTA.
  const std::string body =
      "mul.wide.u32 %rd6, %r9, 4; add.s64 %rd7, %rd0, %rd6;\n"
      "add.u32 %r2, %r9, 1000; setp.eq.u32 %p4, %r0, 0; @%p4 st.global.u32 [%rd7], %r2;\n" +
      std::string(kGridSync) +
      "add.u32 %r3, %r9, 1; rem.u32 %r3, %r3, %nctaid.x; mul.wide.u32 %rd6, %r3, 4;\n"
      "add.s64 %rd8, %rd0, %rd6; ld.global.u32 %r4, [%rd8]; @%p4 st.global.u32 [%rd7+1024], %r4;";
  for (int threads : {1, 2}) {
    sim.options.threads = threads;
    run(body, 20, 64, LaunchStatus::ok, true);
    for (int i = 0; i < 20; ++i) EXPECT_EQ(out[size_t(256 + i)], 1000 + (i + 1) % 20);
  }
  run(kGridSync, 2, 64, LaunchStatus::finding, false);  // not cooperative: no valid grid group
}

TEST_F(Schedule, ACooperativeLaunchMustFitTheGpu) {
  sim.options.resident_ctas = 19;
  run("mov.u32 %r1, 1;", 20, 64, LaunchStatus::ok, true);
  EXPECT_NE(error.find("a cooperative launch of 20 CTAs, but only 19 can be resident at once"),
            std::string::npos)
      << error;
}

TEST_F(Schedule, ResidentCtasFollowTheTightestLimit) {
  GpuSpec gpu;
  gpu.sms = 10, gpu.max_threads_per_sm = 2048, gpu.max_blocks_per_sm = 32;
  gpu.registers_per_sm = 65536, gpu.shared_bytes_per_sm = 233472;
  Entry entry;
  entry.registers_estimate = 20;
  EXPECT_EQ(resident_ctas(gpu, entry, {{1, 1, 1}, {32, 1, 1}}), 320);
  EXPECT_EQ(resident_ctas(gpu, entry, {{1, 1, 1}, {1000, 1, 1}}), 20);
  entry.registers_estimate = 120;  // 128 with those that the assembler adds
  EXPECT_EQ(resident_ctas(gpu, entry, {{1, 1, 1}, {256, 1, 1}}), 20);
  EXPECT_EQ(resident_ctas(gpu, entry, {{1, 1, 1}, {256, 1, 1}, {1, 1, 1}, 200000}), 10);
}

// Runs a sample of a grid in which CTA 3210 differs, and returns the report. `value` must leave in
// %r1 what all threads write.
class Kinds : public Schedule {
 protected:
  Kinds() {
    sim.options.checks = Checks::none();
    sim.options.sample_ctas = 8, sim.options.sample_most = 8, sim.options.every_kind = true;
  }
  LaunchReport sampled(const std::string& value) {
    return run("mad.lo.u32 %r5, %r9, %ntid.x, %r0; mov.u32 %r1, 1;\n" + value + kStoreR1, kGrid,
               32);
  }
  bool ran_the_odd_one() const { return out[kOdd * 32 + 5] != 0; }
  static constexpr int64_t kGrid = 5000, kOdd = 3210;
};

TEST_F(Kinds, ACtaWhoseBranchDiffersIsInTheSample) {
  auto r = sampled("setp.ne.u32 %p1, %r9, 3210; @%p1 bra GO; mov.u32 %r1, 7; GO:\n");
  EXPECT_EQ(out[kOdd * 32], 7);
  EXPECT_EQ(r.ctas_run, 9);
  EXPECT_EQ(r.kinds_missed, 0);
  EXPECT_TRUE(r.kinds_known);
}

TEST_F(Kinds, ACtaWithOneThreadThatDiffersIsInTheSample) {
  sampled("setp.eq.u32 %p1, %r5, 102725; selp.b32 %r1, 7, 1, %p1;\n");
  EXPECT_EQ(out[kOdd * 32 + 5], 7);
  EXPECT_EQ(out[kOdd * 32 + 4], 1);
}

TEST_F(Kinds, AMinimumIsADecision) {
  sampled("xor.b32 %r6, %r9, 3210; min.u32 %r7, %r6, 1; add.u32 %r1, %r7, 3;\n");
  EXPECT_EQ(out[0], 4);
  EXPECT_EQ(out[kOdd * 32 + 5], 3);
}

TEST_F(Kinds, ABitOfACountIsADecision) {
  auto r = sampled(
      "xor.b32 %r6, %r9, 3210; clz.b32 %r7, %r6; shr.u32 %r8, %r7, 5; add.u32 %r1, %r8, 3;\n");
  EXPECT_EQ(out[0], 3);
  EXPECT_EQ(out[kOdd * 32 + 5], 4);
  EXPECT_EQ(r.kinds, 2);
}

TEST_F(Kinds, ARegisterMayBeWrittenTwice) {
  sampled("mov.u32 %r7, 2; xor.b32 %r6, %r9, 3210; min.u32 %r7, %r6, 1; add.u32 %r1, %r7, 3;\n");
  EXPECT_EQ(out[kOdd * 32 + 5], 3);
}

TEST_F(Kinds, AFactorOfZeroIsADecision) {
  sampled(
      "sub.s32 %r6, %r9, 3210; cvt.rn.f32.s32 %f1, %r6; ld.global.f32 %f2, [%rd0];\n"
      "fma.rn.f32 %f3, %f1, %f1, %f2; cvt.rzi.s32.f32 %r7, %f3; add.s32 %r1, %r7, 9;\n");
  EXPECT_TRUE(ran_the_odd_one());
}

TEST_F(Kinds, ACounterOfALoopIsFollowed) {
  // A loop over tiles: CTA 3210 takes tile 28210, its sixth.
  const char* body =
      "mov.u32 %r6, %r9; mov.u32 %r7, %nctaid.x;\n"
      "NEXT: setp.ge.u32 %p1, %r6, 70000; @%p1 bra DONE;\n"
      "setp.eq.u32 %p2, %r6, 28210; selp.b32 %r1, 7, %r1, %p2; add.u32 %r6, %r6, %r7; bra NEXT;\n"
      "DONE:\n";
  auto r = sampled(body);
  EXPECT_EQ(out[kOdd * 32], 7);
  EXPECT_EQ(r.kinds_missed, 0);
  EXPECT_TRUE(r.kinds_known);
  EXPECT_LE(r.ctas_run, 10);
}

TEST_F(Kinds, TheSampleIsNoLargerWithoutAReason) {
  auto r = sampled("setp.ge.u32 %p1, %r5, 159990; selp.b32 %r1, 7, 1, %p1;\n");  // the last CTA
  EXPECT_EQ(r.ctas_run, 8);
  EXPECT_EQ(r.kinds, 2);
  EXPECT_EQ(r.kinds_missed, 0);
  EXPECT_EQ(r.counters.global_store_requests, uint64_t(kGrid));
}

TEST_F(Kinds, TheOddCtaCountsOnce) {
  auto r = sampled(
      "setp.ne.u32 %p1, %r9, 3210; @%p1 bra GO; st.global.u32 [%rd0], %r1;\n"
      "st.global.u32 [%rd0], %r1; GO:\n");
  EXPECT_EQ(r.counters.global_store_requests, uint64_t(kGrid) + 2);
}

TEST_F(Kinds, EachByteThatTheSampleStoresCountsOnce) {
  const LaunchReport r = sampled(kStoreR1);  // the threads store twice
  ASSERT_EQ(r.traffic.size(), 1u);
  EXPECT_EQ(r.traffic[0].stored_once, uint64_t(r.ctas_run) * 32 * sizeof(out[0]));
  EXPECT_EQ(r.traffic[0].store_bytes, 2 * uint64_t(kGrid) * 32 * sizeof(out[0]));
}

TEST_F(Kinds, ValuesFromMemoryDecideNothing) {
  auto r = sampled(
      "ld.global.u32 %r6, [%rd0]; add.u32 %r6, %r6, %r9; setp.eq.u32 %p1, %r6, 3210;\n"
      "selp.b32 %r1, 7, 1, %p1;\n");
  EXPECT_EQ(r.kinds, 1);
  EXPECT_EQ(r.kinds_missed, 0);
}

TEST_F(Kinds, CtasThatWaitForEarlierOnesMayBeMissed) {
  auto r = sampled(
      "setp.eq.u32 %p1, %r9, 3210; selp.b32 %r1, 7, 1, %p1;\n"
      "WAIT: ld.acquire.gpu.global.u32 %r6, [%rd0]; setp.eq.u32 %p2, %r6, 12345; @%p2 bra WAIT;\n");
  EXPECT_FALSE(ran_the_odd_one());
  EXPECT_EQ(r.kinds, 3);  // before, equal, behind
  EXPECT_EQ(r.kinds_missed, 2);
}

constexpr const char* kStoreAtR5 =
    "mul.wide.u32 %rd3, %r5, 4; add.s64 %rd4, %rd0, %rd3; st.global.u32 [%rd4], %r1;\n";

// Which parts of the buffer the stores of the whole grid reach.
class Reach : public Kinds {
 protected:
  // `index` computes %r5 from %r9, the CTA's index, and %r0, the thread's.
  BufferTraffic reach(const std::string& index) {
    auto r = run(index + "\nmov.u32 %r1, 1;\n" + kStoreAtR5, kGrid, 32);
    EXPECT_EQ(r.traffic.size(), 1u);
    return r.traffic.empty() ? BufferTraffic() : r.traffic[0];
  }
};

TEST_F(Reach, EveryPartOfTheBuffer) {
  const BufferTraffic t = reach("mad.lo.u32 %r5, %r9, %ntid.x, %r0;");
  EXPECT_TRUE(t.reach_known);
  EXPECT_EQ(t.unreached, 0);
}

TEST_F(Reach, AnIndexThatOverflowsLeavesPartsOut) {
  const BufferTraffic t =
      reach("mad.lo.u32 %r6, %r9, %ntid.x, %r0; shl.b32 %r7, %r6, 16; shr.u32 %r5, %r7, 16;");
  EXPECT_TRUE(t.reach_known);
  EXPECT_NEAR(t.unreached, 1 - 65536.0 / (kGrid * 32), 0.01);
  EXPECT_NEAR(t.unreached_from, 65536.0 / (kGrid * 32), 0.01);
}

TEST_F(Reach, AnIndexFromMemoryIsUnknown) {
  EXPECT_FALSE(reach("ld.global.u32 %r6, [%rd0]; add.u32 %r5, %r6, %r9;").reach_known);
}

TEST_F(Reach, AnIndexThatALoopAdvancesIsUnknown) {
  const BufferTraffic t = reach(
      "mad.lo.u32 %r5, %r9, %ntid.x, %r0; mov.u32 %r8, 0;\n"
      "NEXT: xor.b32 %r5, %r5, 1; add.u32 %r8, %r8, 1;\n"
      "setp.lt.u32 %p1, %r8, 2; @%p1 bra NEXT;");
  EXPECT_FALSE(t.reach_known);
}

TEST_F(Reach, AStoreThatNoSampledCtaExecutesCounts) {
  // A value from memory decides which of two stores runs. Each of them writes half of the buffer.
  auto r =
      run("mad.lo.u32 %r6, %r9, %ntid.x, %r0; shr.u32 %r5, %r6, 1; mul.wide.u32 %rd3, %r5, 4;\n"
          "add.s64 %rd4, %rd0, %rd3; ld.global.u32 %r7, [%rd0]; setp.eq.u32 %p1, %r7, 12345;\n"
          "@%p1 bra SECOND; st.global.u32 [%rd4], %r0; bra DONE;\n"
          "SECOND: st.global.u32 [%rd4+320000], %r0; DONE:\n",
          kGrid, 32);
  ASSERT_EQ(r.traffic.size(), 1u);
  EXPECT_TRUE(r.traffic[0].reach_known);
  EXPECT_EQ(r.traffic[0].unreached, 0);
}

TEST_F(Reach, AFewCtasMayWriteAPartAlone) {
  // The first 16 CTAs write elements of all parts, and the others write the first half.
  const BufferTraffic t = reach(
      "mad.lo.u32 %r4, %r9, %ntid.x, %r0; mul.lo.u32 %r6, %r4, 313; shr.u32 %r7, %r4, 1;\n"
      "setp.lt.u32 %p1, %r9, 16; selp.b32 %r5, %r6, %r7, %p1;");
  EXPECT_TRUE(t.reach_known);
  EXPECT_EQ(t.unreached, 0);
}

// Threads may skip the store to out[%r5], whose index is the thread's index in the grid.
class GuardedReach : public Kinds {
 protected:
  static constexpr int64_t kThreads = kGrid * 32;
  BufferTraffic reach(const std::string& body) {
    auto r =
        run("mad.lo.u32 %r5, %r9, %ntid.x, %r0; mul.wide.u32 %rd3, %r5, 4;\n"
            "add.s64 %rd4, %rd0, %rd3;\n" +
                body,
            kGrid, 32);
    EXPECT_EQ(r.traffic.size(), 1u);
    return r.traffic.empty() ? BufferTraffic() : r.traffic[0];
  }
};

TEST_F(GuardedReach, ABranchSkipsTheStoreInHalfOfTheGrid) {
  const BufferTraffic t =
      reach("setp.ge.u32 %p1, %r5, 80000; @%p1 bra SKIP; st.global.u32 [%rd4], %r0; SKIP:\n");
  EXPECT_TRUE(t.reach_known);
  EXPECT_NEAR(t.unreached, 0.5, 0.01);
  EXPECT_NEAR(t.unreached_from, 0.5, 0.01);
}

TEST_F(GuardedReach, ABranchLeadsToTheStore) {
  const BufferTraffic t = reach(
      "setp.lt.u32 %p1, %r5, 80000; @%p1 bra DO; bra SKIP; DO: st.global.u32 [%rd4], %r0;\n"
      "st.global.u32 [%rd4], %r0; SKIP:\n");  // the second store makes up for the missing bytes
  EXPECT_TRUE(t.reach_known);
  EXPECT_NEAR(t.unreached, 0.5, 0.01);
}

TEST_F(GuardedReach, AThreadEndsBeforeTheStore) {
  EXPECT_NEAR(
      reach("setp.ge.u32 %p1, %r5, 40000; @%p1 ret; st.global.u32 [%rd4], %r0;\n").unreached, 0.75,
      0.01);
}

TEST_F(GuardedReach, TheStoreHasAPredicate) {
  EXPECT_NEAR(reach("setp.ge.u32 %p1, %r5, 80000; @!%p1 st.global.u32 [%rd4], %r0;\n").unreached,
              0.5, 0.01);
}

TEST_F(GuardedReach, AllGuardsMustHold) {
  EXPECT_NEAR(reach("setp.ge.u32 %p1, %r5, 80000; @%p1 ret; setp.lt.u32 %p2, %r5, 40000;\n"
                    "@%p2 st.global.u32 [%rd4], %r0;\n")
                  .unreached,
              0.75, 0.01);
}

TEST_F(GuardedReach, AnotherPathToTheStoreCounts) {
  const BufferTraffic t = reach(
      "setp.ge.u32 %p1, %r5, 80000; @%p1 bra OTHER; DO: st.global.u32 [%rd4], %r0; bra SKIP;\n"
      "OTHER: mov.u32 %r1, 7; bra DO; SKIP:\n");
  EXPECT_TRUE(t.reach_known);
  EXPECT_EQ(t.unreached, 0);
}

TEST_F(GuardedReach, AGuardFromMemoryCountsAsTrue) {
  const BufferTraffic t = reach(
      "ld.global.u32 %r6, [%rd0]; add.u32 %r6, %r6, %r5; setp.ge.u32 %p1, %r6, 80000;\n"
      "@%p1 bra SKIP; st.global.u32 [%rd4], %r0; SKIP:\n");
  EXPECT_TRUE(t.reach_known);
  EXPECT_EQ(t.unreached, 0);
}

TEST_F(GuardedReach, AGuardThatALoopChangesCountsAsTrue) {
  // Each thread stores in the second of two rounds.
  const BufferTraffic t = reach(
      "mov.u32 %r8, 0; NEXT: setp.ne.u32 %p1, %r8, 1; @%p1 bra SKIP; st.global.u32 [%rd4], %r0;\n"
      "SKIP: add.u32 %r8, %r8, 1; setp.lt.u32 %p2, %r8, 2; @%p2 bra NEXT;\n");
  EXPECT_TRUE(t.reach_known);
  EXPECT_EQ(t.unreached, 0);
}

TEST_F(GuardedReach, OneThreadOfEachCtaMayWriteItsElements) {
  // The first thread of every 64th CTA stores one element.
  elements = kGrid / 64 + 1;
  const BufferTraffic t = reach(
      "shr.u32 %r6, %r9, 6; mul.wide.u32 %rd5, %r6, 4; add.s64 %rd6, %rd0, %rd5;\n"
      "and.b32 %r7, %r9, 63; setp.ne.u32 %p1, %r7, 0; @%p1 ret; setp.ne.u32 %p2, %r0, 0;\n"
      "@%p2 ret; st.global.u32 [%rd6], %r0;\n");
  EXPECT_TRUE(t.reach_known);
  EXPECT_EQ(t.unreached, 0);
}

TEST_F(GuardedReach, APathAroundTheConditionIsClosed) {
  // If the grid is large, the second branch decides. Otherwise, all threads store.
  const BufferTraffic t = reach(
      "mov.u32 %r6, %nctaid.x; setp.lt.u32 %p1, %r6, 1000; @%p1 bra DO;\n"
      "setp.ge.u32 %p2, %r5, 80000; @%p2 bra SKIP; DO: st.global.u32 [%rd4], %r0; SKIP:\n");
  EXPECT_TRUE(t.reach_known);
  EXPECT_NEAR(t.unreached, 0.5, 0.01);
}

TEST_F(GuardedReach, AGuardSkipsAFewElements) {
  const BufferTraffic t =
      reach("setp.ge.u32 %p1, %r5, 159900; @%p1 bra SKIP; st.global.u32 [%rd4], %r0; SKIP:\n");
  EXPECT_TRUE(t.reach_known);
  EXPECT_DOUBLE_EQ(t.unreached, 100.0 / kThreads);
  EXPECT_EQ(t.unreached_from, 1);  // the missing bytes fill no part
}

TEST_F(GuardedReach, OneThreadOfEachCtaSkipsTheStore) {
  const BufferTraffic t =
      reach("setp.eq.u32 %p1, %r0, 7; @%p1 bra SKIP; st.global.u32 [%rd4], %r0; SKIP:\n");
  EXPECT_DOUBLE_EQ(t.unreached, 1.0 / 32);
}

TEST_F(GuardedReach, AnotherStoreMayWriteWhatAGuardSkips) {
  const BufferTraffic t = reach(
      "setp.eq.u32 %p1, %r0, 7; @%p1 bra OTHER; st.global.u32 [%rd4], %r0; bra DONE;\n"
      "OTHER: st.global.u32 [%rd4], %r1; DONE:\n");
  EXPECT_TRUE(t.reach_known);
  EXPECT_EQ(t.unreached, 0);
}

TEST_F(GuardedReach, CtasMayStoreDifferentNumbersOfElements) {
  // The first CTA stores for the second one, too.
  const BufferTraffic t = reach(
      "setp.eq.u32 %p1, %r9, 1; @%p1 ret; st.global.u32 [%rd4], %r0;\n"
      "setp.ne.u32 %p2, %r9, 0; @%p2 ret; st.global.u32 [%rd4+128], %r0;\n");
  EXPECT_TRUE(t.reach_known);
  EXPECT_EQ(t.unreached, 0);
}

TEST_F(Reach, ASmallBufferIsReachedWhole) {
  // The threads of each CTA write the same 64 bytes: an element has eight of the 512 parts.
  elements = 16;
  const BufferTraffic t = reach("and.b32 %r5, %r0, 15;");
  EXPECT_TRUE(t.reach_known);
  EXPECT_EQ(t.unreached, 0);
}

}  // namespace
}  // namespace cutegen::ptx
