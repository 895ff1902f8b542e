// SPDX-License-Identifier: Apache-2.0
// Counters of whole kernels, compared with counts by hand; also with some counters off.
#include <gtest/gtest.h>

#include <set>

#include "ptx/model/sampling.h"
#include "ptx/testing/test_machine.h"

namespace cutegen::ptx {
namespace {

std::vector<float> ramp(size_t n) {
  std::vector<float> out(n);
  for (size_t i = 0; i < n; ++i) out[i] = float(i % 17) * 0.25f - 2;
  return out;
}

// relu_cute.cu: each thread moves one float4. A warp's request is 32 * 16 = 512 bytes, 16 sectors,
// so n floats are n / 128 requests and n / 8 sectors each way. Nothing is read twice.
TEST(HandCounts, Relu) {
  const uint64_t n = 1 << 16;
  auto x = ramp(n);
  std::vector<float> y(n);
  Sim sim;
  auto r = sim.run(golden("relu_cute.ptx"), "relu", int64_t(n / 1024), 256,
                   {sim.input("x", x), sim.output("y", y), arg(int(n))});
  const Counters& c = r.counters;
  EXPECT_EQ(c.global_load_requests, n / 128);
  EXPECT_EQ(c.global_load_sectors, n / 8);
  EXPECT_EQ(c.global_store_requests, n / 128);
  EXPECT_EQ(c.global_store_sectors, n / 8);
  EXPECT_EQ(c.global_atomic_requests, 0u);
  EXPECT_EQ(c.l1_hit_sectors, 0u);
  EXPECT_EQ(c.shared_requests, 0u);
  EXPECT_EQ(c.local_sectors, 0u);
  EXPECT_EQ(c.by_pipe.at("lsu"), 2 * n / 128);
}

// softmax.cu: a CTA of 8 warps per row of C columns. It loads the row three times and stores it
// once, each in C / 32 requests of 128 bytes (4 sectors). The second and third time, the row is in
// L1. Shared memory: twice, one lane of each warp stores a word (8 requests of one wavefront), and
// each warp loads 8 words that its lanes share (8 requests of one wavefront). Barriers: three, by 8
// warps.
TEST(HandCounts, Softmax) {
  const uint64_t rows = 16, columns = 1024;
  auto x = ramp(rows * columns);
  std::vector<float> y(rows * columns);
  Sim sim;
  auto r = sim.run(golden("softmax.ptx"), "softmax", rows, 256,
                   {sim.input("x", x), sim.output("y", y), arg(int(columns))});
  const Counters& c = r.counters;
  EXPECT_EQ(c.global_load_requests, rows * 3 * columns / 32);
  EXPECT_EQ(c.global_load_sectors, rows * 3 * columns / 8);
  EXPECT_EQ(c.l1_hit_sectors, rows * 2 * columns / 8);
  EXPECT_EQ(c.global_store_requests, rows * columns / 32);
  EXPECT_EQ(c.global_store_sectors, rows * columns / 8);
  EXPECT_EQ(c.shared_requests, rows * 2 * (8 + 8));
  EXPECT_EQ(c.shared_wavefronts, rows * 2 * (8 + 8));
  EXPECT_EQ(c.shared_conflicts, 0u);
  EXPECT_EQ(c.barriers, rows * 3 * 8);
}

// sgemm.cu, S^3: (S/64)^2 CTAs of 8 warps, S/16 steps. In each step, each warp executes:
// - A: 4 loads; a warp covers two rows of 16 floats, 2 sectors each: 4 sectors.
// - B: 4 loads of 32 floats side by side: 4 sectors.
// - A into a[column][row]: the 16 lanes of a row of A are 64 words apart, all in one bank, and the
//   two rows fall into two banks: 16 wavefronts, 15 of them conflicts. 4 stores.
// - B into b[row][column]: 32 words side by side: 1 wavefront. 4 stores.
// - 16 times two float4 loads: each half of a warp reads one 16-byte word of a (2 wavefronts), and
//   each quarter reads 128 contiguous bytes of b (4 wavefronts). No conflict.
// At the end, each warp executes 4 float4 stores, each to two rows of 256 bytes: 16 sectors.
TEST(HandCounts, SimtGemm) {
  const uint64_t s = 128, ctas = (s / 64) * (s / 64), warp_steps = ctas * 8 * (s / 16);
  auto a = ramp(s * s), b = ramp(s * s);
  std::vector<float> c(s * s);
  Sim sim;
  LaunchConfig config{.grid = {int64_t(s / 64), int64_t(s / 64), 1},
                      .block = {256, 1, 1},
                      .cluster = {1, 1, 1},
                      .shared_bytes = 0,
                      .cooperative = false};
  Module m = golden("sgemm.ptx");
  auto r = launch(
      {}, sim.memory, m, "sgemm", config,
      {sim.input("A", a), sim.input("B", b), sim.output("C", c), arg(int(s)), arg(int(s))}, {});
  ASSERT_TRUE(r) << r.error().text();
  ASSERT_EQ(r->status, LaunchStatus::ok) << r->reason;
  double truth = 0;
  for (uint64_t k = 0; k < s; ++k) truth += double(a[5 * s + k]) * double(b[k * s + 77]);
  EXPECT_NEAR(double(c[5 * s + 77]), truth, 1e-3);
  const Counters& n = r->counters;
  EXPECT_EQ(n.global_load_requests, warp_steps * 8);
  EXPECT_EQ(n.global_load_sectors, warp_steps * 8 * 4);
  EXPECT_EQ(n.l1_hit_sectors, 0u);
  EXPECT_EQ(n.global_store_requests, ctas * 8 * 4);
  EXPECT_EQ(n.global_store_sectors, ctas * 8 * 4 * 16);
  EXPECT_EQ(n.shared_requests, warp_steps * (4 + 4 + 32));
  EXPECT_EQ(n.shared_wavefronts, warp_steps * (4 * 16 + 4 + 16 * 2 + 16 * 4));
  EXPECT_EQ(n.shared_conflicts, warp_steps * 4 * 15);
  EXPECT_EQ(n.by_pipe.at("fma"), s * s * s / 32);
  EXPECT_EQ(n.flops, 2 * s * s * s);
}

TEST(Counting, LinesAddUpAndNameTheirSource) {
  const uint64_t rows = 4, columns = 512;
  auto x = ramp(rows * columns);
  std::vector<float> y(rows * columns);
  Sim sim;
  auto r = sim.run(golden("softmax.ptx"), "softmax", rows, 256,
                   {sim.input("x", x), sim.output("y", y), arg(int(columns))});
  Counters sum;
  for (const LineCounters& l : r.lines) {
    sum.warp_instructions += l.counters.warp_instructions;
    sum.global_load_sectors += l.counters.global_load_sectors;
    sum.shared_wavefronts += l.counters.shared_wavefronts;
    // softmax.cu loads its row in lines 7, 15 and 22 only, and stores it in line 22.
    const bool loads = l.source_line == 7 || l.source_line == 15 || l.source_line == 22;
    EXPECT_EQ(l.counters.global_load_sectors > 0, loads) << l.source_line;
    EXPECT_EQ(l.counters.global_store_sectors > 0, l.source_line == 22) << l.source_line;
  }
  EXPECT_EQ(sum.warp_instructions, r.counters.warp_instructions);
  EXPECT_EQ(sum.global_load_sectors, r.counters.global_load_sectors);
  EXPECT_EQ(sum.shared_wavefronts, r.counters.shared_wavefronts);
}

TEST(Counting, EachKindCanBeSwitchedOff) {
  const uint64_t columns = 512;
  auto x = ramp(columns);
  std::vector<float> y(columns);
  Module m = golden("softmax.ptx");
  auto run = [&](auto change) {
    Sim sim;
    change(sim.options);
    return sim.run(m, "softmax", 1, 256,
                   {sim.input("x", x), sim.output("y", y), arg(int(columns))});
  };
  auto all = run([](RunOptions&) {});
  auto none = run([](RunOptions& o) { o.counters = false; });
  EXPECT_EQ(none.counters.warp_instructions, 0u);
  EXPECT_EQ(none.counters.global_load_sectors, 0u);
  EXPECT_TRUE(none.lines.empty());
  auto no_sectors = run([](RunOptions& o) { o.sector_counters = false; });
  EXPECT_EQ(no_sectors.counters.global_load_sectors, 0u);
  EXPECT_EQ(no_sectors.counters.shared_wavefronts, all.counters.shared_wavefronts);
  EXPECT_EQ(no_sectors.counters.warp_instructions, all.counters.warp_instructions);
  auto no_wavefronts = run([](RunOptions& o) { o.wavefront_counters = false; });
  EXPECT_EQ(no_wavefronts.counters.shared_wavefronts, 0u);
  EXPECT_EQ(no_wavefronts.counters.global_load_sectors, all.counters.global_load_sectors);
  auto no_lines = run([](RunOptions& o) { o.line_counters = false; });
  EXPECT_TRUE(no_lines.lines.empty());
  EXPECT_EQ(no_lines.counters.warp_instructions, all.counters.warp_instructions);
  EXPECT_EQ(none.status, LaunchStatus::ok);
}

LaunchReport run_text(const std::string& body) {
  const std::string text = R"(
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 x)
{
  .reg .pred %p<2>;
  .reg .b32 %r<9>;
  .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [x];
)" + body + "  ret;\n}\n";
  auto m = Module::parse(text);
  EXPECT_TRUE(m) << m.error().text();
  std::vector<float> x(64);
  Sim sim;
  return sim.run(*m, "k", 1, 32, {sim.output("x", x)});
}

uint64_t rounds(const std::string& body) {
  return run_text(body).counters.load_rounds;
}

TEST(Counting, LoadsThatWaitTogetherAreOneRound) {
  // The assembler issues the loads together, wherever their results are used.
  EXPECT_EQ(rounds(R"(
  ld.global.u32 %r1, [%rd1];
  ld.global.u32 %r2, [%rd1+4];
  add.u32 %r5, %r1, %r2;
  ld.global.u32 %r3, [%rd1+8];
  add.u32 %r5, %r5, %r3;
  ld.global.u32 %r4, [%rd1+12];
  st.global.u32 [%rd1], %r5;
)"),
            1u);
  // The first load gives the address of the second.
  EXPECT_EQ(rounds(R"(
  ld.global.u32 %r1, [%rd1];
  cvt.u64.u32 %rd2, %r1;
  add.s64 %rd2, %rd2, %rd1;
  ld.global.u32 %r2, [%rd2];
  st.global.u32 [%rd1], %r2;
)"),
            2u);
  // A store lies between the loads. Loads of constant data may overtake it.
  EXPECT_EQ(rounds(R"(
  ld.global.u32 %r1, [%rd1];
  st.global.u32 [%rd1+8], %r1;
  ld.global.u32 %r2, [%rd1+4];
)"),
            2u);
  EXPECT_EQ(rounds(R"(
  ld.global.nc.u32 %r1, [%rd1];
  st.global.u32 [%rd1+8], %r1;
  ld.global.nc.u32 %r2, [%rd1+4];
)"),
            1u);
  // A barrier separates them.
  EXPECT_EQ(rounds(R"(
  ld.global.u32 %r1, [%rd1];
  bar.sync 0;
  ld.global.u32 %r2, [%rd1+4];
)"),
            2u);
}

// `if (i < n) v = x[i];`, repeated: the assembler guards the loads, and issues them together.
TEST(Counting, GuardedLoadsAreOneRound) {
  EXPECT_EQ(rounds(R"(
  mov.u32 %r7, 1;
  setp.lt.u32 %p1, %r7, 2;
  @!%p1 bra L1;
  ld.global.u32 %r1, [%rd1+4];
L1:
  @!%p1 bra L2;
  ld.global.u32 %r2, [%rd1+8];
L2:
  @!%p1 bra L3;
  ld.global.u32 %r3, [%rd1+12];
L3:
)"),
            1u);
  // The condition of the second load is a loaded value.
  EXPECT_EQ(rounds(R"(
  ld.global.u32 %r1, [%rd1];
  setp.lt.u32 %p1, %r1, 2;
  @!%p1 bra L1;
  ld.global.u32 %r2, [%rd1+4];
L1:
)"),
            2u);
}

// Each group has two copies. Two groups stay in flight while the program starts a third one.
TEST(Counting, GroupsOfAsynchronousCopiesAreInFlightTogether) {
  auto copies = [](const char* wait) {
    return std::string(".shared .align 16 .b8 s[64];\nmov.u32 %r1, s;\n") +
           "cp.async.ca.shared.global [%r1], [%rd1], 4;\n"
           "cp.async.ca.shared.global [%r1+4], [%rd1+4], 4;\ncp.async.commit_group;\n"
           "cp.async.ca.shared.global [%r1+8], [%rd1+8], 4;\n"
           "cp.async.ca.shared.global [%r1+12], [%rd1+12], 4;\ncp.async.commit_group;\n"
           "cp.async.ca.shared.global [%r1+16], [%rd1+16], 4;\n"
           "cp.async.ca.shared.global [%r1+20], [%rd1+20], 4;\ncp.async.commit_group;\n" +
           wait + "cp.async.wait_all;\n";
  };
  EXPECT_EQ(rounds(copies("")), 3u);
  EXPECT_EQ(rounds(copies("cp.async.wait_group 1;\n")), 2u);
  EXPECT_EQ(rounds(copies("cp.async.wait_group 2;\n")), 1u);
}

TEST(Counting, ASampleSeesWhatACtaReadsAgain) {
  // softmax.cu with rows of 64 Ki floats (256 KiB): L1 has evicted the row before it is read again.
  const uint64_t rows = 12, columns = 1 << 16;
  auto x = ramp(rows * columns);
  std::vector<float> y(rows * columns);
  Sim sim;
  sim.options.sample_ctas = 4, sim.options.sample_most = 4;
  auto r = sim.run(golden("softmax.ptx"), "softmax", rows, 256,
                   {sim.input("x", x), sim.output("y", y), arg(int(columns))});
  EXPECT_EQ(r.ctas_run, 4);
  EXPECT_EQ(r.counters.l1_hit_sectors, 0u);
  EXPECT_EQ(r.traffic.at(0).load_sectors, rows * 3 * columns / 8);
  EXPECT_EQ(r.traffic.at(0).reread_sectors, rows * 2 * columns / 8);
}

// A kernel in which CTA i executes its loop i % spread + 1 times, with one store per iteration.
Module uneven(int spread) {
  const std::string text = R"(
.version 8.0
.target sm_80
.address_size 64
.visible .entry uneven(.param .u64 y)
{
  .reg .pred %p<2>;
  .reg .b32 %r<6>;
  .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [y];
  cvta.to.global.u64 %rd2, %rd1;
  mov.u32 %r1, %ctaid.x;
  rem.u32 %r2, %r1, )" + std::to_string(spread) +
                           R"(;
  mov.u32 %r3, 0;
LOOP:
  st.global.u32 [%rd2], %r3;
  add.u32 %r3, %r3, 1;
  setp.le.u32 %p1, %r3, %r2;
  @%p1 bra LOOP;
  ret;
}
)";
  auto m = Module::parse(text);
  EXPECT_TRUE(m) << m.error().text();
  return std::move(*m);
}

LaunchReport sampled(int spread, int64_t grid, int64_t first, int64_t most, double error,
                     uint64_t seed = 1) {
  std::vector<float> y(64);
  Sim sim;
  sim.options.checks = Checks::none();  // all CTAs store to one place
  sim.options.sample_ctas = first, sim.options.sample_most = most;
  sim.options.sample_error = error, sim.options.sample_seed = seed;
  return sim.run(uneven(spread), "uneven", grid, 32, {sim.output("y", y)});
}

TEST(Sampling, AnEvenGridNeedsTheFirstBatchOnly) {
  auto r = sampled(1, 100'000, 8, 128, 0.02);
  EXPECT_EQ(r.ctas_run, 8);
  EXPECT_EQ(r.sample_error, 0);
  EXPECT_EQ(r.counters.global_store_sectors, 100'000u);
}

TEST(Sampling, AnUnevenGridGrowsTheSampleUntilItIsGoodEnough) {
  const double truth = 100'000 * 4.5;  // stores: as many CTAs make 1 as 2, ... 8
  int inside = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    auto r = sampled(8, 100'000, 8, 100'000, 0.05, seed);
    EXPECT_GT(r.ctas_run, 100);
    EXPECT_LE(r.sample_error, 0.05);
    EXPECT_GT(r.sample_error, 0);
    const double off = std::abs(double(r.counters.global_store_sectors) / truth - 1);
    inside += off <= r.sample_errors.at("sectors");
    EXPECT_LT(off, 0.15);
  }
  EXPECT_GE(inside, 16) << "the interval of 95% holds the truth";
}

TEST(Sampling, TheMostCtasAndTheBudgetEndIt) {
  auto few = sampled(8, 100'000, 8, 32, 0.001);
  EXPECT_EQ(few.ctas_run, 32);
  EXPECT_GT(few.sample_error, 0.001);
  std::vector<float> y(64);
  Sim sim;
  sim.options.checks = Checks::none();
  sim.options.sample_ctas = 8, sim.options.sample_most = 4096, sim.options.sample_error = 1e-6;
  sim.options.instruction_budget = 2000;  // about 25 instructions per CTA
  auto r = sim.run(uneven(8), "uneven", 100'000, 32, {sim.output("y", y)});
  EXPECT_GE(r.ctas_run, 16);
  EXPECT_LE(r.ctas_run, 100);
}

TEST(Sampling, TheEndsCountAsThemselves) {
  // relu with a tail: the last CTA has one float, and must not stand for other CTAs.
  const int n = 1024 * 64 + 1;
  auto x = ramp(size_t(n) + 3);
  std::vector<float> y(x.size());
  Sim sim;
  sim.options.sample_ctas = 8, sim.options.sample_most = 8;
  auto r = sim.run(golden("relu_cute.ptx"), "relu", 65, 256,
                   {sim.input("x", x), sim.output("y", y), arg(n)});
  EXPECT_EQ(r.ctas_run, 8);
  EXPECT_EQ(r.counters.global_load_sectors, 64u * 128 + 1);
}

TEST(Sampling, ASmallGridRunsWhole) {
  auto r = sampled(3, 9, 64, 64, 0.02);
  EXPECT_EQ(r.ctas_run, 9);
  EXPECT_EQ(r.counters.global_store_sectors, 3u * (1 + 2 + 3));
  auto grown = sampled(3, 9, 4, 64, -1);
  EXPECT_EQ(grown.ctas_run, 9);
  EXPECT_EQ(grown.sample_error, 0);
  EXPECT_EQ(grown.counters.global_store_sectors, 18u);
}

TEST(Sampling, EveryBatchSeesEachQuarterOfTheGrid) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    RunOptions options;
    options.sample_ctas = 6, options.sample_most = 6, options.sample_seed = seed;
    std::set<int64_t> quarters;
    for (int64_t cta : Sampler(100'000, options).next(100)) {
      EXPECT_LT(cta, 100'000);
      if (cta > 0 && cta < 99'999) quarters.insert((cta - 1) * 4 / 99'998);
    }
    EXPECT_EQ(quarters.size(), 4u) << seed;
  }
}

TEST(Sampling, TheSeedChoosesTheCtas) {
  auto sectors = [](uint64_t seed) {
    return sampled(8, 100'000, 8, 8, 0.02, seed).counters.global_store_sectors;
  };
  EXPECT_EQ(sectors(5), sectors(5));
  std::set<uint64_t> seen;
  for (uint64_t seed = 1; seed <= 10; ++seed) seen.insert(sectors(seed));
  EXPECT_GT(seen.size(), 3u);
}

}  // namespace
}  // namespace cutegen::ptx
