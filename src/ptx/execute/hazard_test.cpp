// SPDX-License-Identifier: Apache-2.0
// Races and undefined values: broken kernels must give a finding, correct ones must not.
#include <numeric>

#include "ptx/testing/test_machine.h"

namespace cutegen::ptx {
namespace {

Module hazard_kernel(const std::string& body) {
  auto m = Module::parse(
      ".version 9.0\n.target sm_90a\n.address_size 64\n"
      ".visible .entry k(.param .u64 out, .param .u64 in) {\n"
      ".reg .b32 %r<24>; .reg .b64 %rd<12>; .reg .pred %p<6>; .reg .f32 %f<12>; .reg .b16 %h<4>;\n"
      ".shared .align 16 .b8 s[4096];\n"
      "mov.u32 %r0, %tid.x; mov.u32 %r9, %ctaid.x; ld.param.u64 %rd0, [out]; ld.param.u64 %rd1, "
      "[in];\nmad.lo.u32 %r10, %r9, %ntid.x, %r0; mul.wide.u32 %rd2, %r10, 4; add.s64 %rd3, %rd0, "
      "%rd2;\nadd.s64 %rd4, %rd1, %rd2; mov.u32 %r11, s; shl.b32 %r12, %r0, 2; add.u32 %r12, %r12, "
      "%r11;\n" +
      body + "\nret;\n}\n");
  if (!m) ADD_FAILURE() << m.error().text();
  return std::move(*m);
}

class Hazard : public testing::Test {
 protected:
  LaunchReport run(const std::string& body, int64_t grid, int64_t block,
                   LaunchStatus status = LaunchStatus::ok) {
    return launch(hazard_kernel(body), grid, block, status);
  }
  LaunchReport launch(const Module& m, int64_t grid, int64_t block, LaunchStatus status) {
    if (x.empty()) {
      x.resize(4096);
      std::iota(x.begin(), x.end(), 1.f);
      y.assign(4096, 0);
      in = sim.input("x", x);
      out = arg(
          sim.memory.add("y", std::as_writable_bytes(std::span(y)), Access::read_write, content));
    }
    if (fresh) std::fill(y.begin(), y.end(), 0.f);
    LaunchReport r = sim.run(m, "k", grid, block, {out, in}, 0, status);
    if (r.finding) {
      EXPECT_GT(r.finding->ptx_line, 0);
      EXPECT_FALSE(r.finding->instruction.empty());
    }
    return r;
  }
  // Runs a broken kernel on one host thread and on two, and returns the finding.
  Finding found(const std::string& body, int64_t grid, int64_t block, const char* kind) {
    auto r = run(body, grid, block, LaunchStatus::finding);
    if (!r.finding) return {};
    EXPECT_EQ(r.finding->kind, kind) << r.finding->message;
    return *r.finding;
  }
  std::vector<float> x, y;
  Content content = Content::output;
  bool fresh = false;  // each launch begins with zeros in y
  Bytes8 in, out;
  Sim sim;
};

// A named barrier of some warps, which makes the check use vector clocks.
TEST_F(Hazard, TwoWarpsWriteOneWordBetweenNamedBarriers) {
  const std::string stores =
      "setp.lt.u32 %p0, %r0, 64; @!%p0 bra.uni END;\nshr.u32 %r13, %r0, 5; st.shared.u32 [%r11], "
      "%r13;\nbar.sync 1, 64;\nEND:\n";
  const Finding f = found(stores, 1, 96, "shared_race");
  EXPECT_NE(f.message.find("write of 4 bytes"), std::string::npos) << f.message;
  const std::string same = stores.substr(0, stores.find("shr")) + "mov.u32 %r13, 7; " +
                           stores.substr(stores.find("st.shared"));
  run(same, 1, 96);  // the same value from both
}

// Each thread writes its number to shared memory and reads its neighbour's.
std::string neighbour(const char* between, int distance = 32) {
  return "ld.global.f32 %f1, [%rd4]; st.shared.f32 [%r12], %f1;\n" + std::string(between) +
         "\nmov.u32 %r13, %ntid.x; add.u32 %r14, %r0, " + std::to_string(distance) +
         "; rem.u32 %r14, %r14, %r13; shl.b32 %r14, %r14, 2; add.u32 %r14, %r14, %r11;\n"
         "ld.shared.f32 %f2, [%r14]; st.global.f32 [%rd3], %f2;";
}

TEST_F(Hazard, AMissingBarrierIsARace) {
  Finding f = found(neighbour(""), 1, 64, "shared_race");
  EXPECT_NE(f.message.find("write of 4 bytes at offset 128 of shared memory by thread 32 and the "
                           "read by"),
            std::string::npos)
      << f.message;
  EXPECT_NE(f.message.find("are not ordered by a barrier"), std::string::npos);
  EXPECT_EQ(f.buffer, "shared memory");
  ASSERT_TRUE(f.other);
  EXPECT_LT(f.other->thread, 32);
  EXPECT_GT(f.other->ptx_line, f.ptx_line);
  run(neighbour("bar.sync 0;"), 3, 64);
  EXPECT_EQ(y[0], 33.f);
}

TEST_F(Hazard, ASecondRoundNeedsASecondBarrier) {
  auto rounds = [](const char* end) {
    return "mov.u32 %r20, 0;\nLOOP:\n" + neighbour("bar.sync 0;") + end +
           "\nadd.u32 %r20, %r20, 1; setp.lt.u32 %p1, %r20, 3; @%p1 bra LOOP;";
  };
  Finding f = found(rounds(""), 1, 64, "shared_race");
  EXPECT_NE(f.message.find("are not ordered by a barrier"), std::string::npos) << f.message;
  run(rounds("bar.sync 0;"), 2, 64);
}

TEST_F(Hazard, WithinAWarpAndThroughShufflesThereIsOrder) {
  run(neighbour("bar.warp.sync 0xffffffff;", 1), 1, 32);
  run("ld.global.f32 %f1, [%rd4];\n"
      "shfl.sync.bfly.b32 %f2, %f1, 16, 31, 0xffffffff; add.f32 %f1, %f1, %f2;\n"
      "shfl.sync.bfly.b32 %f2, %f1, 8, 31, 0xffffffff; add.f32 %f1, %f1, %f2;\n"
      "st.shared.f32 [%r12], %f1; bar.warp.sync 0xffffffff; xor.b32 %r14, %r12, 4;\n"
      "ld.shared.f32 %f3, [%r14]; add.f32 %f1, %f1, %f3; st.global.f32 [%rd3], %f1;",
      4, 128);
}

TEST_F(Hazard, ALaneOutsideTheMemberMaskIsFound) {
  Finding f = found("shfl.sync.bfly.b32 %r13, %r0, 1, 31, 0x0000ffff; st.global.u32 [%rd3], %r13;",
                    1, 32, "divergent_collective");
  EXPECT_EQ(f.message.find("lanes 0xffffffff are here, but the member mask 0x0000ffff leaves "
                           "0xffff0000 out"),
            0u)
      << f.message;
  EXPECT_EQ(f.thread, 16);
  // Each half of the warp may reconverge alone, and then sees only itself.
  run("setp.lt.u32 %p1, %r0, 16; selp.b32 %r13, 0x0000ffff, 0xffff0000, %p1; setp.ne.u32 %p2, %r0, "
      "3;\nvote.sync.ballot.b32 %r14, %p2, %r13; shfl.sync.bfly.b32 %r15, %r14, 1, 31, %r13;\n"
      "popc.b32 %r15, %r15; cvt.rn.f32.u32 %f1, %r15; st.global.f32 [%rd3], %f1;",
      1, 32);
  EXPECT_EQ(y[0], 15.f);
  EXPECT_EQ(y[16], 16.f);
}

TEST_F(Hazard, DoubleBufferingNeedsOneBarrierARound) {
  // Round n writes half n & 1, and reads it after the barrier while others may write the other
  // half.
  run("mov.u32 %r20, 0;\nLOOP: and.b32 %r21, %r20, 1; shl.b32 %r21, %r21, 11;\n"
      "ld.global.f32 %f1, [%rd4]; add.u32 %r22, %r12, %r21; st.shared.f32 [%r22], %f1; bar.sync "
      "0;\n"
      "xor.b32 %r23, %r12, 128; add.u32 %r23, %r23, %r21; ld.shared.f32 %f2, [%r23];\n"
      "st.global.f32 [%rd3], %f2;\n"
      "add.u32 %r20, %r20, 1; setp.lt.u32 %p1, %r20, 5; @%p1 bra LOOP;",
      2, 256);
}

TEST_F(Hazard, HalvesOfOneWordAreNoConflict) {
  // Warps write 16-bit elements side by side in one word of four bytes.
  run("mov.u32 %r13, %laneid; mov.u32 %r14, %warpid; mad.lo.u32 %r15, %r13, 4, %r11;\n"
      "mad.lo.u32 %r15, %r14, 2, %r15; cvt.u16.u32 %h1, %r0; st.shared.u16 [%r15], %h1; bar.sync "
      "0;\nsetp.ge.u32 %p1, %r0, 32; @%p1 ret; ld.shared.u32 %r16, [%r12]; st.global.u32 [%rd3], "
      "%r16;",
      1, 64);
}

TEST_F(Hazard, OneValueFromManyIsNoRaceButTwoAre) {
  run("mov.u32 %r13, 7; st.shared.u32 [%r11], %r13; bar.sync 0; ld.shared.u32 %r14, [%r11];\n"
      "st.global.u32 [%rd3], %r14;",
      1, 128);
  Finding f = found("st.shared.u32 [%r11], %r0;", 1, 32, "shared_race");
  EXPECT_NE(
      f.message.find("store different values to offset 0 of shared memory in one instruction"),
      std::string::npos)
      << f.message;
  f = found("st.global.u32 [%rd0], %r0;", 1, 32, "global_race");
  EXPECT_NE(f.message.find("offset 0 of y in one instruction"), std::string::npos) << f.message;
  found("mov.u32 %r13, %warpid; st.shared.u32 [%r11], %r13;", 1, 64, "shared_race");
}

TEST_F(Hazard, AtomicsInSharedMemoryNeedABarrierBeforeTheyAreRead) {
  auto histogram = [](const char* first, const char* second) {
    return "setp.lt.u32 %p1, %r0, 8; mov.u32 %r13, 0; @%p1 st.shared.u32 [%r12], %r13;\n" +
           std::string(first) +
           "\nand.b32 %r14, %r0, 7; shl.b32 %r14, %r14, 2; add.u32 %r14, %r14, %r11;\n"
           "red.shared.add.u32 [%r14], 1;\n" +
           second + "\n@%p1 ld.shared.u32 %r15, [%r12]; @%p1 st.global.u32 [%rd3], %r15;";
  };
  run(histogram("bar.sync 0;", "bar.sync 0;"), 1, 256);
  found(histogram("", "bar.sync 0;"), 1, 256, "shared_race");
  found(histogram("bar.sync 0;", ""), 1, 256, "shared_race");
}

// Warp 0 fills a word ten times, warp 1 reads it; barrier 1 says full, 2 says empty.
std::string pipeline(const char* empty) {
  return "mov.u32 %r13, 0; mov.u32 %r15, 0; setp.ge.u32 %p1, %r0, 32; @%p1 bra CONSUMER;\n"
         "PRODUCER: st.shared.u32 [%r11], %r13; bar.arrive 1, 64;" +
         std::string(*empty ? " bar.sync 2, 64;" : "") +
         "add.u32 %r13, %r13, 1; setp.lt.u32 %p2, %r13, 10; @%p2 bra PRODUCER; bra.uni END;\n"
         "CONSUMER: bar.sync 1, 64; ld.shared.u32 %r14, [%r11]; add.u32 %r15, %r15, %r14;" +
         (*empty ? " bar.arrive 2, 64;" : "") +
         "add.u32 %r13, %r13, 1; setp.lt.u32 %p2, %r13, 10; @%p2 bra CONSUMER;\n"
         "END: st.global.u32 [%rd3], %r15;";
}

TEST_F(Hazard, NamedBarriersOrderTheWarpsThatUseThem) {
  run(pipeline("empty"), 2, 64);
}

TEST_F(Hazard, APipelineThatDoesNotWaitForEmptyIsARace) {
  auto r =
      run("mov.u32 %r13, 0; setp.ge.u32 %p1, %r0, 32; @%p1 bra CONSUMER;\n"
          "st.shared.u32 [%r11], %r13; bar.sync 1, 64; st.shared.u32 [%r11], 5; bra.uni END;\n"
          "CONSUMER: bar.sync 1, 64; ld.shared.u32 %r14, [%r11]; st.global.u32 [%rd3], %r14;\n"
          "END:",
          1, 64, LaunchStatus::finding);
  EXPECT_EQ(r.finding->kind, "shared_race");
}

TEST_F(Hazard, ALockInSharedMemoryOrders) {
  run("setp.eq.u32 %p1, %r0, 0; mov.u32 %r13, 0; @%p1 st.shared.v2.u32 [%r11], {%r13, %r13};\n"
      "bar.sync 0; and.b32 %r14, %r0, 31; setp.ne.u32 %p1, %r14, 0; @%p1 bra DONE;\n"
      "TAKE: atom.shared.cas.b32 %r15, [%r11], 0, 1; setp.ne.u32 %p2, %r15, 0; @%p2 bra TAKE;\n"
      "ld.shared.u32 %r16, [%r11+4]; add.u32 %r16, %r16, 1; st.shared.u32 [%r11+4], %r16;\n"
      "membar.cta; atom.shared.exch.b32 %r15, [%r11], 0;\n"
      "DONE: bar.sync 0; ld.shared.u32 %r17, [%r11+4]; st.global.u32 [%rd3], %r17;",
      1, 256);
  int total = 0;
  std::memcpy(&total, &y[0], 4);
  EXPECT_EQ(total, 8);
}

TEST_F(Hazard, CtasThatWriteOnePlaceAreFoundOnAnyNumberOfThreads) {
  for (int threads : {1, 2}) {
    sim.options.threads = threads;
    Finding f = found(
        "mul.wide.u32 %rd5, %r0, 4; add.s64 %rd5, %rd0, %rd5; st.global.u32 [%rd5], "
        "%r10;",
        8, 64, "global_race");
    EXPECT_EQ(f.buffer, "y");
    EXPECT_NE(f.message.find("of y by thread"), std::string::npos) << f.message;
    ASSERT_TRUE(f.other);
    EXPECT_NE(f.other->cta, f.cta);
  }
}

TEST_F(Hazard, CtasThatReadWhatAnotherWritesAreFound) {
  // each thread writes its own part, and reads the first element of the next thread's
  Finding f = found(
      "ld.global.f32 %f1, [%rd4]; st.global.f32 [%rd3], %f1;\n"
      "ld.global.f32 %f2, [%rd3+256]; setp.gt.f32 %p1, %f2, 0f00000000;\n",
      4, 64, "global_race");
  EXPECT_NE(f.message.find("of CTA ("), std::string::npos) << f.message;
}

TEST_F(Hazard, WarpsNeedABarrierForGlobalMemoryToo) {
  auto exchange = [](const char* between) {
    return "ld.global.f32 %f1, [%rd4]; st.global.f32 [%rd3], %f1;\n" + std::string(between) +
           "\nxor.b32 %r13, %r0, 32; mul.wide.u32 %rd5, %r13, 4; add.s64 %rd5, %rd0, %rd5;\n"
           "ld.global.f32 %f2, [%rd5]; st.shared.f32 [%r12], %f2;";
  };
  Finding f = found(exchange(""), 1, 64, "global_race");
  EXPECT_EQ(f.other->cta, f.cta);
  run(exchange("bar.sync 0;"), 1, 64);
}

TEST_F(Hazard, LaunchesAreInOrder) {
  Module m = hazard_kernel("ld.global.f32 %f1, [%rd4]; st.global.f32 [%rd3], %f1;");
  for (int i = 0; i < 3; ++i) launch(m, 4, 64, LaunchStatus::ok);
}

// The last CTA to arrive adds up what the others wrote.
std::string last_block(const char* fence) {
  return "ld.global.f32 %f1, [%rd4]; setp.eq.u32 %p1, %r0, 0; mul.wide.u32 %rd5, %r9, 4;\n"
         "add.s64 %rd5, %rd0, %rd5; @%p1 st.global.f32 [%rd5+64], %f1;\n" +
         std::string(fence) +
         "\nbar.sync 0; @!%p1 bra JOIN; mov.u32 %r13, %nctaid.x; sub.u32 %r13, %r13, 1;\n"
         "atom.global.inc.u32 %r14, [%rd0], %r13; st.shared.u32 [%r11], %r14;\n"
         "JOIN: bar.sync 0; ld.shared.u32 %r15, [%r11]; mov.u32 %r13, %nctaid.x;\n"
         "sub.u32 %r13, %r13, 1; setp.ne.u32 %p2, %r15, %r13; @%p2 ret; setp.ge.u32 %p3, %r0, 10;\n"
         "@%p3 ret; mul.wide.u32 %rd6, %r0, 4; add.s64 %rd6, %rd0, %rd6;\n"
         "ld.global.f32 %f2, [%rd6+64]; st.global.f32 [%rd6+512], %f2;";
}

TEST_F(Hazard, TheLastBlockMayReadWhatOthersWrote) {
  content = Content::given;
  for (int threads : {1, 2}) {
    sim.options.threads = threads;
    run(last_block("membar.gl;"), 10, 64);
    for (size_t i = 0; i < 10; ++i) EXPECT_EQ(y[128 + i], float(64 * i + 1));
  }
}

TEST_F(Hazard, ACounterAloneHandsNothingOver) {
  content = Content::given;
  sim.options.threads = 1;
  // No fence, a fence of CTA scope, and a fence that comes too late.
  for (const char* fence : {"", "membar.cta;", "fence.acq_rel.cta;"}) {
    Finding f = found(last_block(fence), 10, 64, "global_race");
    EXPECT_NE(f.message.find("read of 4 bytes"), std::string::npos) << f.message;
  }
  for (const char* fence : {"membar.gl;", "membar.sys;", "fence.acq_rel.gpu;", "fence.sc.gpu;"})
    run(last_block(fence), 10, 64);
  std::string releasing = last_block("");
  releasing.replace(releasing.find("atom.global"), 11, "atom.release.gpu.global");
  run(releasing, 10, 64);
  releasing.replace(releasing.find("release.gpu"), 11, "release.cta");
  found(releasing, 10, 64, "global_race");
}

// All threads of CTA 0 write, thread 0 (%p2) sets a flag, and CTA 1 waits for it. `between` stands
// between the writes and the flag. With a barrier for some warps in `before`, the race check needs
// vector clocks.
std::string flag_after(const std::string& before, const std::string& between,
                       const std::string& flag = "st.volatile.global.u32") {
  return before +
         "setp.ne.u32 %p1, %r9, 0; setp.eq.u32 %p2, %r0, 0; @%p1 bra READER; mov.u32 %r13, 1;\n"
         "ld.global.f32 %f1, [%rd4]; st.global.f32 [%rd3+1024], %f1;\n" +
         between + "\n@%p2 " + flag +
         " [%rd0], %r13; ret;\n"
         "READER: @!%p2 bra GO;\n"
         "WAIT: ld.volatile.global.u32 %r14, [%rd0]; setp.eq.u32 %p3, %r14, 0; @%p3 bra WAIT;\n"
         "GO: bar.sync 0; mul.wide.u32 %rd5, %r0, 4; add.s64 %rd5, %rd0, %rd5;\n"
         "ld.global.f32 %f2, [%rd5+1024]; st.global.f32 [%rd5+2048], %f2;";
}
const char* const kBarriersForSome[] = {"", "bar.sync 1, 64;\n"};

TEST_F(Hazard, AFlagBetweenCtasOrders) {
  content = Content::given, fresh = true;
  for (const char* before : kBarriersForSome) {
    for (const char* between : {"membar.gl; bar.sync 0;", "bar.sync 0; membar.gl;",
                                "bar.sync 0; @%p2 membar.gl;", "membar.gl; bar.sync 1, 64;"}) {
      for (const char* flag : {"st.volatile.global.u32", "st.relaxed.gpu.global.u32",
                               "red.relaxed.gpu.global.add.u32", "st.global.u32"})
        run(flag_after(before, between, flag), 2, 64);
    }
    run(flag_after(before, "bar.sync 0;", "st.release.gpu.global.u32"), 2, 64);
  }
  run(flag_after("", "membar.gl;"), 2, 32);
}

TEST_F(Hazard, AFlagThatDoesNotCoverOtherWarps) {
  content = Content::given, fresh = true;
  for (Order order : {Order::in_order, Order::reversed, Order::mixed}) {
    sim.options.order = order;
    for (const char* before : kBarriersForSome) {
      // Each warp fences its own writes, but not before the flag of warp 0.
      found(flag_after(before, "membar.gl;"), 2, 64, "global_race");
      found(flag_after(before, "membar.gl;", "st.release.gpu.global.u32"), 2, 64, "global_race");
      // The fence of warp 0 comes before the barrier, and warp 1 has none.
      found(flag_after(before, "@%p2 membar.gl; bar.sync 0;"), 2, 64, "global_race");
    }
  }
}

// Warp 1 hands its writes to warp 0 through a counter in global memory.
TEST_F(Hazard, AFlagCoversWhatItsWarpAcquired) {
  content = Content::given, fresh = true;
  const std::string hand_over =
      "membar.cta; setp.eq.u32 %p4, %r0, 32; @%p4 red.global.add.u32 [%rd0+4], 1;\n"
      "LAST: @%p2 ld.volatile.global.u32 %r14, [%rd0+4]; setp.eq.u32 %p3, %r14, 0;\n"
      "and.pred %p3, %p3, %p2; @%p3 bra LAST; membar.gl;";
  for (const char* before : kBarriersForSome) run(flag_after(before, hand_over), 2, 64);
}

TEST_F(Hazard, AnUndefinedSharedValueThatIsStoredIsFound) {
  Finding f = found(
      "xor.b32 %r13, %r12, 4; setp.lt.u32 %p1, %r0, 8; @%p1 st.shared.u32 [%r12], "
      "%r0;\nld.shared.f32 %f1, [%r12];\nadd.f32 %f2, %f1, 0f3f800000;\n"
      "st.global.f32 [%rd3], %f2;",
      1, 32, "uninitialised");
  EXPECT_EQ(f.message.find("the value stored to y at offset 32 depends on shared memory at offset "
                           "32, which nobody wrote (read by thread 8 at ptx line "),
            0u)
      << f.message;
  EXPECT_EQ(f.thread, 8);
  ASSERT_TRUE(f.other);
  EXPECT_LT(f.other->ptx_line, f.ptx_line);
}

TEST_F(Hazard, AnUndefinedValueThatIsThrownAwayIsNone) {
  // The kernel loads a tile's tail, computes with it, shuffles it, replaces it by selp and keeps it
  // in shared memory.
  run("setp.lt.u32 %p1, %r0, 20; ld.global.f32 %f1, [%rd4]; @%p1 st.shared.f32 [%r12], %f1;\n"
      "bar.sync 0; ld.shared.f32 %f2, [%r12]; mul.f32 %f3, %f2, %f2;\n"
      "shfl.sync.idx.b32 %f4, %f3, 3, 31, 0xffffffff; selp.f32 %f5, %f3, 0f40000000, %p1;\n"
      "st.shared.f32 [%r12+2048], %f3; ld.shared.f32 %f6, [%r12+2048]; @%p1 add.f32 %f5, %f5, "
      "%f6;\nadd.f32 %f5, %f5, %f4; st.global.f32 [%rd3], %f5;",
      1, 32);
  EXPECT_EQ(y[25], 2.f + 16.f);
  Finding f = found(
      "ld.shared.f32 %f2, [%r12]; st.shared.f32 [%r12+2048], %f2;\n"
      "ld.shared.f32 %f6, [%r12+2048]; st.global.f32 [%rd3], %f6;",
      1, 32, "uninitialised");
  EXPECT_NE(f.message.find("which holds a value that nobody wrote"), std::string::npos)
      << f.message;
}

TEST_F(Hazard, UndefinedAddressesAndBranchesAreFound) {
  Finding f = found(
      "ld.shared.u32 %r13, [%r12]; setp.lt.u32 %p1, %r13, 5; @%p1 bra A;\n"
      "st.global.u32 [%rd3], %r0; A:",
      1, 32, "uninitialised");
  EXPECT_EQ(f.message.find("whether this is executed depends on shared memory"), 0u) << f.message;
  f = found(
      "ld.shared.u32 %r13, [%r12]; and.b32 %r13, %r13, 124; add.u32 %r13, %r13, %r11;\n"
      "ld.shared.u32 %r14, [%r13];",
      1, 32, "uninitialised");
  EXPECT_EQ(f.message.find("the address depends on"), 0u) << f.message;
}

TEST_F(Hazard, UndefinedRegistersAreFound) {
  Finding f = found(
      "setp.lt.u32 %p1, %r0, 5; @%p1 mov.u32 %r20, 1; add.u32 %r21, %r20, 1;\n"
      "st.global.u32 [%rd3], %r21;",
      1, 32, "uninitialised");
  EXPECT_NE(f.message.find("depends on a register, which nobody wrote"), std::string::npos)
      << f.message;
  EXPECT_EQ(f.thread, 5);
  run("setp.lt.u32 %p1, %r0, 5; @%p1 mov.u32 %r20, 1; @%p1 add.u32 %r21, %r20, 1;\n"
      "@%p1 st.global.u32 [%rd3], %r21; mov.u32 %r22, %r23;",
      1, 32);
}

TEST_F(Hazard, WhatAnotherPredicateSettlesIsNotUndefined) {
  // Compilers may execute guarded code without its branch, and let the condition select the result.
  const std::string some =
      "setp.lt.u32 %p1, %r0, 5; not.pred %p2, %p1; @%p1 ld.global.f32 %f1, [%rd4];\n";
  const std::string keep = "selp.f32 %f2, %f1, 0f40000000, %p4; st.global.f32 [%rd3], %f2;";
  const std::string positive = "setp.gt.f32 %p3, %f1, 0f00000000; ";
  run(some + positive + "and.pred %p4, %p3, %p1; " + keep, 1, 32);
  EXPECT_EQ(y[4], 5.f);
  EXPECT_EQ(y[5], 2.f);
  run(some + positive + "not.pred %p3, %p3; or.pred %p5, %p2, %p3; not.pred %p4, %p5; " + keep, 1,
      32);
  run(some + "setp.gt.and.f32 %p4, %f1, 0f00000000, %p1; " + keep, 1, 32);
  run(some + "setp.gt.and.f32 %p4, %f1, 0f00000000, !%p2; " + keep, 1, 32);
  for (const char* unsettled :
       {"and.pred %p4, %p3, %p2; ", "or.pred %p4, %p3, %p1; ", "xor.pred %p4, %p3, %p1; ",
        "setp.gt.and.f32 %p4, %f1, 0f00000000, %p2; ", "setp.gt.or.f32 %p4, %f1, 0f00000000, %p1; ",
        "setp.gt.xor.f32 %p4, %f1, 0f00000000, %p1; ", "and.pred %p4, %p3, %p3; "}) {
    Finding f = found(some + positive + unsettled + keep, 1, 32, "uninitialised");
    EXPECT_EQ(f.thread, 5) << unsettled;
  }
}

TEST_F(Hazard, UndefinedLocalMemoryIsFound) {
  const std::string local =
      ".local .align 4 .b8 a[32]; and.b32 %r13, %r0, 7; shl.b32 %r14, %r13, 2; "
      "mov.u32 %r15, a; add.u32 %r15, %r15, %r14; st.local.u32 [%r15], %r0;\n";
  run(local + "ld.local.u32 %r16, [%r15]; st.global.u32 [%rd3], %r16;", 1, 64);
  Finding f = found(local + "ld.local.u32 %r16, [a+8]; st.global.u32 [%rd3], %r16;", 1, 64,
                    "uninitialised");
  EXPECT_NE(f.message.find("local memory at offset 8, which nobody wrote"), std::string::npos)
      << f.message;
}

TEST_F(Hazard, OutputsAndScratchAreUndefinedUntilTheyAreWritten) {
  const char* copy =
      "ld.global.f32 %f1, [%rd3]; add.f32 %f1, %f1, %f1; st.global.f32 "
      "[%rd3+8192], %f1;";
  Finding f = found(copy, 1, 32, "uninitialised");
  EXPECT_NE(f.message.find("depends on y at offset 0, which nobody wrote"), std::string::npos)
      << f.message;
  run("st.global.u32 [%rd3], %r0;", 1, 32);  // one launch writes what the next one reads
  run(copy, 1, 32);
}

TEST_F(Hazard, ScratchMayKeepUndefinedValues) {
  content = Content::scratch;
  run("ld.global.f32 %f1, [%rd3]; st.global.f32 [%rd3+8192], %f1;", 1, 32);
  sim.memory.set_defined(*reinterpret_cast<const uint64_t*>(out.data()));
  run("ld.global.f32 %f1, [%rd3]; setp.gt.f32 %p1, %f1, 0f00000000; @%p1 bra A; A:", 1, 32);
}

TEST_F(Hazard, EachCheckCanBeSwitchedOff) {
  sim.options.checks = Checks::none();
  run(neighbour(""), 1, 64);
  run("ld.shared.u32 %r13, [%r12]; st.global.u32 [%rd3], %r13;", 1, 32);
  sim.options.checks.uninitialised = true;
  run("st.shared.u32 [%r11], %r0;", 1, 64);
  sim.options.checks = {.barriers = true, .uninitialised = false, .races = true};
  run("ld.shared.u32 %r13, [%r12]; st.global.u32 [%rd3], %r13;", 1, 32);
}

TEST_F(Hazard, CompiledKernelsAreClean) {
  content = Content::output;
  const size_t rows = 4, cols = 300;
  std::vector<float> a(rows * cols, 1.5f), b(rows * cols);
  Sim s;
  s.run(golden("softmax.ptx"), "softmax", int64_t(rows), 256,
        {s.input("a", a),
         arg(s.memory.add("b", std::as_writable_bytes(std::span(b)), Access::read_write, content)),
         arg(int(cols))});
  EXPECT_NEAR(b[0], 1.f / 300, 1e-6);
}

}  // namespace
}  // namespace cutegen::ptx
