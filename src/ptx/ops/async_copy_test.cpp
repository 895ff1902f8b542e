// SPDX-License-Identifier: Apache-2.0
// cp.async: data arrives at the wait, and an earlier access is a finding. Also: matrix instructions
// that only part of a warp executes.
#include <fmt/format.h>

#include "ptx/testing/test_machine.h"

namespace cutegen::ptx {
namespace {

// 32 threads. `body` may use %s and %p, the addresses of the thread's 16 bytes in shared and global
// memory.
std::string copy_kernel(const std::string& body,
                        const std::string& tail = "ld.shared.b32 %d, [%s];") {
  return ".version 8.4\n.target sm_80\n.address_size 64\n"
         ".visible .entry t(.param .u64 in, .param .u64 out) {\n"
         ".shared .align 16 .b8 sm[1024];\n"
         ".reg .b64 %p, %o; .reg .b32 %i, %s, %d, %n, %f<4>; .reg .pred %x;\n"
         "mov.u32 %i, %tid.x; ld.param.u64 %p, [in]; mad.wide.u32 %p, %i, 16, %p;\n"
         "ld.param.u64 %o, [out]; mad.wide.u32 %o, %i, 4, %o; mov.u32 %s, sm;\n"
         "mad.lo.u32 %s, %i, 16, %s;\n" +
         body + "\n" + tail + "\nst.global.b32 [%o], %d;\nret;\n}\n";
}

struct AsyncOutcome {
  LaunchReport report;
  std::vector<uint32_t> in, out;
};
AsyncOutcome run_async(const std::string& text, LaunchStatus status = LaunchStatus::ok) {
  AsyncOutcome o;
  o.in.resize(128), o.out.resize(32, 77);
  for (size_t i = 0; i < o.in.size(); ++i) o.in[i] = uint32_t(1000 + i);
  auto module = Module::parse(text);
  EXPECT_TRUE(module.has_value()) << module.error().text();
  if (!module) return o;
  Sim sim;
  std::vector<Bytes8> args{sim.input("in", o.in), sim.output("out", o.out)};
  o.report = sim.run(*module, "t", 1, 32, args, 0, status);
  return o;
}
Finding async_finding(const std::string& text) {
  const AsyncOutcome o = run_async(text, LaunchStatus::finding);
  return o.report.finding.value_or(Finding{});
}

TEST(AsyncCopy, ArrivesAtTheWait) {
  const AsyncOutcome o =
      run_async(copy_kernel("cp.async.cg.shared.global [%s], [%p], 16;\n"
                            "cp.async.commit_group;\ncp.async.wait_group 0;"));
  for (size_t i = 0; i < 32; ++i) EXPECT_EQ(o.out[i], 1000 + 4 * i);
}

TEST(AsyncCopy, ReadBeforeTheWaitIsAFinding) {
  const Finding f = async_finding(
      copy_kernel("cp.async.cg.shared.global [%s], [%p], 16;\ncp.async.commit_group;"));
  EXPECT_EQ(f.kind, "async_copy_pending");
  EXPECT_NE(f.instruction.find("ld.shared.b32"), std::string::npos);
  EXPECT_NE(f.message.find("cp.async (ptx:10)"), std::string::npos) << f.message;
  EXPECT_EQ(f.thread, 0);
}

TEST(AsyncCopy, WriteBeforeTheWaitIsAFinding) {
  const Finding f =
      async_finding(copy_kernel("cp.async.ca.shared.global [%s], [%p], 4;\n"
                                "st.shared.b32 [%s], %i;\ncp.async.wait_all;"));
  EXPECT_EQ(f.kind, "async_copy_pending");
}

TEST(AsyncCopy, BytesBesideTheCopyMayBeTouched) {
  const AsyncOutcome o =
      run_async(copy_kernel("st.shared.b32 [%s+4], %i;\ncp.async.ca.shared.global [%s], [%p], 4;",
                            "ld.shared.b32 %d, [%s+4];"));
  EXPECT_EQ(o.out[5], 5u);
}

// Two groups: a wait for all but one completes the older.
std::string two_groups(const char* wait, int offset) {
  return copy_kernel(
      fmt::format("cp.async.ca.shared.global [%s], [%p], 4;\ncp.async.commit_group;\n"
                  "cp.async.ca.shared.global [%s+8], [%p+8], 8;\ncp.async.commit_group;\n"
                  "{};",
                  wait),
      fmt::format("ld.shared.b32 %d, [%s+{}];", offset));
}
TEST(AsyncCopy, WaitGroupCountsFromTheNewest) {
  EXPECT_EQ(run_async(two_groups("cp.async.wait_group 1", 0)).out[3], 1012u);
  EXPECT_EQ(async_finding(two_groups("cp.async.wait_group 1", 8)).kind, "async_copy_pending");
  EXPECT_EQ(run_async(two_groups("cp.async.wait_group 0", 12)).out[3], 1015u);
  EXPECT_EQ(async_finding(two_groups("cp.async.wait_group 2", 0)).kind, "async_copy_pending");
}

TEST(AsyncCopy, WhatIsNotCommittedIsNotWaitedFor) {
  const std::string copy = "cp.async.ca.shared.global [%s], [%p], 4;\n";
  EXPECT_EQ(async_finding(copy_kernel(copy + "cp.async.wait_group 0;")).kind, "async_copy_pending");
  EXPECT_EQ(run_async(copy_kernel(copy + "cp.async.wait_all;")).out[9], 1036u);
}

TEST(AsyncCopy, GroupsAreCountedByLane) {  // the upper half commits once more
  const std::string text = copy_kernel(
      "setp.ge.u32 %x, %i, 16;\n@%x cp.async.commit_group;\n"
      "cp.async.ca.shared.global [%s], [%p], 4;\ncp.async.commit_group;\n"
      "@%x cp.async.commit_group;\ncp.async.wait_group 1;\n@!%x cp.async.wait_group 0;");
  EXPECT_EQ(run_async(text).out[20], 1080u);
  EXPECT_EQ(run_async(text).out[4], 1016u);
}

TEST(AsyncCopy, FillsWithZerosBeyondTheSource) {
  const char* tail = "ld.shared.b32 %d, [%s+4];";
  const AsyncOutcome o =
      run_async(copy_kernel("mov.u32 %n, 6;\ncp.async.cg.shared.global [%s], [%p], 16, %n;\n"
                            "cp.async.wait_all;",
                            tail));
  EXPECT_EQ(o.out[1], (1005u & 0xffff));
  const AsyncOutcome none =
      run_async(copy_kernel("mov.u32 %n, 0;\nmov.b64 %p, 0;\n"  // nothing is read at all
                            "cp.async.cg.shared.global [%s], [%p], 16, %n;\ncp.async.wait_all;"));
  EXPECT_EQ(none.out[7], 0u);
  const AsyncOutcome ignored =
      run_async(copy_kernel("setp.lt.u32 %x, %i, 8;\n"
                            "cp.async.cg.shared.global [%s], [%p], 16, %x;\ncp.async.wait_all;"));
  EXPECT_EQ(ignored.out[7], 0u);
  EXPECT_EQ(ignored.out[8], 1032u);
}

TEST(AsyncCopy, FaultsOfItsTwoAddresses) {
  const std::string wait = "cp.async.wait_all;";
  auto kind = [&](const std::string& copy) { return async_finding(copy_kernel(copy + wait)).kind; };
  EXPECT_EQ(kind("cp.async.cg.shared.global [%s+1024], [%p], 16;"), "out_of_bounds");
  EXPECT_EQ(kind("cp.async.cg.shared.global [%s], [%p+512], 16;"), "out_of_bounds");
  EXPECT_EQ(kind("cp.async.cg.shared.global [%s], [%p+4], 16;"), "misaligned");
  EXPECT_EQ(kind("cp.async.ca.shared.global [%s+4], [%p], 8;"), "misaligned");
  EXPECT_EQ(kind("mov.u32 %n, 17; cp.async.cg.shared.global [%s], [%p], 16, %n;"), "bad_copy");
}

TEST(AsyncCopy, EndlessCopiesTakeLittleMemory) {
  const AsyncOutcome o =
      run_async(copy_kernel("mov.u32 %n, 0;\nLOOP:\ncp.async.ca.shared.global [%s], [%p], 4;\n"
                            "add.u32 %n, %n, 1; setp.lt.u32 %x, %n, 5000; @%x bra LOOP;\n"
                            "cp.async.wait_all;"));
  EXPECT_EQ(o.out[2], 1008u);
}

TEST(AsyncCopy, WrongTextIsAnError) {
  for (const char* text : {"cp.async.cg.shared.global [%s], [%p], 8;", "cp.async.wait_group %n;",
                           "cp.async.ca.shared.global [%s], [%p], 5;"}) {
    EXPECT_FALSE(Module::parse(copy_kernel(text)).has_value()) << text;
  }
  const AsyncOutcome o = run_async(
      copy_kernel("cp.async.mbarrier.arrive.shared::cluster.b64 [%s];"), LaunchStatus::unsupported);
  EXPECT_NE(o.report.reason.find("cp.async.mbarrier.arrive"), std::string::npos);
}

TEST(Matrix, RowsAreCheckedLikeLoads) {
  const std::string load = "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%f0, %f1, %f2, %f3}, ";
  const Finding f = async_finding(copy_kernel("@%x mov.u32 %n, 0;\n" + load + "[%s+528];"));
  EXPECT_EQ(f.kind, "out_of_bounds");
  EXPECT_EQ(f.thread, 31);
  EXPECT_EQ(async_finding(copy_kernel(load + "[%s+8];")).kind, "misaligned");
  EXPECT_EQ(
      async_finding(copy_kernel("cp.async.ca.shared.global [%s], [%p], 4;\n" + load + "[%s];"))
          .kind,
      "async_copy_pending");
}

TEST(Matrix, NeedsTheWholeWarp) {
  const Finding f =
      async_finding(copy_kernel("setp.eq.u32 %x, %i, 3;\n@%x ret;\n"
                                "movmatrix.sync.aligned.m8n8.trans.b16 %d, %i;"));
  EXPECT_EQ(f.kind, "divergent_collective");
  EXPECT_NE(f.message.find("0xfffffff7"), std::string::npos) << f.message;
}

TEST(Matrix, UnknownShapesAreNamed) {
  const AsyncOutcome o = run_async(
      copy_kernel("mma.sync.aligned.m16n8k99.row.col.f32.f16.f16.f32 {%f0}, {%f1}, {%f2}, {%f3};"),
      LaunchStatus::unsupported);
  EXPECT_NE(o.report.reason.find("m16n8k99"), std::string::npos);
  EXPECT_FALSE(
      Module::parse(copy_kernel("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f0}, {%f1}, "
                                "{%f2}, {%f3};"))
          .has_value());  // too few registers
}

}  // namespace
}  // namespace cutegen::ptx
