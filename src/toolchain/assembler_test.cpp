// SPDX-License-Identifier: Apache-2.0
// Tests assembler and disassembler on small PTX and in every way they can fail. Skips tests of the
// real tools if they are not installed.
#include "toolchain/assembler.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "base/file.h"
#include "base/hash.h"

namespace cutegen::toolchain {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

constexpr const char* kArch = "sm_90a";

std::string ptx(const std::string& body, const std::string& name = "k",
                const std::string& limits = {}) {
  return ".version 8.0\n.target sm_90a\n.address_size 64\n.global .align 4 .u32 counter;\n"
         ".visible .entry " +
         name + "(.param .u64 p)\n" + limits +
         "{\n.reg .b32 %r<60>;\n.reg .f32 %f<200>;\n.reg .b64 %rd<9>;\n"
         "ld.param.u64 %rd1, [p];\ncvta.to.global.u64 %rd2, %rd1;\n" +
         body + "\nret;\n}\n";
}

// Keeps forty values live across a barrier in sixteen registers.
std::string spilling() {
  std::string loads, stores;
  for (int i = 0; i < 40; ++i) {
    loads += fmt::format("ld.volatile.global.f32 %f{}, [%rd2+{}];\n", i, 4 * i);
    stores += fmt::format("st.volatile.global.f32 [%rd2+{}], %f{};\n", 4 * i, 39 - i);
  }
  return ptx(loads + "bar.sync 0;\n" + stores, "spill", ".maxnreg 24\n");
}

std::string tf32() {
  return ptx(
      "ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%rd2];\nld.global.v2.u32 {%r5, %r6}, [%rd2+16];\n"
      "mov.f32 %f5, 0f00000000;\n"
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, "
      "%r4}, {%r5, %r6}, {%f5, %f5, %f5, %f5};\n"
      "st.global.v4.f32 [%rd2], {%f1, %f2, %f3, %f4};",
      "gemm");
}

class AssemblerTest : public testing::Test {
 protected:
  void SetUp() override {
    ::setenv("CUTEGEN_BIN", CUTEGEN_BIN_DIR, 0);
    ::setenv("CUTEGEN_SHARE", CUTEGEN_SOURCE_DIR, 1);
    dir_ = fs::temp_directory_path() / ("cutegen_assembler_test_" + random_id());
    fs::create_directories(dir_ / "tools");
    if (auto found = find_tools()) {
      options_.paths.ptxas = found->ptxas;
      options_.paths.nvdisasm = found->nvdisasm;
    }
    options_.paths.cache_dir = dir_ / "cache";
  }
  void TearDown() override { fs::remove_all(dir_); }

  bool installed() const {
    return !options_.paths.ptxas.empty() && !options_.paths.nvdisasm.empty();
  }
  // A shell script that acts as a tool.
  fs::path script(const std::string& name, const std::string& lines) const {
    fs::path path = dir_ / "tools" / name;
    EXPECT_TRUE(write_file(path, "#!/bin/sh\n" + lines + "\n"));
    ::chmod(path.c_str(), 0700);
    return path;
  }
  AssemblyReport audit(const std::string& text) const {
    auto assembler = Assembler::open(options_);
    EXPECT_TRUE(assembler) << assembler.error().text();
    auto report = (*assembler)->audit(Context().with_timeout(seconds(120)), text, kArch);
    EXPECT_TRUE(report) << report.error().text();
    return report ? std::move(*report) : AssemblyReport{};
  }

  fs::path dir_;
  AssemblerOptions options_;
};

#define NEEDS_TOOLS() \
  if (!installed()) GTEST_SKIP() << "ptxas or nvdisasm is not installed"

TEST_F(AssemblerTest, SpillsAreSeenTwice) {
  NEEDS_TOOLS();
  AssemblyReport r = audit(spilling());
  ASSERT_TRUE(r.ok) << r.digest;
  ASSERT_EQ(r.audit.kernels.size(), 1u);
  const KernelAudit& k = r.audit.kernels[0];
  EXPECT_EQ(k.kernel, "spill");
  EXPECT_LE(k.registers, 24);
  EXPECT_GT(k.registers, 8);
  EXPECT_EQ(k.barriers, 1);
  EXPECT_GE(k.spill_store_bytes, 40);
  EXPECT_GE(k.stack_bytes, k.spill_store_bytes / 2);
  ASSERT_TRUE(k.code);
  EXPECT_GT(k.code->local_stores, 0);
  EXPECT_GT(k.code->local_loads, 0);
  EXPECT_THAT(r.audit.skipped, IsEmpty());
  EXPECT_THAT(r.audit.assembler, HasSubstr("ptxas 13."));
  EXPECT_THAT(r.audit.disassembler, HasSubstr("nvdisasm 13."));
}

TEST_F(AssemblerTest, MatrixInstructionsProveTheMathMode) {
  NEEDS_TOOLS();
  AssemblyReport r = audit(tf32());
  ASSERT_TRUE(r.ok) << r.digest;
  ASSERT_TRUE(r.audit.kernels.at(0).code);
  EXPECT_THAT(r.audit.kernels[0].code->mma, ElementsAre(Pair("HMMA.1688.F32.TF32", 1)));
  EXPECT_EQ(r.audit.kernels[0].spill_store_bytes, 0);
}

TEST_F(AssemblerTest, ClocksStateAndSharedMemory) {
  NEEDS_TOOLS();
  AssemblyReport r = audit(
      ptx(".shared .align 4 .b8 tile[256];\nmov.u32 %r1, %clock;\nmov.u64 %rd3, %globaltimer;\n"
          "cvt.u32.u64 %r2, %rd3;\nadd.u32 %r1, %r1, %r2;\n"
          "st.shared.u32 [tile], %r1;\nbar.sync 0;\nld.shared.u32 %r3, [tile+4];\n"
          "atom.global.add.u32 %r4, [counter], %r3;\nst.global.u32 [%rd2], %r4;"));
  ASSERT_TRUE(r.ok) << r.digest;
  const KernelAudit& k = r.audit.kernels.at(0);
  EXPECT_EQ(k.static_shared_bytes, 256);
  ASSERT_TRUE(k.code);
  EXPECT_EQ(k.code->clock_reads, 2);
  EXPECT_GT(k.code->instructions, 8);
  ASSERT_EQ(r.audit.globals.size(), 1u);
  EXPECT_EQ(r.audit.globals[0].name, "counter");
  EXPECT_TRUE(r.audit.globals[0].written);
}

TEST_F(AssemblerTest, WhatTheAssemblerRefusesIsTheProgramsFault) {
  NEEDS_TOOLS();
  AssemblyReport r = audit(ptx("frobnicate.u32 %r1, %r2;"));
  EXPECT_FALSE(r.ok);
  EXPECT_THAT(r.digest, HasSubstr("PTX line 12; error"));
  EXPECT_THAT(r.digest, HasSubstr("frobnicate"));
  r = audit("garbage \x01\x02 {");
  EXPECT_FALSE(r.ok);
  EXPECT_FALSE(r.digest.empty());
}

TEST_F(AssemblerTest, NewerPtxIsSkippedNotBlamed) {
  NEEDS_TOOLS();
  AssemblyReport r = audit(".version 99.9\n.target sm_90a\n.address_size 64\n");
  EXPECT_TRUE(r.ok);
  EXPECT_THAT(r.audit.skipped, ElementsAre(HasSubstr("does not know this PTX")));
  EXPECT_THAT(r.audit.kernels, IsEmpty());
}

TEST_F(AssemblerTest, ReportsComeFromTheCache) {
  NEEDS_TOOLS();
  EXPECT_FALSE(audit(tf32()).cached);
  AssemblyReport again = audit(tf32());
  EXPECT_TRUE(again.cached);
  EXPECT_EQ(to_json(again.audit), [&] {
    options_.use_cache = false;
    AssemblyReport fresh = audit(tf32());
    EXPECT_FALSE(fresh.cached);
    return to_json(fresh.audit);
  }());
}

TEST_F(AssemblerTest, SeveralModulesKeepTheirOrder) {
  NEEDS_TOOLS();
  auto assembler = Assembler::open(options_);
  ASSERT_TRUE(assembler);
  auto reports =
      (*assembler)->audit_all(Context(), {spilling(), tf32(), ptx("bar.sync 0;", "last")}, kArch);
  ASSERT_TRUE(reports) << reports.error().text();
  std::vector<std::string> names;
  for (const AssemblyReport& r : *reports) names.push_back(r.audit.kernels.at(0).kernel);
  EXPECT_THAT(names, ElementsAre("spill", "gemm", "last"));
}

// A module's report is the same together or alone, fresh or from the cache.
TEST_F(AssemblerTest, SeveralModulesGetTheReportsThatEachGetsAlone) {
  NEEDS_TOOLS();
  const std::vector<std::string> texts = {spilling(), tf32(), ptx("bar.sync 0;", "last")};
  options_.use_cache = false;
  std::vector<Json> alone;
  for (const std::string& text : texts) alone.push_back(to_json(audit(text).audit));
  options_.use_cache = true;
  auto assembler = Assembler::open(options_);
  ASSERT_TRUE(assembler);
  EXPECT_FALSE(audit(texts[1]).cached);
  auto together = (*assembler)->audit_all(Context(), texts, kArch);
  ASSERT_TRUE(together) << together.error().text();
  for (size_t i = 0; i < texts.size(); ++i) {
    EXPECT_EQ(to_json((*together)[i].audit), alone[i]);
    EXPECT_EQ((*together)[i].cached, i == 1);
  }
}

TEST_F(AssemblerTest, TheListingMayComeLater) {
  NEEDS_TOOLS();
  auto assembler = Assembler::open(options_);
  ASSERT_TRUE(assembler);
  const std::vector<std::string> texts = {tf32(), spilling()};
  auto reports = (*assembler)->assemble_all(Context(), texts, kArch);
  ASSERT_TRUE(reports) << reports.error().text();
  for (const AssemblyReport& r : *reports) {
    EXPECT_FALSE(r.listed);
    EXPECT_GT(r.audit.kernels.at(0).registers, 0);
    EXPECT_FALSE(r.audit.kernels[0].code);
    EXPECT_GT(r.code.size(), 1000U);
  }
  ASSERT_TRUE((*assembler)->list_all(Context(), texts, kArch, *reports));
  for (size_t i = 0; i < texts.size(); ++i) {
    EXPECT_TRUE((*reports)[i].listed);
    EXPECT_TRUE((*reports)[i].audit.kernels[0].code);
    EXPECT_EQ(to_json((*reports)[i].audit), to_json(audit(texts[i]).audit));  // from the cache
  }
}

// A spare gives the same report as a fresh tool, for each of several programs.
TEST_F(AssemblerTest, ToolsThatWaitGiveTheSameReports) {
  NEEDS_TOOLS();
  options_.use_cache = false;
  const std::vector<std::string> texts = {spilling(), tf32(), ptx("frobnicate.u32 %r1, %r2;")};
  auto cold = Assembler::open(options_), warm = Assembler::open(options_);
  ASSERT_TRUE(cold && warm);
  (*warm)->warm_up(kArch);
  for (int round = 0; round < 2; ++round)
    for (const std::string& text : texts) {
      auto a = (*cold)->audit(Context(), text, kArch), b = (*warm)->audit(Context(), text, kArch);
      ASSERT_TRUE(a && b);
      EXPECT_EQ(to_json(a->audit), to_json(b->audit));
      EXPECT_EQ(a->ok, b->ok);
      EXPECT_EQ(a->digest, b->digest);
      EXPECT_EQ(a->code, b->code);
      EXPECT_EQ(a->code.starts_with("\x7f"
                                    "ELF"),
                a->ok);
    }
  auto other = (*warm)->audit(Context(), texts[0], "sm_100a");  // needs other spares
  ASSERT_TRUE(other);
  EXPECT_THAT(other->audit.kernels, IsEmpty());
}

TEST_F(AssemblerTest, MachineCodeComesFromTheCacheToo) {
  NEEDS_TOOLS();
  AssemblyReport fresh = audit(tf32()), again = audit(tf32());
  EXPECT_TRUE(again.cached);
  EXPECT_GT(fresh.code.size(), 1000U);
  EXPECT_EQ(fresh.code, again.code);
}

TEST_F(AssemblerTest, NoAssemblerLeavesThePtxReading) {
  options_.paths.ptxas.clear();
  AssemblyReport r = audit(ptx("st.global.u32 [counter], %r1;"));
  EXPECT_TRUE(r.ok);
  EXPECT_THAT(r.audit.skipped, ElementsAre(HasSubstr("ptxas is missing")));
  EXPECT_EQ(r.audit.globals.size(), 1u);
  EXPECT_EQ(r.audit.assembler, "");
}

TEST_F(AssemblerTest, NoDisassemblerLeavesTheRegisters) {
  NEEDS_TOOLS();
  options_.paths.nvdisasm.clear();
  AssemblyReport r = audit(tf32());
  EXPECT_TRUE(r.ok);
  EXPECT_GT(r.audit.kernels.at(0).registers, 0);
  EXPECT_FALSE(r.audit.kernels[0].code);
  EXPECT_THAT(r.audit.skipped, ElementsAre(HasSubstr("nvdisasm is missing")));
}

TEST_F(AssemblerTest, AHangingAssemblerIsEnded) {
  options_.paths.ptxas = script("ptxas", "exec sleep 100");
  options_.timeout = milliseconds(300);
  auto start = Clock::now();
  AssemblyReport r = audit(tf32());
  EXPECT_FALSE(r.ok);
  EXPECT_THAT(r.digest, HasSubstr("longer than 0.3 s"));
  EXPECT_LT(Clock::now() - start, seconds(30));
  options_.timeout = seconds(20);
  options_.paths.ptxas = script("ptxas", "exit 0");  // works, because the timeout was not cached
  EXPECT_TRUE(audit(tf32()).ok);
}

TEST_F(AssemblerTest, ACrashingAssemblerIsTheProgramsFault) {
  options_.paths.ptxas = script("ptxas", "kill -SEGV $$");
  AssemblyReport r = audit(tf32());
  EXPECT_FALSE(r.ok);
  EXPECT_THAT(r.digest, HasSubstr("SIGSEGV"));
}

TEST_F(AssemblerTest, GarbageFromTheToolsIsNoReport) {
  options_.paths.ptxas = script("ptxas", "exec head -c 200000 /dev/urandom >&2");
  options_.paths.nvdisasm = script("nvdisasm", "exec head -c 200000 /dev/urandom");
  AssemblyReport r = audit(tf32());
  EXPECT_TRUE(r.ok);
  EXPECT_THAT(r.audit.kernels, IsEmpty());
  options_.paths.ptxas = script(
      "ptxas", "echo \"Compiling entry function 'k' for 'sm'\" >&2; echo ': Used 7 registers' >&2");
  r = audit(tf32());
  EXPECT_EQ(r.audit.kernels.at(0).registers, 7);
  EXPECT_FALSE(r.audit.kernels[0].code);
  EXPECT_THAT(r.audit.skipped, ElementsAre(HasSubstr("listed nothing for k")));
}

TEST_F(AssemblerTest, AFailingDisassemblerLeavesTheRegisters) {
  NEEDS_TOOLS();
  options_.paths.nvdisasm = script("nvdisasm", "echo 'no such luck' >&2; exit 3");
  AssemblyReport r = audit(tf32());
  EXPECT_TRUE(r.ok);
  EXPECT_GT(r.audit.kernels.at(0).registers, 0);
  EXPECT_THAT(r.audit.skipped,
              ElementsAre(HasSubstr("nvdisasm failed: no such luck (exit code 3)")));
}

TEST_F(AssemblerTest, TheToolsSeeNoNetworkAndStartNothing) {
  options_.paths.ptxas = script("ptxas", "(echo forked) >&2; ls /tmp >&2; exit 1");
  AssemblyReport r = audit(tf32());
  EXPECT_FALSE(r.ok);
  EXPECT_EQ(r.digest.find("forked"), std::string::npos);
}

TEST_F(AssemblerTest, AStoppedContextIsNoVerdict) {
  options_.paths.ptxas = script("ptxas", "exec sleep 100");
  auto assembler = Assembler::open(options_);
  ASSERT_TRUE(assembler);
  auto report = (*assembler)->audit(Context().with_timeout(milliseconds(200)), tf32(), kArch);
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().kind, ErrorKind::timeout);
}

TEST(FindTools, AnEmptyVariableMeansWithout) {
  ::setenv("CUTEGEN_BIN", CUTEGEN_BIN_DIR, 0);
  ::setenv("CUTEGEN_SHARE", CUTEGEN_SOURCE_DIR, 1);
  ::setenv("CUTEGEN_PTXAS", "", 1);
  auto without = find_tools();
  ::setenv("CUTEGEN_PTXAS", "/no/such/file", 1);
  auto wrong = find_tools();
  ::unsetenv("CUTEGEN_PTXAS");
  if (!find_tools()) GTEST_SKIP() << "no compiler here";
  ASSERT_TRUE(without);
  EXPECT_EQ(without->ptxas, "");
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().text(), HasSubstr("CUTEGEN_PTXAS names '/no/such/file'"));
}

#undef NEEDS_TOOLS

}  // namespace
}  // namespace cutegen::toolchain
