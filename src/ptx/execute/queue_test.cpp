// SPDX-License-Identifier: Apache-2.0
// Kernels whose CTAs take work from a counter, wait for one another or sleep: a sample predicts the
// time of the whole grid.
#include "ptx/model/model_time.h"
#include "ptx/testing/test_machine.h"

namespace cutegen::ptx {
namespace {

constexpr int64_t kTiles = 3000, kThreads = 128;

// The work of a tile: 8 to 15 rounds of loads and multiplications on the tile's part of `in`.
const std::string kTile =
    "and.b32 %r3, %r2, 7; add.u32 %r3, %r3, 8; mov.f32 %f1, 0f00000000;\n"
    "mul.lo.u32 %r4, %r2, 512; mul.wide.u32 %rd3, %r4, 4; add.s64 %rd3, %rd1, %rd3;\n"
    "mul.wide.u32 %rd4, %r0, 16; add.s64 %rd4, %rd3, %rd4;\n"
    "ROUND: ld.global.v4.f32 {%f2, %f3, %f4, %f5}, [%rd4]; fma.rn.f32 %f1, %f2, %f3, %f1;\n"
    "fma.rn.f32 %f1, %f4, %f5, %f1; sub.u32 %r3, %r3, 1; setp.ne.u32 %p2, %r3, 0; @%p2 bra ROUND;\n"
    "mul.lo.u32 %r5, %r2, 128; add.u32 %r5, %r5, %r0; mul.wide.u32 %rd5, %r5, 4;\n"
    "add.s64 %rd5, %rd0, %rd5; st.global.f32 [%rd5], %f1;\n";
const std::string kStatic = "mov.u32 %r2, %ctaid.x;\nNEXT: setp.ge.u32 %p1, %r2, %r1; @%p1 ret;\n" +
                            kTile + "mov.u32 %r6, %nctaid.x; add.u32 %r2, %r2, %r6; bra NEXT;\n";
const std::string kQueue =
    "NEXT: setp.ne.u32 %p1, %r0, 0; @%p1 bra TAKEN; atom.global.add.u32 %r2, [%rd2], 1;\n"
    "st.shared.u32 [s], %r2;\nTAKEN: bar.sync 0; ld.shared.u32 %r2, [s]; bar.sync 0;\n"
    "setp.ge.u32 %p1, %r2, %r1; @%p1 ret;\n" +
    kTile + "bra NEXT;\n";

Module queue_kernel(const std::string& body) {
  auto m = Module::parse(
      ".version 9.0\n.target sm_90a\n.address_size 64\n"
      ".visible .entry k(.param .u64 out, .param .u64 in, .param .u64 counter, .param .u32 n) {\n"
      ".reg .b32 %r<20>; .reg .b64 %rd<12>; .reg .pred %p<6>; .reg .f32 %f<8>;\n"
      ".shared .align 16 .b8 s[16]; mov.u32 %r0, %tid.x; ld.param.u64 %rd0, [out];\n"
      "ld.param.u64 %rd1, [in]; ld.param.u64 %rd2, [counter]; ld.param.u32 %r1, [n];\n" +
      body + "\nret;\n}\n");
  if (!m) ADD_FAILURE() << m.error().text();
  return std::move(*m);
}

struct Modelled {
  double time_ns = 0;
  std::string bound_by;
  LaunchReport report;
};

class Queue : public testing::Test {
 protected:
  Modelled model(const std::string& body, int64_t grid, int64_t sample = 8, int64_t most = 128) {
    const GpuSpec gpu = *find_gpu("h200");
    Sim sim;
    out.assign(size_t(kTiles * 128), 0), in.assign(size_t(kTiles * 512), 1);
    counter.assign(4, 0);
    sim.options.latency = &gpu.latency;
    sim.options.checks = Checks::none();
    sim.options.sample_ctas = sample, sim.options.sample_most = most;
    const Module m = queue_kernel(body);
    const LaunchConfig config{.grid = {grid, 1, 1}, .block = {kThreads, 1, 1}};
    sim.options.resident_ctas = resident_ctas(gpu, m.entries()[0], config);
    auto r = launch(sim.context, sim.memory, m, "k", config,
                    {sim.output("out", out), sim.input("in", in), sim.output("counter", counter),
                     arg(int(kTiles))},
                    sim.options);
    if (!r) ADD_FAILURE() << r.error().text();
    EXPECT_EQ(r->status, LaunchStatus::ok) << r->reason;
    const ModelledTime t = model_time(gpu, *r, m.entries()[0], config);
    return {t.time_ns, t.bound_by, *r};
  }
  std::vector<float> out, in;
  std::vector<int> counter;
};

double bytes(const Modelled& m) {
  return double(m.report.counters.global_load_bytes);
}

TEST_F(Queue, TilesFromACounterTakeAsLongAsTilesByIndex) {
  for (int64_t grid : {132, 264, 528}) {
    const Modelled fixed = model(kStatic, grid), queue = model(kQueue, grid);
    EXPECT_LT(queue.report.ctas_run, grid);
    EXPECT_NEAR(bytes(queue) / bytes(fixed), 1, 0.1) << grid;
    EXPECT_NEAR(queue.time_ns / fixed.time_ns, 1, 0.15) << grid;
  }
}

TEST_F(Queue, ASampleDoesAsMuchAsTheGrid) {
  const Modelled all = model(kQueue, 132, 0);
  EXPECT_EQ(all.report.ctas_run, 132);
  const Modelled some = model(kQueue, 132);
  EXPECT_NEAR(bytes(some) / bytes(all), 1, 0.1);
  EXPECT_NEAR(some.time_ns / all.time_ns, 1, 0.15);
  // No CTA did all of the work, because they advanced in step.
  const double mean = double(all.report.counters.warp_instructions) / 132;
  EXPECT_LT(double(all.report.counters.max_cta_instructions), 1.2 * mean);
}

TEST_F(Queue, TheTimeIsTheSameEachTime) {
  EXPECT_EQ(model(kQueue, 132).time_ns, model(kQueue, 132).time_ns);
}

TEST_F(Queue, APlaceThatIsCountedIsNoWork) {
  // Each CTA appends 20 numbers to a list with room for all CTAs.
  const Modelled m = model(
      "setp.ne.u32 %p1, %r0, 0; @%p1 ret; mov.u32 %r3, 0;\n"
      "NEXT: atom.global.add.u32 %r2, [%rd2], 1; mul.wide.u32 %rd5, %r2, 480;\n"
      "add.s64 %rd5, %rd0, %rd5; st.global.u32 [%rd5], %r3; add.u32 %r3, %r3, 1;\n"
      "setp.lt.u32 %p2, %r3, 20; @%p2 bra NEXT;",
      160);
  EXPECT_NEAR(double(m.report.counters.global_store_requests), 160 * 20, 1);
}

TEST_F(Queue, CtasThatWaitForEarlierOnesAreSampledInARow) {
  const Modelled m = model(
      "mov.u32 %r9, %ctaid.x; setp.ne.u32 %p1, %r0, 0; @%p1 ret; mul.wide.u32 %rd5, %r9, 4;\n"
      "add.s64 %rd5, %rd0, %rd5; setp.eq.u32 %p2, %r9, 0; @%p2 bra SET;\n"
      "WAIT: ld.acquire.gpu.global.u32 %r2, [%rd5+-4]; setp.eq.u32 %p3, %r2, 0; @%p3 bra WAIT;\n"
      "SET: mov.u32 %r3, 1; st.release.gpu.global.u32 [%rd5], %r3;",
      100000);
  EXPECT_LE(m.report.ctas_run, 128);
  EXPECT_NEAR(double(m.report.counters.global_store_requests), 100000, 2000);
}

TEST_F(Queue, CtasThatTheGpuHoldsTogetherMayWaitForAllOfThem) {
  // A hand-written grid barrier.
  const Modelled m = model(
      "setp.ne.u32 %p1, %r0, 0; @%p1 ret; red.release.gpu.global.add.u32 [%rd2], 1;\n"
      "mov.u32 %r3, %nctaid.x;\nWAIT: ld.acquire.gpu.global.u32 %r2, [%rd2];\n"
      "setp.lt.u32 %p3, %r2, %r3; @%p3 bra WAIT;",
      264);
  EXPECT_EQ(m.report.ctas_run, 264);
  // The time does not depend on how often the CTAs poll until the last one arrives.
  EXPECT_LT(m.time_ns, 10000) << m.bound_by << " " << m.report.chain_clocks << " "
                              << m.report.counters.max_cta_instructions;
}

TEST_F(Queue, SleepTakesItsTime) {
  const double plain = model("mov.u32 %r2, 1;", 132).time_ns;
  EXPECT_NEAR(model("nanosleep.u32 20000;", 132).time_ns - plain, 20000, 3000);
  // One warp sleeps and the others wait for it. Each iteration of a loop counts, and each wave.
  const std::string some =
      "setp.ge.u32 %p1, %r0, 32; mov.u32 %r3, 10; @%p1 bra MEET;\nAGAIN: nanosleep.u32 2000;\n"
      "sub.u32 %r3, %r3, 1; setp.ne.u32 %p2, %r3, 0; @%p2 bra AGAIN;\nMEET: bar.sync 0;";
  EXPECT_NEAR(model(some, 132).time_ns - plain, 20000, 4000);
  EXPECT_GT(model(some, 132 * 16 * 4).time_ns, 70000);
  // The grid waits for a single CTA that sleeps.
  const std::string one =
      "mov.u32 %r2, %ctaid.x; setp.ne.u32 %p1, %r2, 0; @%p1 ret;\n"
      "nanosleep.u32 20000;";
  EXPECT_GT(model(one, 132).time_ns, 20000);
}

TEST_F(Queue, SleepWhilePollingIsTheTimeOfOthers) {
  const Modelled m = model(
      "mov.u32 %r9, %ctaid.x; setp.ne.u32 %p1, %r0, 0; @%p1 ret; setp.ne.u32 %p2, %r9, 0;\n"
      "@%p2 bra SET;\nWAIT: ld.acquire.gpu.global.u32 %r2, [%rd2]; setp.ne.u32 %p3, %r2, 0;\n"
      "@%p3 ret; nanosleep.u32 1000; bra WAIT;\nSET: red.release.gpu.global.add.u32 [%rd2], 1;",
      20);
  EXPECT_LE(m.report.most_sleep_ns, 1000);
}

}  // namespace
}  // namespace cutegen::ptx
