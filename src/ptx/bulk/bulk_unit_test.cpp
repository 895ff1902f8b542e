// SPDX-License-Identifier: Apache-2.0
// cp.async.bulk and cp.reduce.async.bulk: bytes arrive when a warp waits at the mbarrier or for the
// group.
#include <numeric>

#include "ptx/testing/test_machine.h"

namespace cutegen::ptx {
namespace {

// %i: the thread; %z: whether it is thread 0; %b: an mbarrier for one arrival; %v: 4 KB of shared
// memory, its word %i at %a; %g: `in`; %h: `out`, its word %i at %o.
Module bulk_kernel(const std::string& body) {
  auto m = Module::parse(
      ".version 8.4\n.target sm_90a\n.address_size 64\n"
      ".visible .entry t(.param .u64 in, .param .u64 out) {\n"
      ".shared .align 8 .b64 bars[4]; .shared .align 128 .b8 sm[4096];\n"
      ".reg .b64 %o, %g, %h; .reg .b32 %i, %b, %v, %a, %d, %r<4>; .reg .pred %p, %q, %z;\n"
      "mov.u32 %i, %tid.x; mov.u32 %b, bars; mov.u32 %v, sm; shl.b32 %a, %i, 2; add.u32 %a, %a, "
      "%v;\n"
      "ld.param.u64 %g, [in]; ld.param.u64 %h, [out]; mad.wide.u32 %o, %i, 4, %h;\n"
      "setp.eq.u32 %z, %i, 0; mov.u32 %d, 7;\n"
      "@%z mbarrier.init.shared::cta.b64 [%b], 1;\nfence.mbarrier_init.release.cluster;\n"
      "bar.sync 0;\n" +
      body + "\nret;\n}\n");
  if (!m) ADD_FAILURE() << m.error().text();
  return std::move(*m);
}

struct BulkOutcome {
  LaunchReport report;
  std::vector<uint32_t> in, out;
};
BulkOutcome run_bulk(const std::string& body, LaunchStatus status = LaunchStatus::ok,
                     Order order = Order::in_order, Content content = Content::given) {
  BulkOutcome o;
  o.in.resize(1024), o.out.resize(1024);
  std::iota(o.in.begin(), o.in.end(), 1000u);
  std::iota(o.out.begin(), o.out.end(), 0u);
  Sim sim;
  sim.options.order = order;
  std::vector<Bytes8> args{sim.input("in", o.in),
                           arg(sim.memory.add("out", std::as_writable_bytes(std::span(o.out)),
                                              Access::read_write, content))};
  o.report = sim.run(bulk_kernel(body), "t", 1, 64, args, 0, status);
  return o;
}
Finding bulk_finding(const std::string& body, const std::string& kind, Content c = Content::given,
                     Order order = Order::in_order) {
  const BulkOutcome o = run_bulk(body, LaunchStatus::finding, order, c);
  const Finding f = o.report.finding.value_or(Finding{});
  EXPECT_EQ(f.kind, kind) << f.message;
  return f;
}

const std::string expect = "@%z mbarrier.arrive.expect_tx.shared::cta.b64 _, [%b], 256;\n";
const std::string load =
    "@%z cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%v], [%g+64], 256, "
    "[%b];\n";
const std::string wait_phase =
    "W:\nmbarrier.try_wait.parity.shared::cta.b64 %p, [%b], 0;\n@!%p bra W;\n";
const std::string read = "ld.shared.u32 %d, [%a]; st.global.u32 [%o], %d;\n";

TEST(BulkLoad, ArrivesAtItsMbarrierInEveryOrder) {
  for (Order order : {Order::in_order, Order::reversed, Order::mixed}) {
    const BulkOutcome o = run_bulk(expect + load + wait_phase + read, LaunchStatus::ok, order);
    for (size_t i = 0; i < 64; ++i) EXPECT_EQ(o.out[i], 1016 + i);
    EXPECT_EQ(o.report.counters.tma_load_requests, 1u);
    EXPECT_EQ(o.report.counters.tma_load_bytes, 256u);
    EXPECT_EQ(o.report.counters.tma_load_sectors, 8u);
    EXPECT_EQ(o.report.traffic.at(0).load_sectors, 8u);
  }
}

TEST(BulkLoad, SignalsAnMbarrierThatAFenceOfItsWarpMadeVisible) {
  auto with = [](const std::string& fences) {
    return "add.u32 %r1, %b, 8;\n@%z mbarrier.init.shared::cta.b64 [%r1], 1;\n" + fences +
           "bar.sync 0;\n@%z mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 256;\n"
           "@%z cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%v], [%g+64], "
           "256, [%r1];\n"
           "W:\nmbarrier.try_wait.parity.shared::cta.b64 %p, [%r1], 0;\n@!%p bra W;\n" +
           read;
  };
  for (const char* fence : {"fence.mbarrier_init.release.cluster;\n", "fence.proxy.async;\n",
                            "fence.proxy.async.shared::cta;\n"})
    EXPECT_EQ(run_bulk(with(fence)).out[0], 1016u);
  const std::string other_warp = "setp.ge.u32 %q, %i, 32;\n@%q fence.proxy.async;\n";
  for (const std::string& fence :
       {std::string(), other_warp, std::string("fence.proxy.async.global;\n")}) {
    const Finding f = bulk_finding(with(fence), "missing_proxy_fence");
    EXPECT_EQ(f.address, 8u);
    EXPECT_EQ(f.thread, 0);
  }
}

TEST(BulkLoad, TheSharedCtaSpellingWithAPolicyAndTheExpectationAfterIt) {
  const BulkOutcome o = run_bulk(
      ".reg .b64 %c;\ncreatepolicy.fractional.L2::evict_first.b64 %c, 1.0;\n"
      "@%z cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.L2::cache_hint [%v], "
      "[%g+64], 256, [%b], %c;\n" +
      expect + wait_phase + read);
  EXPECT_EQ(o.out[63], 1016u + 63);
}

TEST(BulkLoad, AReadBeforeTheWaitIsAFinding) {
  for (Order order : {Order::in_order, Order::reversed}) {
    const Finding f = bulk_finding(expect + load + "bar.sync 0;\n" + read + wait_phase,
                                   "async_copy_pending", Content::given, order);
    EXPECT_NE(f.instruction.find("ld.shared"), std::string::npos);
    EXPECT_NE(f.message.find("cp.async.bulk"), std::string::npos) << f.message;
    EXPECT_NE(f.message.find("wait for its mbarrier first"), std::string::npos) << f.message;
  }
}

TEST(BulkLoad, AWaitOfAnotherWarpOrdersNothing) {  // warp 1 reads without a wait
  bulk_finding(expect + load + "setp.ge.u32 %q, %i, 32; @%q bra R;\n" + wait_phase +
                   "R:\n@%q nanosleep.u32 0;\n" + "setp.lt.u32 %q, %i, 32; @%q bra E;\n" + read +
                   "E:\n",
               "async_copy_pending", Content::given, Order::reversed);
}

TEST(BulkLoad, AWaitOfAnotherWarpAndABarrierOrder) {
  const BulkOutcome o = run_bulk(expect + load + "setp.ge.u32 %q, %i, 32; @%q bra R;\n" +
                                 wait_phase + "R:\nbar.sync 0;\n" + read);
  EXPECT_EQ(o.out[40], 1016u + 40);
}

TEST(BulkLoad, AStageThatAnotherWarpStillReadsIsARace) {
  bulk_finding(
      "st.shared.u32 [%a], %i; bar.sync 0; ld.shared.u32 %d, [%a];\n" + expect + load + wait_phase,
      "shared_race", Content::given, Order::reversed);
}

TEST(BulkLoad, IsNotWaitedForAtTheEnd) {
  const Finding f = bulk_finding(expect + load, "async_copy_pending");
  EXPECT_NE(f.message.find("the CTA ends"), std::string::npos) << f.message;
}

TEST(BulkLoad, FewerBytesThanExpectedAreADeadlock) {
  std::string text = expect + load + wait_phase;
  text.replace(text.find("[%b], 256"), 9, "[%b], 512");
  const Finding f = bulk_finding(text, "deadlock");
  EXPECT_NE(f.message.find("lacks 0 of 1 arrivals and 256 bytes"), std::string::npos) << f.message;
}

const std::string fill = "st.shared.u32 [%a], %i;\n";
const std::string fence = "fence.proxy.async.shared::cta;\n";
const std::string store =
    "bar.sync 0;\n@%z cp.async.bulk.global.shared::cta.bulk_group [%h+1024], [%v], 256;\n"
    "@%z cp.async.bulk.commit_group;\n";
const std::string wait_read = "@%z cp.async.bulk.wait_group.read 0;\n";

TEST(BulkStore, WritesAtTheWaitOrAtTheEnd) {
  for (const std::string& end :
       {std::string("@%z cp.async.bulk.wait_group 0;\n"), wait_read, std::string()}) {
    const BulkOutcome o = run_bulk(fill + fence + store + end);
    for (size_t i = 0; i < 64; ++i) EXPECT_EQ(o.out[256 + i], i);
    EXPECT_EQ(o.report.counters.tma_store_bytes, 256u);
  }
}

TEST(BulkStore, TheProxyFenceMayStandOnEitherSideOfTheBarrier) {
  const BulkOutcome o = run_bulk(fill + "bar.sync 0;\n" + fence + store + wait_read);
  EXPECT_EQ(o.out[256 + 63], 63u);
  EXPECT_EQ(bulk_finding(fill + store + wait_read, "missing_proxy_fence").thread, 0);
  bulk_finding(fence + fill + store + wait_read, "missing_proxy_fence");
}

TEST(BulkStore, ItsSourceMustStayUntilItIsRead) {
  const Finding f =
      bulk_finding(fill + fence + store + "bar.sync 0;\n" + fill + wait_read, "async_copy_pending");
  EXPECT_NE(f.message.find("still reads: wait for its group first"), std::string::npos)
      << f.message;
  EXPECT_EQ(run_bulk(fill + fence + store + wait_read + "bar.sync 0;\n" + fill).out[300], 44u);
  bulk_finding(fill + fence + store + wait_read + "st.shared.u32 [%a], %d;\n", "shared_race");
}

TEST(BulkStore, GroupsCompleteInOrder) {  // the second may still be reading
  const std::string two =
      fill + fence + store +
      "@%z cp.async.bulk.global.shared::cta.bulk_group [%h+2048], [%v+128], 128;\n"
      "@%z cp.async.bulk.commit_group;\n@%z cp.async.bulk.wait_group.read ";
  EXPECT_EQ(
      run_bulk(two + "1;\nbar.sync 0;\nsetp.lt.u32 %q, %i, 32;\n@%q st.shared.u32 [%a], %d;\n")
          .out[512],
      32u);
  bulk_finding(two + "1;\nbar.sync 0;\nst.shared.u32 [%a], %d;\n", "async_copy_pending");
  run_bulk(two + "0;\nbar.sync 0;\nst.shared.u32 [%a], %d;\n");
}

TEST(BulkStore, UnwrittenSharedMemoryMustNotReachAnOutput) {
  const Finding f = bulk_finding(store + wait_read, "uninitialised", Content::output);
  EXPECT_NE(f.message.find("out"), std::string::npos);
}

struct Reduction {
  const char *form, *value;
  uint32_t old, expected;
};
TEST(BulkReduce, CombinesWithWhatIsThere) {
  const Reduction all[] = {{"add.u32", "5", 300, 305},
                           {"add.s32", "-7", 300, 293},
                           {"min.s32", "-7", 300, 0xfffffff9},
                           {"max.u32", "-7", 300, 0xfffffff9},
                           {"inc.u32", "300", 300, 0},
                           {"dec.u32", "299", 300, 299},
                           {"and.b32", "256", 300, 256},
                           {"or.b32", "3", 300, 303},
                           {"xor.b32", "255", 300, 467},
                           {"add.u64", "1", 300, 301},
                           {"add.f32", "0x3f800000", 300, 0x3f800000}};
  for (const Reduction& r : all) {
    const BulkOutcome o =
        run_bulk("mov.u32 %r0, " + std::string(r.value) + "; st.shared.u32 [%a], %r0;\n" + fence +
                 "bar.sync 0;\n@%z cp.reduce.async.bulk.global.shared::cta.bulk_group." + r.form +
                 " [%h+1024], [%v], 256;\n@%z cp.async.bulk.commit_group;\n" + wait_read);
    EXPECT_EQ(o.out[300], r.expected) << r.form;
    EXPECT_EQ(o.out[320], 320u);
  }
}

TEST(BulkPrefetch, ReadsNothingButMustBeInABuffer) {
  const BulkOutcome o = run_bulk("@%z cp.async.bulk.prefetch.L2.global [%g], 4096;\n");
  EXPECT_EQ(o.report.counters.tma_load_bytes, 4096u);
  bulk_finding("@%z cp.async.bulk.prefetch.L2.global [%g], 4112;\n", "out_of_bounds");
}

struct BulkMisuse {
  const char *name, *body, *kind, *says;
};
class BulkMisused : public testing::TestWithParam<BulkMisuse> {};
TEST_P(BulkMisused, IsFound) {
  const Finding f = bulk_finding(GetParam().body, GetParam().kind);
  EXPECT_NE(f.message.find(GetParam().says), std::string::npos) << f.message;
}
#define LOAD(to, from, n, bar)                                                                     \
  "@%z cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [" to "], [" from "], " n \
  ", [" bar "];\n"
#define STORE(to, from, n) \
  "@%z cp.async.bulk.global.shared::cta.bulk_group [" to "], [" from "], " n ";\n"
INSTANTIATE_TEST_SUITE_P(
    Bulk, BulkMisused,
    testing::Values(
        BulkMisuse{"Size", LOAD("%v", "%g", "24", "%b"), "bad_bulk_copy", "multiple of 16"},
        BulkMisuse{"Global", LOAD("%v", "%g+8", "32", "%b"), "misaligned", "global address"},
        BulkMisuse{"Shared", LOAD("%v+8", "%g", "32", "%b"), "misaligned", "shared memory"},
        BulkMisuse{"BeyondTheBuffer", LOAD("%v", "%g+4080", "32", "%b"), "out_of_bounds",
                   "offset 4080 of in, which has 4096 bytes"},
        BulkMisuse{"BeyondShared", LOAD("%v+4080", "%g", "32", "%b"), "out_of_bounds",
                   "of shared memory"},
        BulkMisuse{"NoMbarrier", LOAD("%v", "%g", "32", "%b+8"), "bad_mbarrier", "not initialised"},
        BulkMisuse{"ReadOnly", "st.shared.u32 [%a], %i;\n" STORE("%g", "%v", "32"), "read_only",
                   "in, which is read-only"},
        BulkMisuse{"OverAnMbarrier", LOAD("%b", "%g", "32", "%b"), "bad_mbarrier",
                   "is an mbarrier"},
        BulkMisuse{"TwoCopies", LOAD("%v", "%g", "32", "%b") LOAD("%v+16", "%g", "32", "%b"),
                   "async_copy_pending", "has not written yet"}),
    [](const auto& test) { return std::string(test.param.name); });
#undef LOAD
#undef STORE

// Word i of `out` is i: the pair (i, 0). 0x4000c000 is the pair (-2, 2) in f16 and bf16.
TEST(Bulk, HalvesKeepTheirExtremes) {
  for (const char* type : {"f16", "bf16"}) {
    for (const bool least : {true, false}) {
      const std::string op = std::string(least ? ".min." : ".max.") + type;
      const BulkOutcome o = run_bulk(
          "mov.u32 %d, 0x4000c000; st.shared.u32 [%a], %d; "
          "fence.proxy.async.shared::cta;\nbar.sync "
          "0;\n@%z cp.reduce.async.bulk.global.shared::cta.bulk_group" +
          op +
          " [%h], [%v], 256;\n@%z cp.async.bulk.commit_group;\n@%z cp.async.bulk.wait_group 0;\n");
      for (uint32_t i = 0; i < 64; ++i)
        ASSERT_EQ(o.out[i], least ? 0xc000u : 0x40000000u | i) << op << i;
    }
  }
}

TEST(Bulk, AProxyFenceForGlobalMemory) {
  const std::string
      store = "st.global.u32 [%o], 5;\n",
      copy = expect +
             "@%z cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%v], [%h], "
             "256, [%b];\n" +
             wait_phase;
  for (const char* wrong : {"bar.sync 0;\n", "fence.proxy.async.shared::cta;\nbar.sync 0;\n"}) {
    const Finding f = bulk_finding(store + wrong + copy, "missing_proxy_fence");
    EXPECT_NE(f.message.find("ordinary store at"), std::string::npos) << f.message;
    EXPECT_EQ(f.buffer, "out");
  }
  for (const char* fence : {"fence.proxy.async", "fence.proxy.async.global"}) {
    const BulkOutcome o = run_bulk(store + fence + ";\nbar.sync 0;\n" + copy +
                                   "ld.shared.u32 %d, [%a];\n"
                                   "add.u32 %d, %d, 1; st.global.u32 [%o+256], %d;\n");
    EXPECT_EQ(o.out[64 + 63], 6u);
  }
}

TEST(Bulk, ManyCopiesTakeLittleMemory) {
  const BulkOutcome o = run_bulk(
      "@!%z bra E;\nmov.u32 %r0, 0;\nL:\n"
      "cp.async.bulk.global.shared::cta.bulk_group [%h+1024], [%v], 0;\n"
      "cp.async.bulk.prefetch.L2.global [%g], 16;\n"
      "add.u32 %r0, %r0, 1; setp.lt.u32 %p, %r0, 5000; @%p bra L;\nE:\n");
  EXPECT_EQ(o.report.counters.tma_store_requests, 5000u);
}

TEST(Bulk, WrongTextIsAnErrorAndUnknownFormsAreNamed) {
  const char* head =
      ".version 8.4\n.target sm_90a\n.address_size 64\n.visible .entry t(.param .u64 out) {\n"
      ".reg .b32 %b; .reg .b64 %s; .reg .pred %p;\n";
  for (const char* text :
       {"cp.async.bulk.wait_group %b;", "cp.async.bulk.commit_group 1;",
        "cp.async.bulk.global.shared::cta.bulk_group [%s], [%b];",
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%b], [%s], 16;"})
    EXPECT_FALSE(Module::parse(head + std::string(text) + "\nret;\n}\n").has_value()) << text;
  for (const char* text :
       {"cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.f32 "
        "[%v], "
        "[%v], 16, [%b];",
        "cp.async.bulk.global.shared::cta.bulk_group.cp_mask [%h], [%v], 16, 3;",
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.inc.f16 [%h], [%v], 16;",
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.s64 [%h], [%v], 16;",
        "cp.async.bulk.global.shared::cta [%h], [%v], 16;"}) {
    const BulkOutcome o = run_bulk(text, LaunchStatus::unsupported);
    const std::string name = std::string(text).substr(0, std::string(text).find(' '));
    EXPECT_NE(o.report.reason.find(name), std::string::npos) << o.report.reason;
  }
}

}  // namespace
}  // namespace cutegen::ptx
