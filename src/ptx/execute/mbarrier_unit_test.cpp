// SPDX-License-Identifier: Apache-2.0
// mbarrier: phases, states, waits that suspend, deadlocks, and misuse.
#include <algorithm>

#include "ptx/testing/test_machine.h"

namespace cutegen::ptx {
namespace {

// %i: the thread; %o: its word of `out`; %b: an mbarrier; %v: 4 KB of shared memory.
Module mbarrier_kernel(const std::string& body) {
  auto m = Module::parse(
      ".version 8.4\n.target sm_90a\n.address_size 64\n"
      ".visible .entry t(.param .u64 out) {\n"
      ".shared .align 8 .b64 bars[4]; .shared .align 16 .b8 sm[4096];\n"
      ".reg .b64 %o, %s<4>; .reg .b32 %i, %w, %b, %v, %d, %r<4>; .reg .pred %p, %q, %z;\n"
      "mov.u32 %i, %tid.x; shr.u32 %w, %i, 5; mov.u32 %b, bars; mov.u32 %v, sm;\n"
      "ld.param.u64 %o, [out]; mad.wide.u32 %o, %i, 4, %o; setp.eq.u32 %z, %i, 0; mov.u32 %d, "
      "7;\n" +
      body + "\nst.global.u32 [%o], %d;\nret;\n}\n");
  if (!m) ADD_FAILURE() << m.error().text();
  return std::move(*m);
}

struct MbarrierOutcome {
  LaunchReport report;
  std::vector<uint32_t> out;
};
MbarrierOutcome run_mbarrier(const std::string& body, int64_t threads = 64,
                             LaunchStatus status = LaunchStatus::ok,
                             Order order = Order::in_order) {
  MbarrierOutcome o;
  o.out.resize(256, 99);
  Sim sim;
  sim.options.order = order;
  std::vector<Bytes8> args{sim.output("out", o.out)};
  o.report = sim.run(mbarrier_kernel(body), "t", 1, threads, args, 0, status);
  return o;
}
Finding mbarrier_finding(const std::string& body, const char* kind, int64_t threads = 64) {
  const MbarrierOutcome o = run_mbarrier(body, threads, LaunchStatus::finding);
  const Finding f = o.report.finding.value_or(Finding{});
  EXPECT_EQ(f.kind, kind) << f.message;
  return f;
}
std::string init(int count) {
  return "@%z mbarrier.init.shared::cta.b64 [%b], " + std::to_string(count) +
         ";\nfence.mbarrier_init.release.cluster;\nbar.sync 0;\n";
}
std::string wait_parity(const std::string& parity, const std::string& label = "W") {
  return label + ":\nmbarrier.try_wait.parity.shared::cta.b64 %p, [%b], " + parity +
         ", 1000;\n@!%p bra " + label + ";\n";
}
const char* arrive = "mbarrier.arrive.shared::cta.b64 _, [%b];\n";

// Warp 1 reads what warp 0 stored before it arrived.
const std::string hand_over =
    init(32) +
    "setp.ne.u32 %q, %w, 0; @%q bra READ;\n"
    "shl.b32 %r0, %i, 2; add.u32 %r0, %r0, %v; add.u32 %r1, %i, 100; st.shared.u32 [%r0], %r1;\n" +
    arrive + "bra END;\nREAD:\n" + wait_parity("0") +
    "sub.u32 %r0, %i, 32; shl.b32 %r0, %r0, 2; add.u32 %r0, %r0, %v; ld.shared.u32 %d, "
    "[%r0];\nEND:\n";

TEST(Mbarrier, ArrivalsReleaseAWaitingWarpInEveryOrder) {
  for (Order order : {Order::in_order, Order::reversed, Order::mixed}) {
    const MbarrierOutcome o = run_mbarrier(hand_over, 64, LaunchStatus::ok, order);
    for (size_t i = 32; i < 64; ++i) EXPECT_EQ(o.out[i], 100 + i - 32);
  }
}

TEST(Mbarrier, AnAccessWithoutTheWaitRaces) {
  std::string text = hand_over;
  text.erase(text.find("W:"), text.find("sub.u32") - text.find("W:"));
  EXPECT_EQ(mbarrier_finding(text, "shared_race").other.has_value(), true);
}

TEST(Mbarrier, RelaxedArrivalsOrderNothing) {
  std::string text = hand_over;
  text.replace(text.find("mbarrier.arrive.shared"), 15, "mbarrier.arrive.relaxed.cluster");
  mbarrier_finding(text, "shared_race");
}

TEST(Mbarrier, PhasesAlternate) {  // two warps, ten phases; each lane counts the phases
  const MbarrierOutcome o =
      run_mbarrier(init(64) + "mov.u32 %r1, 0; mov.u32 %d, 0;\nL:\n" + arrive + wait_parity("%r1") +
                   "xor.b32 %r1, %r1, 1; add.u32 %d, %d, 1; setp.lt.u32 %q, %d, 10; @%q bra L;\n");
  for (size_t i = 0; i < 64; ++i) EXPECT_EQ(o.out[i], 10u);
}

TEST(Mbarrier, TheOddPhaseBeforeTheFirstIsComplete) {
  const MbarrierOutcome o = run_mbarrier(init(1) + wait_parity("1"));
  EXPECT_EQ(o.out[5], 7u);
}

TEST(Mbarrier, StatesNameThePhaseAndWhatIsPending) {
  const MbarrierOutcome o = run_mbarrier(
      init(64) +
      "mbarrier.arrive.shared::cta.b64 %s0, [%b];\n"
      "mbarrier.pending_count.b64 %d, %s0;\n"
      "T:\nmbarrier.test_wait.acquire.cta.shared::cta.b64 %p, [%b], %s0;\n@!%p bra T;\n");
  std::vector<uint32_t> seen(o.out.begin(), o.out.begin() + 64);
  std::sort(seen.begin(), seen.end());
  for (uint32_t i = 0; i < 64; ++i) EXPECT_EQ(seen[i], i + 1);
}

TEST(Mbarrier, BytesHoldThePhaseBack) {
  const MbarrierOutcome o =
      run_mbarrier(init(2) +
                   "setp.ne.u32 %q, %w, 0; @%q bra B;\n"
                   "@%z mbarrier.arrive.expect_tx.shared::cta.b64 _, [%b], 96;\n"
                   "@%z mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%b], 32;\n"
                   "@%z mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%b], 128;\n"
                   "@%z mbarrier.arrive.shared::cta.b64 _, [%b], 1;\nbra E;\nB:\n" +
                   wait_parity("0") + "mov.u32 %d, 5;\nE:\n");
  EXPECT_EQ(o.out[40], 5u);
}

TEST(Mbarrier, DroppedArrivalsAreNotExpectedAgain) {
  const MbarrierOutcome o = run_mbarrier(
      init(3) +
      "@%z mbarrier.arrive_drop.shared::cta.b64 _, [%b], 2;\n"
      "@%z mbarrier.arrive.shared::cta.b64 _, [%b];\n" +
      wait_parity("0") + "bar.sync 0;\n@%z mbarrier.arrive.shared::cta.b64 _, [%b];\n" +
      wait_parity("1", "X"));
  EXPECT_EQ(o.out[63], 7u);
}

TEST(Mbarrier, GenericAddressesAndTheWindowOfTheCluster) {
  const MbarrierOutcome o = run_mbarrier(
      "cvta.shared.u64 %s1, bars;\n@%z mbarrier.init.b64 [%s1], 64;\nbar.sync 0;\n"
      "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%b];\n"
      "W:\nmbarrier.try_wait.parity.b64 %p, [%s1], 0;\n@!%p bra W;\n");
  EXPECT_EQ(o.out[0], 7u);
}

// One lane waits for an arrival of another lane of its warp.
TEST(Mbarrier, LanesOfOneWarpWaitForEachOther) {
  for (Order order : {Order::in_order, Order::reversed, Order::mixed}) {
    const MbarrierOutcome o =
        run_mbarrier(init(1) + "@!%z bra OTHERS;\n" + wait_parity("0") +
                         "mov.u32 %d, 3; bra.uni E;\nOTHERS:\nsetp.eq.u32 %q, %i, 9;\n"
                         "@%q mbarrier.arrive.shared::cta.b64 _, [%b];\nE:\n",
                     32, LaunchStatus::ok, order);
    EXPECT_EQ(o.out[0], 3u);
    EXPECT_EQ(o.out[9], 7u);
  }
}

TEST(Mbarrier, AWaitThatNothingEndsReturnsFalseAtItsLimit) {  // one try_wait, then the arrival
  const MbarrierOutcome o = run_mbarrier(init(64) +
                                         "mbarrier.try_wait.parity.shared::cta.b64 %p, [%b], 0;\n"
                                         "selp.u32 %d, 1, 2, %p;\n" +
                                         arrive + wait_parity("0"));
  for (size_t i = 0; i < 64; ++i) EXPECT_EQ(o.out[i], 2u);
}

TEST(Mbarrier, ADeadlockNamesThePhaseAndWhatItLacks) {
  const Finding f =
      mbarrier_finding(init(3) +
                           "@%z mbarrier.arrive.expect_tx.shared::cta.b64 _, [%b], 4096;\n"
                           "setp.ne.u32 %q, %w, 0; @%q bra E;\n" +
                           wait_parity("0") + "E:\nbar.sync 0;\n",
                       "deadlock");
  EXPECT_NE(f.message.find("warp 0 at the mbarrier at offset 0 of shared memory"),
            std::string::npos)
      << f.message;
  EXPECT_NE(f.message.find("phase 0 lacks 2 of 3 arrivals and 4096 bytes"), std::string::npos)
      << f.message;
  EXPECT_NE(f.message.find("warp 1 at barrier 0"), std::string::npos) << f.message;
}

struct MbarrierMisuse {
  const char *name, *body, *kind, *says;
};
class Misused : public testing::TestWithParam<MbarrierMisuse> {};
TEST_P(Misused, IsFound) {
  const MbarrierMisuse& m = GetParam();
  const Finding f = mbarrier_finding(m.body, m.kind, 32);
  EXPECT_NE(f.message.find(m.says), std::string::npos) << f.message;
}
#define INIT "@%z mbarrier.init.shared::cta.b64 [%b], 4;\nbar.sync 0;\n"
INSTANTIATE_TEST_SUITE_P(
    Mbarrier, Misused,
    testing::Values(
        MbarrierMisuse{"Uninitialised", "mbarrier.arrive.shared::cta.b64 _, [%b];", "bad_mbarrier",
                       "not initialised"},
        MbarrierMisuse{"Invalidated",
                       INIT "@%z mbarrier.inval.shared::cta.b64 [%b];\nbar.sync 0;\n"
                            "@%z mbarrier.arrive.shared::cta.b64 _, [%b];",
                       "bad_mbarrier", "no longer"},
        MbarrierMisuse{"InitialisedTwice", "mbarrier.init.shared::cta.b64 [%b], 1;", "bad_mbarrier",
                       "without mbarrier.inval"},
        MbarrierMisuse{"CountExceeded", INIT "@%z mbarrier.arrive.shared::cta.b64 _, [%b], 5;",
                       "bad_mbarrier", "4 of 4 are missing in phase 0"},
        MbarrierMisuse{"CountOfOneThreadLess",
                       "@%z mbarrier.init.shared::cta.b64 [%b], 31;\nbar.sync 0;\n"
                       "mbarrier.arrive.shared::cta.b64 _, [%b];",
                       "bad_mbarrier",
                       "arrive in phase 0 and in phase 1: mbarrier.init has a count of 31"},
        MbarrierMisuse{"CountOfZero", "@%z mbarrier.init.shared::cta.b64 [%b], 0;", "bad_mbarrier",
                       "a count of 0"},
        MbarrierMisuse{"Misaligned", "@%z mbarrier.init.shared::cta.b64 [%b+4], 1;", "misaligned",
                       "8"},
        MbarrierMisuse{"Unmapped", "@%z mbarrier.init.shared::cta.b64 [%b+8192], 1;",
                       "out_of_bounds", "offset 8192 of shared memory"},
        MbarrierMisuse{"InABuffer", "@%z mbarrier.init.b64 [%o], 1;", "out_of_bounds",
                       "in buffer out: mbarriers must lie in shared memory"},
        MbarrierMisuse{"AtNull", "mov.b64 %s1, 0; @%z mbarrier.arrive.b64 _, [%s1];",
                       "out_of_bounds", "the generic address 0x0, which is not mapped"},
        MbarrierMisuse{"TooManyBytes",
                       INIT "@%z mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%b], 1048576;",
                       "bad_mbarrier", "2^20"},
        MbarrierMisuse{"Completing",
                       INIT "@%z mbarrier.arrive.noComplete.shared::cta.b64 _, [%b], 4;",
                       "bad_mbarrier", ".noComplete"},
        MbarrierMisuse{"OldState",
                       "@%z mbarrier.init.shared::cta.b64 [%b], 1;\n"
                       "@%z mbarrier.arrive.shared::cta.b64 %s0, [%b];\n"
                       "@%z mbarrier.arrive.shared::cta.b64 _, [%b];\n"
                       "@%z mbarrier.test_wait.shared::cta.b64 %p, [%b], %s0;",
                       "bad_mbarrier", "state of phase 0, but the mbarrier is in phase 2"},
        MbarrierMisuse{"Parity", INIT "mbarrier.test_wait.parity.shared::cta.b64 %p, [%b], 2;",
                       "bad_mbarrier", "parity 2"},
        MbarrierMisuse{"Read", INIT "ld.shared.u32 %d, [%b+4];", "bad_mbarrier",
                       "which is an mbarrier, initialised at"},
        MbarrierMisuse{"Overwritten", INIT "@%z st.shared.v2.u32 [%b], {%i, %i};", "bad_mbarrier",
                       "write of 8 bytes at offset 0"}),
    [](const auto& test) { return std::string(test.param.name); });
#undef INIT

TEST(Mbarrier, OtherWarpsMayUseItOnlyAfterABarrier) {
  std::string text = hand_over;
  text.erase(text.find("bar.sync 0;"), 11);
  for (Order order : {Order::in_order, Order::reversed, Order::mixed}) {
    const MbarrierOutcome o = run_mbarrier(text, 64, LaunchStatus::finding, order);
    const Finding f = o.report.finding.value_or(Finding{});
    EXPECT_EQ(f.kind, "bad_mbarrier");
    EXPECT_NE(f.message.find("initialis"), std::string::npos) << f.message;
  }
  EXPECT_NE(mbarrier_finding(text, "bad_mbarrier").message.find("put __syncthreads()"),
            std::string::npos);
}

TEST(Mbarrier, ItsMemoryMayBeReusedAfterInval) {
  const MbarrierOutcome o =
      run_mbarrier(init(1) +
                   "@%z mbarrier.inval.shared::cta.b64 [%b];\nbar.sync 0;\n"
                   "@%z st.shared.u32 [%b], 12; @%z ld.shared.u32 %d, [%b];\n");
  EXPECT_EQ(o.out[0], 12u);
}

TEST(Mbarrier, WrongTextIsAnErrorAndUnknownFormsAreNamed) {
  const char* head =
      ".version 8.4\n.target sm_90a\n.address_size 64\n.visible .entry t(.param .u64 out) {\n"
      ".reg .b32 %b; .reg .b64 %s; .reg .pred %p;\n";
  for (const char* text :
       {"mbarrier.init.shared::cta.b64 [%b];", "mbarrier.arrive.shared::cluster.b64 %s, [%b];",
        "mbarrier.arrive.noComplete.shared::cta.b64 _, [%b];",
        "mbarrier.test_wait.parity.shared::cta.b64 %p, [%b], 0, 10;",
        "mbarrier.try_wait.shared::cta.b64 %p, [%b], %b;",
        "fence.proxy.tensormap::generic.acquire.gpu [%s], 64;"})
    EXPECT_FALSE(Module::parse(head + std::string(text) + "\nret;\n}\n").has_value()) << text;
  for (const char* text : {"mbarrier.test_wait.shared::cluster.b64 %p, [%b], %s0;",
                           "fence.proxy.tensormap::generic.weak.gpu;",
                           "fence.proxy.async::generic.acquire.sync_restrict::shared::cta.cluster;",
                           "mbarrier.arrive.parity.b64 _, [%b];"}) {
    const MbarrierOutcome o = run_mbarrier(text, 32, LaunchStatus::unsupported);
    EXPECT_NE(o.report.reason.find(std::string(text).substr(0, 12)), std::string::npos)
        << o.report.reason;
  }
}

TEST(Mbarrier, FencesOfTheProxiesAreAccepted) {
  const MbarrierOutcome o = run_mbarrier(
      "fence.proxy.async;\nfence.proxy.async.shared::cta;\nfence.proxy.async.shared::cluster;\n"
      "fence.proxy.async.global;\nfence.proxy.alias;\nfence.mbarrier_init.release.cluster;\n"
      "fence.proxy.tensormap::generic.release.cta; fence.proxy.tensormap::generic.release.gpu;\n"
      "fence.proxy.tensormap::generic.acquire.sys [%o], 128;\n"
      "fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster;\n"
      "fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster;\n"
      "elect.sync %r0|%p, 0xffffffff;\n@%p mov.u32 %d, 1;\n");
  EXPECT_EQ(std::count(o.out.begin(), o.out.begin() + 32, 1u), 1);
}

}  // namespace
}  // namespace cutegen::ptx
