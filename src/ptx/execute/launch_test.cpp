// SPDX-License-Identifier: Apache-2.0
// Faults of kernels, launches and PTX texts, and what is reported for each.
#include <fmt/format.h>

#include <sys/mman.h>

#include <thread>

#include "ptx/testing/test_machine.h"

namespace cutegen::ptx {
namespace {

constexpr const char* kLaunchHead = ".version 9.0\n.target sm_90a\n.address_size 64\n";

Module launch_kernel(const std::string& body, const std::string& params = ".param .u64 p0") {
  auto m = Module::parse(kLaunchHead + std::string(".visible .entry k(") + params + ") {\n" + body +
                         "\n}\n");
  if (!m) ADD_FAILURE() << m.error().text();
  return std::move(*m);
}

class Faults : public testing::Test {
 protected:
  LaunchReport fault(int mode, int64_t block = 64, LaunchStatus status = LaunchStatus::finding) {
    y.assign(1024, 0);
    return sim.run(golden("constants.ptx"), "faulty", 1, block, {sim.output("y", y), arg(mode)}, 0,
                   status);
  }
  std::vector<float> y;
  Sim sim;
};

TEST_F(Faults, OutOfBoundsNamesBufferOffsetAndLine) {
  auto r = fault(0);
  ASSERT_TRUE(r.finding.has_value());
  EXPECT_EQ(r.finding->kind, "out_of_bounds");
  EXPECT_EQ(r.finding->message, "write of 4 bytes at offset 4000000 of y, which has 4096 bytes");
  EXPECT_EQ(r.finding->buffer, "y");
  EXPECT_EQ(r.finding->source_line, 19);
  EXPECT_EQ(r.finding->thread, 0);
  EXPECT_NE(r.finding->instruction.find("st.global.u32"), std::string::npos);
}
TEST_F(Faults, Misaligned) {
  auto r = fault(1);
  EXPECT_EQ(r.finding->kind, "misaligned");
  EXPECT_EQ(r.finding->source_line, 20);
}
TEST_F(Faults, SharedOutOfBounds) {
  auto r = fault(2);
  EXPECT_EQ(r.finding->kind, "out_of_bounds");
  EXPECT_EQ(r.finding->buffer, "shared memory");
}
TEST_F(Faults, NullPointer) {
  EXPECT_EQ(fault(6).status, LaunchStatus::finding);
}
TEST_F(Faults, Trap) {
  EXPECT_EQ(fault(5).finding->kind, "trap");
}
TEST_F(Faults, DeadlockNamesTheWarps) {
  auto r = fault(7, 64);  // one warp of 32 waits for 64 threads
  EXPECT_EQ(r.finding->kind, "deadlock");
  EXPECT_EQ(r.reason.find("no warp can go on; warp 0 at barrier 1, line "), 0u) << r.reason;
  EXPECT_NE(r.reason.find("which 32 of 64 threads have reached; warp 1 ended"), std::string::npos)
      << r.reason;
}
TEST_F(Faults, EndlessLoopEndsByBudget) {
  sim.options.instruction_budget = 200000;
  auto r = fault(4, 64, LaunchStatus::out_of_budget);
  EXPECT_NE(r.reason.find("200000"), std::string::npos);
}
TEST_F(Faults, EndlessLoopEndsByContext) {
  sim.context = Context().with_timeout(std::chrono::milliseconds(30));
  sim.run(launch_kernel("L: bra L;"), "k", 1, 64, {arg(uint64_t{0})}, 0, LaunchStatus::cancelled);
}
TEST_F(Faults, UninitializedSharedMemoryReadsAsNaN) {
  sim.options.checks.uninitialised = false;
  fault(8, 8, LaunchStatus::ok);  // eight of 32 words are written, the ninth is read
  EXPECT_EQ(y[0], 1.f);
  EXPECT_NE(y[7], y[7]);
}

TEST(Memory, WritesToReadOnlyBuffersAreFound) {
  std::vector<float> x(64, 1), y(64);
  Sim sim;
  Module m = golden("relu_cute.ptx");
  auto in = sim.input("x", x);
  auto r = sim.run(m, "relu", 1, 256, {in, in, arg(64)}, 0, LaunchStatus::finding);
  EXPECT_EQ(r.finding->kind, "read_only");
  EXPECT_EQ(x[0], 1.f);
}

TEST(Memory, AddressesAreAlignedAndDeterministic) {
  std::vector<std::byte> a(3), b(1000);
  Memory m, n;
  const uint64_t pa = m.add("a", a, Access::read_only), pb = m.add("b", b, Access::read_only);
  EXPECT_EQ(pa % 256, 0u);
  EXPECT_EQ(pb % 256, 0u);
  EXPECT_GE(pb - pa, uint64_t{1} << 20);
  EXPECT_EQ(n.add("other", a, Access::read_write), pa);
}

TEST(Memory, HugeSparseBuffersCostOnlyWhatIsTouched) {
  const size_t bytes = size_t{6} << 30;
  void* map = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(map, MAP_FAILED);
  std::span<std::byte> space(static_cast<std::byte*>(map), bytes / 2),
      rest(space.data() + bytes / 2, bytes / 2);
  Sim sim;
  sim.options.sample_ctas = 16;
  const int n = int(bytes / 2 / 4);
  auto x = arg(sim.memory.add("x", space, Access::read_only));
  auto y = arg(sim.memory.add("y", rest, Access::read_write));
  auto r = sim.run(golden("relu_cute.ptx"), "relu", n / 1024, 256, {x, y, arg(n)});
  EXPECT_EQ(r.ctas_total, n / 1024);
  EXPECT_EQ(r.ctas_run, 16);
  EXPECT_EQ(r.counters.global_load_sectors, uint64_t(n) / 8);  // 16 CTAs stand for all
  EXPECT_EQ(r.sample_error, 0);
  munmap(map, bytes);
}

TEST(Launch, LimitsAreUserErrors) {
  Module m = launch_kernel("ret;");
  Sim sim;
  auto refused = [&](std::array<int64_t, 3> grid, std::array<int64_t, 3> block, int64_t shared) {
    auto r = launch({}, sim.memory, m, "k",
                    {.grid = grid,
                     .block = block,
                     .cluster = {1, 1, 1},
                     .shared_bytes = shared,
                     .cooperative = false},
                    {arg(uint64_t{0})}, {});
    EXPECT_FALSE(r.has_value());
    return r ? std::string() : r.error().text();
  };
  EXPECT_NE(refused({0, 1, 1}, {32, 1, 1}, 0).find("grid.x is 0"), std::string::npos);
  EXPECT_NE(refused({1, 70000, 1}, {32, 1, 1}, 0).find("grid.y"), std::string::npos);
  EXPECT_NE(refused({1, 1, 1}, {1024, 2, 1}, 0).find("2048 threads"), std::string::npos);
  EXPECT_NE(refused({1, 1, 1}, {32, 1, 1}, 3'000'000'000).find("shared memory"), std::string::npos);
  EXPECT_NE(refused({1, 1, 1}, {32, 1, 1}, -1).find("shared memory"), std::string::npos);
}

TEST(Launch, WrongNamesAndArgumentsAreUserErrors) {
  Module m = launch_kernel("ret;");
  Sim sim;
  auto unknown = sim.launch(m, "q", 1, 32, {});
  ASSERT_FALSE(unknown.has_value());
  EXPECT_NE(unknown.error().text().find("it has k"), std::string::npos);
  EXPECT_FALSE(sim.launch(m, "k", 1, 32, {}).has_value());
  EXPECT_FALSE(sim.launch(m, "k", 1, 32, {arg(1)}).has_value());
  EXPECT_TRUE(sim.launch(m, "k", 1, 32, {arg(uint64_t{1})}).has_value());
}

TEST(Launch, UnknownOpcodesAreUnsupportedOnlyWhenExecuted) {
  Module m = launch_kernel(
      ".reg .b32 %r<4>; .reg .pred %p; .reg .b64 %rd;\n"
      "ld.param.u64 %rd, [p0]; cvt.u32.u64 %r1, %rd; setp.eq.s32 %p, %r1, 0;\n"
      "@%p frobnicate.s32 %r2, %r1;\nret;");
  Sim sim;
  auto r = sim.run(m, "k", 1, 32, {arg(uint64_t{0})}, 0, LaunchStatus::unsupported);
  EXPECT_NE(r.reason.find("frobnicate.s32"), std::string::npos);
  sim.run(m, "k", 1, 32, {arg(uint64_t{1})});
}

TEST(Launch, DivergentBarrierIsFound) {
  Module m = launch_kernel(
      ".reg .b32 %r; .reg .pred %p;\nmov.u32 %r, %tid.x; setp.lt.u32 %p, %r, 16;\n@%p bra A;\n"
      "bar.sync 0; bra.uni B;\nA: bar.sync 0;\nB: ret;");
  Sim sim;
  auto r = sim.run(m, "k", 1, 64, {arg(uint64_t{0})}, 0, LaunchStatus::finding);
  EXPECT_EQ(r.finding->kind, "divergent_barrier");
}

TEST(Launch, LanesMeetAtABarrierThatLiesBeforeTheirBlock) {
  // The join, with the barrier, lies before one of the branches. No lane may be reported.
  Module m = launch_kernel(
      ".reg .b32 %r<4>; .reg .pred %p; .reg .b64 %rd<4>;\nmov.u32 %r1, %tid.x; setp.lt.u32 %p, "
      "%r1, 16;\n"
      "@%p bra LOW;\nmov.u32 %r2, 1;\nJOIN: bar.sync 0;\nld.param.u64 %rd1, [p0]; mul.wide.u32 "
      "%rd2, %r1, 4;\n"
      "add.s64 %rd1, %rd1, %rd2; st.global.u32 [%rd1], %r2; ret;\nLOW: mov.u32 %r2, 2; bra.uni "
      "JOIN;");
  std::vector<int> out(64);
  Sim sim;
  sim.run(m, "k", 1, 64, {sim.output("out", out)});
  for (size_t i = 0; i < 64; ++i) EXPECT_EQ(out[i], i < 16 ? 2 : 1);
}

TEST(Launch, ALaneThatSpinsGivesWay) {
  // Lane 0 waits for a flag that lane 1 sets after the loop.
  Module m = launch_kernel(
      ".reg .b32 %r<4>; .reg .pred %p; .reg .b64 %rd;\nld.param.u64 %rd, [p0]; mov.u32 %r1, "
      "%tid.x;\n"
      "setp.ne.u32 %p, %r1, 0; @%p bra SET;\nWAIT: ld.volatile.global.u32 %r2, [%rd]; setp.eq.s32 "
      "%p, %r2, 0;\n"
      "@%p bra WAIT;\nret;\nSET: mov.u32 %r3, 1; st.global.u32 [%rd], %r3; ret;");
  std::vector<int> flag(1, 0);
  Sim sim;
  sim.options.instruction_budget = 1000000;
  sim.run(m, "k", 1, 2, {sim.output("flag", flag)});
}

TEST(Launch, BarrierReductionsAndNamedBarriers) {
  Module m = launch_kernel(
      ".reg .b32 %r<6>; .reg .pred %p<3>; .reg .b64 %rd<4>;\nmov.u32 %r1, %tid.x; setp.lt.u32 %p1, "
      "%r1, 37;\n"
      "barrier.cta.red.popc.aligned.u32 %r2, 0, %p1;\nbar.sync 3, 96;\n"
      "ld.param.u64 %rd1, [p0]; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd1, %rd1, %rd2; st.global.u32 "
      "[%rd1], %r2;");
  std::vector<int> out(96);
  Sim sim;
  auto r = sim.run(m, "k", 1, 96, {sim.output("out", out)});
  for (int v : out) EXPECT_EQ(v, 37);
  EXPECT_EQ(r.counters.barriers, 6u);
}

TEST(Launch, IndexedBranch) {
  Module m = launch_kernel(
      ".reg .b32 %r<6>; .reg .b64 %rd<4>;\nmov.u32 %r1, %tid.x; and.b32 %r2, %r1, 3;\n"
      "T: .branchtargets A, B, C, D;\nbrx.idx %r2, T;\nA: mov.u32 %r3, 10; bra E;\nB: mov.u32 %r3, "
      "20; bra E;\n"
      "C: mov.u32 %r3, 30; bra E;\nD: mov.u32 %r3, 40;\nE: ld.param.u64 %rd1, [p0]; mul.wide.u32 "
      "%rd2, %r1, 4;\n"
      "add.s64 %rd1, %rd1, %rd2; st.global.u32 [%rd1], %r3;");
  std::vector<int> out(64);
  Sim sim;
  sim.run(m, "k", 1, 64, {sim.output("out", out)});
  for (size_t i = 0; i < 64; ++i) EXPECT_EQ(out[i], int(i % 4 + 1) * 10);
}

TEST(Launch, GenericAddressesOfSeveralSpaces) {
  Module m = launch_kernel(
      ".shared .align 8 .b8 s[256]; .reg .b32 %r<6>; .reg .pred %p; .reg .b64 %rd<6>;\n"
      "mov.u32 %r1, %tid.x; mul.wide.u32 %rd1, %r1, 4; mov.u64 %rd2, s; cvta.shared.u64 %rd2, "
      "%rd2;\n"
      "add.s64 %rd2, %rd2, %rd1; mov.u32 %r2, 7; st.u32 [%rd2], %r2; ld.param.u64 %rd3, [p0]; "
      "add.s64 %rd3, %rd3, %rd1;\n"
      "and.b32 %r3, %r1, 1; setp.eq.s32 %p, %r3, 0; selp.b64 %rd4, %rd2, %rd3, %p; ld.u32 %r4, "
      "[%rd4]; st.u32 [%rd3], %r4;");
  std::vector<int> out(32, 9);
  Sim sim;
  sim.run(m, "k", 1, 32, {sim.output("out", out)});
  for (size_t i = 0; i < 32; ++i) EXPECT_EQ(out[i], i % 2 ? 9 : 7);
}

TEST(Launch, TheFirstCtaAtFaultIsReported) {
  Module m = launch_kernel(
      ".reg .b32 %r<3>; .reg .pred %p;\nmov.u32 %r1, %ctaid.x; setp.lt.u32 %p, %r1, 40; @%p ret; "
      "trap;");
  for (int threads : {1, 3, 8}) {
    Sim sim;
    sim.options.threads = threads;
    auto r = sim.run(m, "k", 1000, 32, {arg(uint64_t{0})}, 0, LaunchStatus::finding);
    EXPECT_EQ(r.finding->cta[0], 40);
  }
}

TEST(Parse, ErrorsNameTheLine) {
  auto error = [](const std::string& text) {
    auto m = Module::parse(text);
    EXPECT_FALSE(m.has_value()) << text;
    return m ? Error{} : m.error();
  };
  const std::string head = kLaunchHead;
  EXPECT_EQ(error("").kind, ErrorKind::user);
  EXPECT_EQ(error("\x7f"
                  "ELF\x02\x01")
                .kind,
            ErrorKind::user);
  EXPECT_EQ(error(head + ".entry k() {\n.reg .b32 %r<2>;\nadd.s32 %r1, %r2, 1;\n}").where, "ptx:6");
  EXPECT_EQ(error(head + ".entry k() {\nbra NOWHERE;\n}").where, "ptx:5");
  EXPECT_EQ(error(head + ".entry k() {\n.reg .b32 %r<2000000>;\n}").kind, ErrorKind::unsupported);
  EXPECT_EQ(error(head + ".entry k() {\n.shared .b8 s[99999999999];\n}").kind, ErrorKind::user);
  EXPECT_EQ(error(head + ".entry k() {\n.frob 3;\n}").kind, ErrorKind::unsupported);
  EXPECT_EQ(error(head + ".texref t;").kind, ErrorKind::unsupported);
  EXPECT_EQ(
      error(head + ".entry k() {\n.reg .b32 %r<3>; .reg .b64 %d;\nadd.s32 %r1, %d, 1;\n}").kind,
      ErrorKind::user);
  EXPECT_EQ(error(head + ".entry k() {\n@%p ret;\n}").kind, ErrorKind::user);
  EXPECT_EQ(error(head + ".entry k() {\nA: A: ret;\n}").kind, ErrorKind::user);
  EXPECT_EQ(error(head + ".entry k() {" + std::string(200, '{')).kind, ErrorKind::user);
}

TEST(Parse, TruncatedTextIsAnErrorOrWholeNeverACrash) {
  for (const char* name : {"control.ptx", "constants.ptx", "softmax.ptx"}) {
    auto text = read_file(std::string(CUTEGEN_SOURCE_DIR) + "/tests/golden/ptx/" + name);
    ASSERT_TRUE(text.has_value());
    for (size_t n = 0; n < text->size(); n += 37) {
      auto m = Module::parse(std::string_view(*text).substr(0, n));
      if (!m) {
        EXPECT_FALSE(m.error().text().empty());
      }
    }
  }
}

TEST(Parse, ScopedRegistersAndLabelsMayRepeat) {
  std::string body = ".reg .b32 %r<3>; mov.u32 %r1, 0;\n";
  for (int i = 0; i < 300; ++i) {
    body +=
        "{ .reg .pred p; .reg .b32 t; mov.b32 t, 3;\nLAB_WAIT: add.s32 t, t, -1; add.s32 %r1, %r1, "
        "1; setp.gt.s32 p, t, 0;\n"
        "@p bra LAB_WAIT; bra DONE; trap; DONE: }\n";
  }
  body += ".reg .b64 %rd; ld.param.u64 %rd, [p0]; st.global.u32 [%rd], %r1;";
  std::vector<int> out(1);
  Sim sim;
  sim.run(launch_kernel(body), "k", 1, 32, {sim.output("out", out)});
  EXPECT_EQ(out[0], 900);
}

}  // namespace
}  // namespace cutegen::ptx
