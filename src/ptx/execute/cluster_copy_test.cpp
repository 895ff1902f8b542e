// SPDX-License-Identifier: Apache-2.0
// mbarriers and copies between the CTAs of a cluster; races in distributed shared memory.
#include <numeric>

#include "ptx/testing/test_machine.h"

namespace cutegen::ptx {
namespace {

// Two CTAs of 64 threads. %i: the thread; %k: the rank; %o: the other rank; %z: whether it is
// thread 0; %y: whether it is thread 0 of rank 0; %v: 1 KB of shared memory, its word %i at %a; %b:
// an mbarrier for one arrival; %w, %c, %e: %v, %b and %a in the other CTA; %g: `in`; %out: word %i
// of the CTA's 64 words of `out`.
const char* const kClusterHead =
    ".version 8.4\n.target sm_90a\n.address_size 64\n"
    ".visible .entry t(.param .u64 in, .param .u64 out) {\n"
    ".shared .align 8 .b64 bars[4]; .shared .align 128 .b8 sm[1024];\n"
    ".reg .b64 %g, %out; .reg .b32 %i, %k, %o, %v, %a, %b, %w, %c, %e, %d, %r<8>; .reg .b16 %m;\n"
    ".reg .pred %p, %z, %y;\n"
    "mov.u32 %i, %tid.x; mov.u32 %k, %cluster_ctarank; xor.b32 %o, %k, 1; mov.u32 %b, bars;\n"
    "mov.u32 %v, sm; shl.b32 %a, %i, 2; add.u32 %a, %a, %v; setp.eq.u32 %z, %i, 0;\n"
    "or.b32 %r7, %i, %k; setp.eq.u32 %y, %r7, 0; mov.b16 %m, 3;\n"
    "mapa.shared::cluster.u32 %w, %v, %o; mapa.shared::cluster.u32 %c, %b, %o;\n"
    "mapa.shared::cluster.u32 %e, %a, %o;\n"
    "ld.param.u64 %g, [in]; ld.param.u64 %out, [out]; shl.b32 %r7, %k, 6; add.u32 %r7, %r7, %i;\n"
    "mad.wide.u32 %out, %r7, 4, %out;\n"
    "@%z mbarrier.init.shared::cta.b64 [%b], 1;\n@%z fence.mbarrier_init.release.cluster;\n";
const std::string kClusterSync =
    "barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;\n";
const std::string kExpect = "@%z mbarrier.arrive.expect_tx.shared::cta.b64 _, [%b], 256;\n";
const std::string kClusterWait =
    "W:\nmbarrier.try_wait.parity.shared::cta.b64 %p, [%b], 0;\n@!%p bra W;\n";
const std::string kRead = "ld.shared.u32 %d, [%a]; st.global.u32 [%out], %d;\n";
const std::string kMulticast =
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%v], "
    "[%g], 256, [%b], %m;\n";

struct ClusterOutcome {
  LaunchReport report;
  std::vector<uint32_t> in = std::vector<uint32_t>(256), out = std::vector<uint32_t>(128, 9);
};

ClusterOutcome run_cluster(const std::string& body, LaunchStatus status = LaunchStatus::ok,
                           Order order = Order::in_order) {
  ClusterOutcome o;
  std::iota(o.in.begin(), o.in.end(), 1000u);
  auto m = Module::parse(kClusterHead + body + "ret;\n}\n");
  if (!m) {
    ADD_FAILURE() << m.error().text();
    return o;
  }
  Sim sim;
  sim.options.threads = 1, sim.options.order = order;
  auto r = launch({}, sim.memory, *m, "t",
                  {.grid = {2, 1, 1}, .block = {64, 1, 1}, .cluster = {2, 1, 1}},
                  {sim.input("in", o.in), sim.output("out", o.out)}, sim.options);
  if (!r) {
    ADD_FAILURE() << r.error().text();
    return o;
  }
  EXPECT_EQ(r->status, status) << r->reason;
  o.report = *r;
  return o;
}

// Checks that each order gives a finding of this kind, and that its message contains `text`.
void found(const std::string& body, const std::string& kind, const std::string& text = "",
           Order order = Order::in_order) {
  const ClusterOutcome o = run_cluster(body, LaunchStatus::finding, order);
  const Finding f = o.report.finding.value_or(Finding{});
  EXPECT_EQ(f.kind, kind) << f.message;
  EXPECT_NE(f.message.find(text), std::string::npos) << f.message;
  EXPECT_GT(f.ptx_line, 0);
}

TEST(ClusterCopy, AnArrivalOfAnotherCtaEndsAPhase) {
  for (Order order : {Order::in_order, Order::reversed, Order::mixed}) {
    const ClusterOutcome o =
        run_cluster(kClusterSync +
                        "st.shared::cluster.u32 [%e], %i;\nbar.sync 0;\n"
                        "@%z mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%c];\n" +
                        kClusterWait + kRead + kClusterSync,
                    LaunchStatus::ok, order);
    for (uint32_t i = 0; i < 128; ++i) ASSERT_EQ(o.out[i], i % 64) << i;
  }
}

TEST(ClusterCopy, AMulticastReachesAllCtas) {
  for (Order order : {Order::in_order, Order::reversed, Order::mixed}) {
    const ClusterOutcome o = run_cluster(
        kExpect + kClusterSync + "@%y " + kMulticast + kClusterWait + kRead + kClusterSync,
        LaunchStatus::ok, order);
    for (uint32_t i = 0; i < 128; ++i) ASSERT_EQ(o.out[i], 1000 + i % 64) << i;
    EXPECT_EQ(o.report.counters.tma_load_requests, 1u);
  }
}

TEST(ClusterCopy, SharedMemoryGoesToAnotherCta) {
  const std::string copy =
      "mad.lo.u32 %d, %k, 100, %i; st.shared.u32 [%a+512], %d; fence.proxy.async.shared::cta;\n" +
      kExpect + kClusterSync +
      "@%z cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%w], [%v+512], "
      "256, [%c];\n" +
      kClusterWait + kRead;
  for (Order order : {Order::in_order, Order::reversed, Order::mixed}) {
    const ClusterOutcome o = run_cluster(copy + kClusterSync, LaunchStatus::ok, order);
    for (uint32_t i = 0; i < 128; ++i) ASSERT_EQ(o.out[i], (i < 64 ? 100 : 0) + i % 64) << i;
  }
  std::string plain = copy;
  plain.erase(plain.find("fence.proxy"), std::string("fence.proxy.async.shared::cta;").size());
  found(plain + kClusterSync, "missing_proxy_fence", "ordinary stores wrote");
}

TEST(ClusterCopy, AReductionIntoAnotherCta) {
  const ClusterOutcome o = run_cluster(
      "st.shared.u32 [%a], 5; st.shared.u32 [%a+512], %i; fence.proxy.async.shared::cta;\n" +
      kExpect + kClusterSync +
      "@%z cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u32 "
      "[%w], [%v+512], 256, [%c];\n" +
      kClusterWait + kRead + kClusterSync);
  for (uint32_t i = 0; i < 128; ++i) ASSERT_EQ(o.out[i], 5 + i % 64) << i;
}

TEST(ClusterCopy, StoresAndReductionsFromRegisters) {
  const std::string end = kClusterWait + kRead + kClusterSync;
  const std::string to = ".shared::cluster.mbarrier::complete_tx::bytes";
  ClusterOutcome o = run_cluster(kExpect + kClusterSync + "add.u32 %d, %i, 7;\nst.async" + to +
                                 ".u32 [%e], %d, [%c];\n" + end);
  for (uint32_t i = 0; i < 128; ++i) ASSERT_EQ(o.out[i], 7 + i % 64) << i;
  o = run_cluster("shl.b32 %r0, %i, 4; add.u32 %r0, %r0, %w; setp.lt.u32 %p, %i, 16;\n" + kExpect +
                  kClusterSync + "@%p st.async" + to + ".v4.b32 [%r0], {%i, 1, 2, 3}, [%c];\n" +
                  end);
  for (uint32_t i = 0; i < 128; ++i) ASSERT_EQ(o.out[i], i % 4 == 0 ? i % 64 / 4 : i % 4) << i;
  o = run_cluster("st.shared.u32 [%a], 40;\n" + kExpect + kClusterSync +
                  "red.async.relaxed.cluster" + to + ".max.u32 [%e], %i, [%c];\n" + end);
  for (uint32_t i = 0; i < 128; ++i) ASSERT_EQ(o.out[i], std::max(40u, i % 64)) << i;
}

TEST(ClusterCopy, RacesBetweenCtas) {
  const std::string write = "st.shared.u32 [%a], %i;\n",
                    read = "ld.shared::cluster.u32 %d, [%e];\n";
  run_cluster(write + kClusterSync + read + kClusterSync);
  found(write + read + kClusterSync, "shared_race", "of rank", Order::in_order);
  found(kClusterSync + "st.shared::cluster.u32 [%e], %i;\n" + kRead + kClusterSync, "shared_race");
  // The copy overwrites data that the other CTA still reads.
  const std::string again = kExpect + kClusterSync + "@%y " + kMulticast + kClusterWait + kRead;
  found(again + "bar.sync 0;\n" + kExpect + "@%y " + kMulticast + kClusterSync, "shared_race",
        "rank 1");
}

TEST(ClusterCopy, ACtaEndsTooEarly) {
  const std::string read =
      "st.shared.u32 [%a], %i;\n" + kClusterSync + "ld.shared::cluster.u32 %d, [%e];\n";
  for (Order order : {Order::in_order, Order::reversed}) found(read, "exited_cta", "", order);
  found(kExpect + kClusterSync + "@%y " + kMulticast + "setp.eq.u32 %p, %k, 1; @%p bra END;\n" +
            kClusterWait + "END:\n",
        "async_copy_pending", "the CTA ends");
}

TEST(ClusterCopy, Misuse) {
  const std::string arrive = "@%z mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%c];\n";
  found(kClusterSync + "@%z mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%c], 2;\n" +
            kClusterSync,
        "bad_mbarrier", "of rank 1: more arrivals");
  found(arrive + kClusterSync, "bad_mbarrier", "of rank 1: it is not initialised");
  found(kClusterSync +
            "cvt.u64.u32 %g, %c; cvta.shared.u64 %g, %g;\n"
            "mbarrier.test_wait.parity.b64 %p, [%g], 0;\n" +
            kClusterSync,
        "bad_mbarrier", "may come from another CTA");
  found(kClusterSync + "mov.b16 %m, 4;\n@%y " + kMulticast + kClusterSync, "bad_bulk_copy", "0x4");
  found(kClusterSync + "mov.b16 %m, 0;\n@%y " + kMulticast + kClusterSync, "bad_bulk_copy", "0x0");
  found(kClusterSync +
            "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%e], %i, [%b];\n" +
            kClusterSync,
        "bad_bulk_copy", "both must lie in one CTA");
  found(kClusterSync +
            "add.u32 %e, %e, 2;\n"
            "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%e], %i, [%c];\n" +
            kClusterSync,
        "misaligned");
  found(kClusterSync + kClusterWait + kClusterSync, "deadlock", "lacks 1 of 1 arrivals");
  for (const char* text :
       {"st.async.shared::cluster.mbarrier::complete_tx::bytes.u16 [%e], %m, [%c];\n",
        "red.async.shared::cluster.mbarrier::complete_tx::bytes.add.f32 [%e], %i, [%c];\n"}) {
    const ClusterOutcome o = run_cluster(text + kClusterSync, LaunchStatus::unsupported);
    EXPECT_NE(o.report.reason.find(".async.shared::cluster"), std::string::npos);
  }
}

}  // namespace
}  // namespace cutegen::ptx
