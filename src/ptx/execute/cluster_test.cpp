// SPDX-License-Identifier: Apache-2.0
// Clusters: ranks, barriers, shared memory of other CTAs, refusals and findings.
#include <numeric>

#include "ptx/testing/test_machine.h"

namespace cutegen::ptx {
namespace {

class Cluster : public testing::Test {
 protected:
  static Module kernel(const std::string& body, const std::string& directives = "") {
    auto m = Module::parse(
        ".version 9.0\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 out)\n" +
        directives +
        "\n{\n.reg .b32 %r<32>; .reg .b64 %rd<16>; .reg .pred %p<8>;\n"
        ".shared .align 16 .b8 s[1024];\n"
        "ld.param.u64 %rd0, [out]; mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mov.u32 %r2, "
        "%ntid.x;\nmad.lo.u32 %r3, %r1, %r2, %r0; mul.wide.u32 %rd1, %r3, 4; add.s64 %rd1, %rd0, "
        "%rd1;\nmov.u32 %r4, s; mov.u32 %r5, %cluster_ctarank; mov.u32 %r6, %cluster_nctarank;\n"
        "add.u32 %r7, %r5, 1; rem.u32 %r7, %r7, %r6; setp.eq.u32 %p0, %r0, 0;\n" +
        body + "\nret;\n}\n");
    if (!m) ADD_FAILURE() << m.error().text();
    return std::move(*m);
  }
  Result<LaunchReport> start(const Module& m, std::array<int64_t, 3> grid, int64_t block,
                             std::array<int64_t, 3> cluster) {
    out.assign(4096, ~0u);
    Sim sim;
    sim.options = options;
    const Bytes8 p = sim.output("out", out);
    return launch({}, sim.memory, m, "k",
                  {.grid = grid, .block = {block, 1, 1}, .cluster = cluster}, {p}, sim.options);
  }
  LaunchReport run(const std::string& body, std::array<int64_t, 3> grid, int64_t block,
                   std::array<int64_t, 3> cluster, LaunchStatus status = LaunchStatus::ok) {
    auto r = start(kernel(body), grid, block, cluster);
    if (!r) {
      ADD_FAILURE() << r.error().text();
      return {};
    }
    EXPECT_EQ(r->status, status) << r->reason;
    return *r;
  }
  Finding found(const std::string& body, const char* kind) {
    const auto r = run(body, {4, 1, 1}, 64, {4, 1, 1}, LaunchStatus::finding);
    if (!r.finding) return {};
    EXPECT_EQ(r.finding->kind, kind) << r.finding->message;
    return *r.finding;
  }
  std::vector<uint32_t> out;
  RunOptions options{.threads = 2};
};

const std::string kSync =
    "barrier.cluster.arrive.release.aligned;\n"
    "barrier.cluster.wait.acquire.aligned;\n";
// Each CTA writes its rank and reads its neighbour's.
const std::string kStore =
    "mad.lo.u32 %r8, %r1, 10, %r0; shl.b32 %r9, %r0, 2; add.u32 %r9, %r9, "
    "%r4;\nst.shared.u32 [%r9], %r8;\n";
const std::string kLoad =
    "mapa.shared::cluster.u32 %r10, %r9, %r7;\n"
    "ld.shared::cluster.u32 %r11, [%r10]; st.global.u32 [%rd1], %r11;\n";

TEST_F(Cluster, ReadsItsNeighbours) {
  for (Order order : {Order::in_order, Order::reversed, Order::mixed}) {
    options.order = order;
    const auto r = run(kStore + kSync + kLoad + kSync, {8, 1, 1}, 64, {4, 1, 1});
    for (uint32_t cta = 0; cta < 8; ++cta) {
      const uint32_t next = cta / 4 * 4 + (cta + 1) % 4;
      for (uint32_t t = 0; t < 64; ++t) ASSERT_EQ(out[cta * 64 + t], next * 10 + t) << cta;
    }
    EXPECT_EQ(r.counters.cluster_requests, 8u * 2);
    EXPECT_EQ(r.counters.cluster_bytes, 8u * 64 * 4);
  }
}

TEST_F(Cluster, GenericAddressesAndAtomics) {
  run("@%p0 st.shared.u32 [%r4], 0;\n" + kSync +
          "cvt.u64.u32 %rd2, %r4; cvta.shared.u64 %rd2, %rd2; mov.u32 %r12, 0;\n"
          "mapa.u64 %rd3, %rd2, %r12; atom.add.u32 %r13, [%rd3], 1;\n"
          "mapa.shared::cluster.u32 %r14, %r4, %r12; red.shared::cluster.add.u32 [%r14], 2;\n" +
          kSync + "ld.u32 %r15, [%rd3]; st.global.u32 [%rd1], %r15;\n" + kSync,
      {4, 1, 1}, 32, {2, 1, 1});
  for (size_t i = 0; i < 128; ++i) ASSERT_EQ(out[i], 2u * 32 * 3) << i;
}

TEST_F(Cluster, StoresIntoAnotherCta) {
  run("shl.b32 %r9, %r0, 2; add.u32 %r9, %r9, %r4;\n" + kSync +
          "mapa.shared::cluster.u32 %r10, %r9, %r7; st.shared::cluster.u32 [%r10], %r3;\n" + kSync +
          "ld.shared.u32 %r11, [%r9]; st.global.u32 [%rd1], %r11;\n"
          "getctarank.shared::cluster.u32 %r12, %r10; setp.ne.u32 %p1, %r12, %r7;\n@%p1 trap;\n",
      {2, 1, 1}, 64, {2, 1, 1});
  for (uint32_t t = 0; t < 64; ++t) {
    EXPECT_EQ(out[t], 64 + t);
    EXPECT_EQ(out[64 + t], t);
  }
}

TEST_F(Cluster, RanksAndSizes) {
  const char* names[] = {"%cluster_ctaid.x",  "%cluster_ctaid.y", "%cluster_ctaid.z",
                         "%clusterid.x",      "%clusterid.y",     "%clusterid.z",
                         "%cluster_nctaid.y", "%nclusterid.x",    "%nclusterid.z",
                         "%cluster_ctarank",  "%cluster_nctarank"};
  std::string body =
      "mov.u32 %r8, %nctaid.x; mov.u32 %r9, %ctaid.y; mad.lo.u32 %r10, %r9, %r8, %r1;\n"
      "mov.u32 %r11, %nctaid.y; mov.u32 %r12, %ctaid.z; mul.lo.u32 %r13, %r12, %r11;\n"
      "mad.lo.u32 %r10, %r13, %r8, %r10; mul.wide.u32 %rd2, %r10, 64; add.s64 %rd2, %rd0, %rd2;\n";
  for (size_t i = 0; i < std::size(names); ++i)
    body += std::string("mov.u32 %r14, ") + names[i] + "; @%p0 st.global.u32 [%rd2+" +
            std::to_string(4 * i) + "], %r14;\n";
  run(body, {4, 6, 2}, 32, {2, 3, 1});
  for (uint32_t z = 0; z < 2; ++z) {
    for (uint32_t y = 0; y < 6; ++y) {
      for (uint32_t x = 0; x < 4; ++x) {
        const uint32_t want[] = {x % 2, y % 3, 0, x / 2, y / 3, z, 3, 2, 2, x % 2 + 2 * (y % 3), 6};
        for (size_t i = 0; i < std::size(want); ++i)
          ASSERT_EQ(out[(x + 4 * (y + 6 * z)) * 16 + i], want[i]) << names[i] << x << y << z;
      }
    }
  }
}

TEST_F(Cluster, AKernelMayAskWhetherItHasAClusterSize) {
  const std::string body =
      "mov.pred %p1, %is_explicit_cluster; selp.u32 %r8, 7, 5, %p1; @%p0 st.global.u32 [%rd0], "
      "%r8;";
  run(body, {2, 1, 1}, 32, {2, 1, 1});
  EXPECT_EQ(out[0], 7u);
  run(body, {1, 1, 1}, 32, {1, 1, 1});
  EXPECT_EQ(out[0], 5u);
}

TEST_F(Cluster, TheKernelMayNameItsCluster) {
  const Module m = kernel(kStore + kSync + kLoad + kSync, ".reqnctapercluster 4, 1, 1");
  auto r = start(m, {8, 1, 1}, 32, {1, 1, 1});
  ASSERT_TRUE(r.has_value()) << r.error().text();
  EXPECT_EQ(r->status, LaunchStatus::ok) << r->reason;
  EXPECT_EQ(out[0], 10u);
  r = start(m, {8, 1, 1}, 32, {2, 1, 1});
  ASSERT_FALSE(r.has_value());
  EXPECT_NE(r.error().text().find("the kernel requires 4"), std::string::npos);
}

TEST_F(Cluster, WithoutOneEveryCtaIsItsOwn) {
  run(kSync + "st.global.u32 [%rd1], %r6;\n", {3, 1, 1}, 32, {1, 1, 1});
  EXPECT_EQ(out[64], 1u);
}

TEST_F(Cluster, BadShapesAreRefused) {
  const Module m = kernel("");
  auto r = start(m, {6, 1, 1}, 32, {4, 1, 1});
  ASSERT_FALSE(r.has_value());
  EXPECT_NE(r.error().text().find("divide grid.x, which is 6"), std::string::npos);
  r = start(m, {32, 1, 1}, 32, {32, 1, 1});
  ASSERT_FALSE(r.has_value());
  r = start(m, {8, 4, 1}, 32, {8, 4, 1});
  ASSERT_FALSE(r.has_value());
  EXPECT_NE(r.error().text().find("a cluster of 32 CTAs"), std::string::npos);
  r = start(m, {16, 1, 1}, 32, {16, 1, 1});
  EXPECT_TRUE(r.has_value());
}

TEST_F(Cluster, AnExitBeforeOthersRead) {
  Finding f = found(kStore + kSync + "setp.eq.u32 %p1, %r5, 1;\n@%p1 exit;\n" +
                        "mov.u32 %r20, 0;\nL: add.u32 %r20, %r20, 1; setp.lt.u32 %p2, %r20, "
                        "100000;\n@%p2 bra L;\n" +
                        kLoad,
                    "exited_cta");
  EXPECT_NE(f.message.find("shared memory of rank 1, which has ended"), std::string::npos)
      << f.message;
}

TEST_F(Cluster, MisusedBarriers) {
  Finding f = found("barrier.cluster.wait.acquire.aligned;", "bad_barrier");
  EXPECT_NE(f.message.find("without an earlier barrier.cluster.arrive"), std::string::npos)
      << f.message;
  f = found("barrier.cluster.arrive.aligned;\nbarrier.cluster.arrive.aligned;\n", "bad_barrier");
  EXPECT_NE(f.message.find("twice with no barrier.cluster.wait in between"), std::string::npos)
      << f.message;
  f = found("setp.ne.u32 %p1, %r5, 2;\n@%p1 bra GO;\nbar.sync 1, 96;\nGO: " + kSync, "deadlock");
  EXPECT_FALSE(f.message.empty());
  found("setp.lt.u32 %p1, %r0, 7;\n@%p1 bra A;\n" + kSync + "bra B;\nA: " + kSync + "B: ",
        "divergent_barrier");
}

TEST_F(Cluster, ThreadsThatHaveExitedNeedNotArrive) {
  run("setp.eq.u32 %p1, %r5, 0;\n@%p1 exit;\n" + kSync + "st.global.u32 [%rd1], %r5;\n", {4, 1, 1},
      64, {4, 1, 1});
  EXPECT_EQ(out[64], 1u);
}

TEST_F(Cluster, BadRanksAndOffsets) {
  found(kStore + "mov.u32 %r7, 4;\n" + kLoad, "bad_cluster_rank");
  Finding f = found(kStore + kSync + "add.u32 %r9, %r4, 4096;\n" + kLoad, "out_of_bounds");
  EXPECT_NE(f.message.find("the cluster has 4 CTAs with 1024 bytes each"), std::string::npos)
      << f.message;
}

TEST_F(Cluster, SharedMemoryOfTheOwnCtaStaysChecked) {
  found(
      "xor.b32 %r8, %r0, 32; shl.b32 %r9, %r8, 2; add.u32 %r9, %r9, %r4; shl.b32 %r10, %r0, 2;\n"
      "add.u32 %r10, %r10, %r4; st.shared.u32 [%r10], %r0; ld.shared.u32 %r11, [%r9];\n"
      "st.global.u32 [%rd1], %r11;\n" +
          kSync,
      "shared_race");
  run("xor.b32 %r8, %r0, 32; shl.b32 %r9, %r8, 2; add.u32 %r9, %r9, %r4; shl.b32 %r10, %r0, 2;\n"
      "add.u32 %r10, %r10, %r4; st.shared.u32 [%r10], %r0;\n" +
          kSync + "ld.shared.u32 %r11, [%r9]; st.global.u32 [%rd1], %r11;\n",
      {2, 1, 1}, 64, {2, 1, 1});
}

TEST_F(Cluster, ASampleHasWholeClusters) {
  options = {.threads = 1, .sample_ctas = 4, .sample_most = 8};
  const auto r = run(kStore + kSync + kLoad + kSync, {64, 1, 1}, 32, {4, 1, 1});
  EXPECT_EQ(r.ctas_run % 4, 0);
  EXPECT_LT(r.ctas_run, 64);
  EXPECT_EQ(r.counters.cluster_requests, 64u);
}

// --- setmaxnreg

LaunchReport warpgroups(const std::string& body, const std::string& directives, int64_t threads,
                        LaunchStatus status) {
  auto m = Module::parse(".version 9.0\n.target sm_90a\n.address_size 64\n.visible .entry k()\n" +
                         directives +
                         "\n{\n.reg .b32 %r<8>; .reg .pred %p<4>;\n"
                         "mov.u32 %r0, %tid.x; setp.lt.u32 %p0, %r0, 128;\n" +
                         body + "\nret;\n}\n");
  if (!m) {
    ADD_FAILURE() << m.error().text();
    return {};
  }
  Sim sim;
  return sim.run(*m, "k", 1, threads, {}, 0, status);
}
const std::string kRoles =
    "@%p0 bra P;\nsetmaxnreg.inc.sync.aligned.u32 232;\nbra E;\n"
    "P: setmaxnreg.dec.sync.aligned.u32 40;\nE:\n";

TEST(SetMaxRegisters, ConsumersTakeWhatProducersRelease) {
  warpgroups(kRoles, "", 384, LaunchStatus::ok);
  auto r = warpgroups(kRoles, ".maxnreg 128", 384, LaunchStatus::finding);
  ASSERT_TRUE(r.finding.has_value());
  EXPECT_EQ(r.finding->kind, "deadlock");
  EXPECT_NE(r.finding->message.find("free registers"), std::string::npos) << r.finding->message;
}

TEST(SetMaxRegisters, TheWholeWarpgroupExecutesIt) {
  auto r = warpgroups("setp.lt.u32 %p1, %r0, 32;\n@%p1 setmaxnreg.dec.sync.aligned.u32 40;\n", "",
                      128, LaunchStatus::finding);
  ASSERT_TRUE(r.finding.has_value());
  EXPECT_EQ(r.finding->kind, "divergent_warpgroup") << r.finding->message;
}

TEST(SetMaxRegisters, BadNumbersAreRefused) {
  for (const char* n : {"20", "36", "264", "%r0"}) {
    auto m = Module::parse(
        ".version 9.0\n.target sm_90a\n.address_size 64\n.visible .entry k()\n{\n"
        ".reg .b32 %r<2>;\nsetmaxnreg.inc.sync.aligned.u32 " +
        std::string(n) + ";\nret;\n}\n");
    ASSERT_FALSE(m.has_value()) << n;
    EXPECT_NE(m.error().text().find("a multiple of 8 from 24 to 256"), std::string::npos);
  }
}

}  // namespace
}  // namespace cutegen::ptx
