// SPDX-License-Identifier: Apache-2.0
#include "toolchain/binary_text.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cutegen::toolchain {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

constexpr const char* kLog = R"(ptxas info    : 24 bytes gmem, 8 bytes cmem[4]
ptxas info    : Compiling entry function 'calls' for 'sm_90a'
ptxas info    : Function properties for calls
    32 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 18 registers, used 0 barriers, 48 bytes cumulative stack size
ptxas info    : Compile time = 10.044 ms
ptxas info    : Function properties for _Z6helperf
    16 bytes stack frame, 4 bytes spill stores, 12 bytes spill loads
ptxas info    : Compiling entry function 'spill' for 'sm_90a'
ptxas info    : Function properties for spill
    544 bytes stack frame, 784 bytes spill stores, 788 bytes spill loads
ptxas info    : Used 32 registers, used 1 barriers, 2048 bytes smem, 400 bytes cmem[0]
)";

TEST(PtxasLog, ResourcesOfEachEntry) {
  auto kernels = read_ptxas_log(kLog);
  ASSERT_EQ(kernels.size(), 2u);
  EXPECT_EQ(kernels[0].kernel, "calls");
  EXPECT_EQ(kernels[0].registers, 18);
  EXPECT_EQ(kernels[0].stack_bytes, 48);
  EXPECT_EQ(kernels[0].spill_store_bytes, 4);  // from the function that it calls
  EXPECT_EQ(kernels[0].spill_load_bytes, 12);
  EXPECT_EQ(kernels[1].registers, 32);
  EXPECT_EQ(kernels[1].barriers, 1);
  EXPECT_EQ(kernels[1].static_shared_bytes, 2048);
  EXPECT_EQ(kernels[1].stack_bytes, 544);
  EXPECT_EQ(kernels[1].spill_store_bytes, 784);
}

TEST(PtxasLog, GarbageIsLeftOut) {
  EXPECT_THAT(read_ptxas_log(""), IsEmpty());
  EXPECT_THAT(read_ptxas_log("ptxas info : Used 9 registers\n0 bytes stack frame"), IsEmpty());
  EXPECT_THAT(read_ptxas_log("Compiling entry function '" + std::string(5000, 'x') + "' for"),
              IsEmpty());
  auto odd = read_ptxas_log(
      "Compiling entry function 'k' for\n: Used 99999999999999999999 registers, used -4 "
      "barriers\n");
  ASSERT_EQ(odd.size(), 1u);
  EXPECT_EQ(odd[0].registers, 0);
  EXPECT_EQ(odd[0].barriers, 4);
  std::string many;
  for (int i = 0; i < 9000; ++i) many += "Compiling entry function 'k' for\n";
  EXPECT_EQ(read_ptxas_log(many).size(), 4096u);
}

constexpr const char* kSass = R"sass(
  .headerflags  @"EF_CUDA_64BIT_ADDRESS EF_CUDA_SM90 EF_CUDA_VIRTUAL_SM(EF_CUDA_SM90)"
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0020*/                   CS2R R2, SR_CLOCKLO ;
        /*0030*/              @!P0 S2UR UR6, SR_CLOCKLO ;
        /*0050*/                   CS2R R4, SR_GLOBALTIMERLO ;
        /*0060*/                   S2R R9, SR_TID.X ;
        /*0070*/                   CALL.REL.NOINC 0x200 ;
        /*0080*/                   CALL.ABS.NOINC R6 ;
        /*0090*/                   BRX R2 -0xc0 ;
        /*00a0*/                   HMMA.1688.F32.TF32 R12, R8, R6, RZ ;
        /*00b0*/             @UP1 HMMA.1688.F32.TF32 R12, R8, R6, R12 ;
        /*00c0*/                   HFMA2.MMA R5, R0, R5, R4 ;
        /*00d0*/                   STL [R1+0x28], R21 ;
        /*00e0*/               @P0 LDL.64 R5, [R12] ;
        /*00f0*/                   NOP;
.L_x_3:
        /*0100*/                   EXIT ;
        /*0180*/                   HMMA.16816.F32 R12, R8, R6, R12 ;
)sass";

TEST(Sass, CountsWhatMattersForEachPiece) {
  auto code = read_sass(kSass, {0x100, 0x100, 0x180});
  ASSERT_EQ(code.size(), 3u);
  const CodeAudit& c = code[0];
  EXPECT_EQ(c.instructions, 13);
  EXPECT_EQ(c.clock_reads, 3);
  EXPECT_EQ(c.calls, 2);
  EXPECT_EQ(c.indirect, 2);
  EXPECT_EQ(c.local_stores, 1);
  EXPECT_EQ(c.local_loads, 1);
  EXPECT_THAT(c.mma, ElementsAre(Pair("HMMA.1688.F32.TF32", 2)));
  EXPECT_EQ(code[1].instructions, 0);  // an empty piece has none
  EXPECT_EQ(code[2].instructions, 1);  // code beyond the last piece belongs to none
  EXPECT_THAT(code[2].mma, IsEmpty());
}

// Only the inner one of two nested loops is a part of its own. The padding and the code
// that is called at the end do not count.
TEST(Sass, TheShapeOfTheCodeHasItsInnermostLoops) {
  auto code = read_sass(R"sass(
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0010*/                   LDG.E R2, desc[UR8][R4.64] ;
        /*0020*/                   LDS R3, [R4] ;
        /*0030*/                   FADD R3, R3, R2 ;
        /*0040*/               @P1 BRA 0x20 ;
        /*0050*/                   BAR.SYNC.DEFER_BLOCKING 0x0 ;
        /*0060*/                   CALL.REL.NOINC 0xb0 ;
        /*0070*/               @P0 BRA 0x10 ;
        /*0080*/                   HMMA.1688.F32.TF32 R12, R8, R6, RZ ;
        /*0090*/                   NOP ;
        /*00a0*/                   EXIT ;
        /*00b0*/                   FFMA R1, R2, R3, R4 ;
        /*00c0*/                   RET.REL.NODEC R4 0x0 ;
        /*00d0*/                   BRA 0xd0 ;
        /*00e0*/                   NOP ;
)sass",
                        {0xf0});
  const CodeShape& shape = code.at(0).shape.value();
  EXPECT_EQ(code[0].instructions, 13);
  ASSERT_EQ(shape.loops.size(), 1u);
  EXPECT_EQ(shape.loops[0].instructions, 3);
  EXPECT_THAT(shape.loops[0].marks, ElementsAre(Pair("load_shared", 1)));
  EXPECT_EQ(shape.outside.instructions, 7);
  EXPECT_THAT(shape.outside.marks,
              ElementsAre(Pair("barrier", 1), Pair("load", 1), Pair("product", 1)));
}

// The trap after the last instruction is no loop.
TEST(Sass, CodeWithoutLoopsHasOnePart) {
  auto code = read_sass(R"sass(
        /*0000*/                   LDG.E R2, desc[UR8][R4.64] ;
        /*0010*/              @!P0 BRA 0x30 ;
        /*0020*/                   STG.E desc[UR8][R4.64], R2 ;
        /*0030*/                   EXIT ;
        /*0040*/                   BRA 0x40 ;
)sass",
                        {0x80});
  EXPECT_THAT(code.at(0).shape.value().loops, IsEmpty());
  EXPECT_EQ(code[0].shape->outside.instructions, 4);
  std::string many;
  for (int i = 0; i < 100; ++i)
    many += fmt::format("/*{:04x}*/ IADD3 R1 ;\n/*{:04x}*/ @P0 BRA {:#x} ;\n", i * 32, i * 32 + 16,
                        i * 32);
  EXPECT_FALSE(read_sass(many, {0x10000}).at(0).shape);
}

TEST(Sass, GarbageIsLeftOut) {
  EXPECT_THAT(read_sass("", {}), IsEmpty());
  EXPECT_THAT(read_sass(kSass, {}), IsEmpty());
  auto odd = read_sass(
      "/*\n/*0*/\n/*0*/ @P0\n/*0*/ {\n/*0*/ hmma ;\n/*x*/ HMMA R1 ;\n/**/ HMMA ;\n"
      "/*ffffffffffffffffffff*/ HMMA ;\nHMMA ;\n/*0*/ " +
          std::string(100, 'H') + " ;\n",
      {0x1000});
  EXPECT_EQ(odd.at(0).instructions, 0);
  std::string many;
  for (int i = 0; i < 1000; ++i) many += "/*0*/ HMMA.V" + std::to_string(i) + " R1 ;\n";
  EXPECT_EQ(read_sass(many, {16}).at(0).mma.size(), 256u);
}

// The names of the used variables, with a "!" before those that may be written.
std::vector<std::string> uses(const std::string& body, const std::string& declarations = {}) {
  PtxUse use = read_ptx_use(
      ".version 9.0\n.target sm_90a\n.address_size 64\n"
      ".global .align 4 .u32 counter;\n.global .align 4 .b8 table[16] = {0, 0, 128, 63};\n" +
      declarations +
      ".visible .entry k(.param .u64 .ptr .global .align 16 k_param_0)\n.maxntid 8, 1, 1\n{\n" +
      ".reg .b64 %rd<9>;\n" + body + "\nret;\n}\n");
  std::vector<std::string> out;
  for (const GlobalAudit& g : use.globals) out.push_back((g.written ? "!" : "") + g.name);
  return out;
}

TEST(PtxUse, WhatIsNotReferredToIsNotNamed) {
  EXPECT_THAT(uses("ld.param.u64 %rd1, [k_param_0];\nst.global.u32 [%rd1], %r1;"), IsEmpty());
}

TEST(PtxUse, ReadingIsFine) {
  EXPECT_THAT(uses("ld.global.u32 %r1, [table+4];"), ElementsAre("table"));
  EXPECT_THAT(
      uses("mov.u64 %rd1, table;\nadd.s64 %rd2, %rd1, %rd3;\nld.global.nc.f32 %f1, [%rd2];\n"
           "st.global.f32 [%rd5], %f1;"),
      ElementsAre("table"));
}

TEST(PtxUse, StoresAreFollowedThroughRegisters) {
  EXPECT_THAT(uses("st.global.u32 [counter], %r1;"), ElementsAre("!counter"));
  EXPECT_THAT(uses("@!%p1 st.global.u32 [counter], %r1;"), ElementsAre("!counter"));
  EXPECT_THAT(uses("mov.u64 %rd1, counter;\ncvta.global.u64 %rd2, %rd1;\nadd.s64 %rd3, %rd2, 4;\n"
                   "atom.global.add.u32 %r1, [%rd3], 1;"),
              ElementsAre("!counter"));
  EXPECT_THAT(uses("mov.u64 %rd1, table;\nred.global.add.u32 [%rd1], 1;"), ElementsAre("!table"));
}

TEST(PtxUse, LoopsAreFollowed) {
  EXPECT_THAT(uses("L:\nst.global.u32 [%rd3], %r1;\nmov.u64 %rd3, %rd2;\nmov.u64 %rd2, %rd1;\n"
                   "mov.u64 %rd1, counter;\nbra L;"),
              ElementsAre("!counter"));
}

TEST(PtxUse, AnAddressThatEscapesCountsAsWritten) {
  EXPECT_THAT(uses("mov.u64 %rd1, counter;\nst.local.u64 [%rd4], %rd1;"), ElementsAre("!counter"));
  EXPECT_THAT(uses("mov.u64 %rd1, counter;\n{\n.param .b64 p;\nst.param.b64 [p], %rd1;\n"
                   "call.uni helper, (p);\n}"),
              ElementsAre("!counter"));
  EXPECT_THAT(uses("ld.global.u64 %rd1, [pointer];",
                   ".global .align 8 .u64 pointer[1] = {generic(counter)};\n"),
              ElementsAre("!counter", "pointer"));
}

TEST(PtxUse, DirectivesWithoutAnEndHideNothing) {
  EXPECT_THAT(uses(".loc 1 2 3\nst.global.u32 [counter], %r1;"), ElementsAre("!counter"));
  EXPECT_THAT(uses(".loc 1 2 3 st.global.u32 [counter], %r1;"), ElementsAre("!counter"));
  EXPECT_THAT(uses(".loc 1 2 3, function_name $L__info+16, inlined_at 1 2 3 st.global.u32 "
                   "[counter], %r1;"),
              ElementsAre("!counter"));
  EXPECT_THAT(uses(".pragma \"nounroll; {\";\nst.global.u32 [counter], %r1;"),
              ElementsAre("!counter"));
  EXPECT_THAT(uses("mov.b64 {%r1, %r2}, %rd1;\nst.global.u32 [counter], %r1;"),
              ElementsAre("!counter"));
  EXPECT_THAT(uses("// st.global.u32 [counter], %r1;\n/* st.global.u32 [counter], %r1; */"),
              IsEmpty());
}

TEST(PtxUse, MarksEndWithTheFunction) {
  EXPECT_THAT(
      uses("mov.u64 %rd1, table;\nret;\n}\n.visible .entry m()\n{\nst.global.u32 [%rd1], %r1;"),
      ElementsAre("table"));
}

std::vector<std::string> unusual(const std::string& body) {
  return read_ptx_use(
             ".version 9.0\n.target sm_90a\n.const .align 4 .b8 table[16] = {0, 0, 128, 63};\n"
             ".global .align 4 .u32 other;\n.visible .entry k()\n{\n.reg .b64 %rd<9>;\n" +
             body + "\nret;\n}\n")
      .unusual_reads;
}

TEST(PtxUse, SpecialRegistersThatTellLaunchesApartAreNamed) {
  EXPECT_THAT(unusual("mov.u64 %rd1, %gridid;\nmov.u32 %r1, %smid;\nmov.u32 %r2, %tid.x;"),
              ElementsAre("%gridid", "%smid"));
  EXPECT_THAT(unusual("mov.u32 %r1, %warpid;"), ElementsAre("%warpid"));
  EXPECT_THAT(unusual("mov.b32 %r1, %envreg3;\nmov.u32 %r2, %envreg1;\nmov.u32 %r3, %pm0;"),
              ElementsAre("%envreg3", "%pm0"));
  EXPECT_THAT(unusual("@%p1 mov.u64 {%r1, %r2}, %gridid;"), ElementsAre("%gridid"));
  EXPECT_THAT(unusual("// mov.u64 %rd1, %gridid;\nmov.u32 %r1, %ntid.x;"), IsEmpty());
}

TEST(PtxUse, ConstantMemoryIsReadThroughItsVariables) {
  EXPECT_THAT(unusual("ld.const.u32 %r1, [table+4];"), IsEmpty());
  EXPECT_THAT(unusual("mov.u64 %rd1, table;\nadd.s64 %rd2, %rd1, %rd3;\n"
                      "@!%p1 ld.const.v2.u32 {%r1, %r2}, [%rd2+8];\ncvta.const.u64 %rd4, %rd2;"),
              IsEmpty());
  for (const char* bad :
       {"ld.const.u32 %r1, [%rd1];", "ld.const.u32 %r1, [256];", "cvta.const.u64 %rd2, %rd1;",
        "mov.u64 %rd1, other;\ncvta.to.const.u64 %rd2, %rd1;", "@%p1 ld.const.u32 %r1, [%rd1+4];"})
    EXPECT_THAT(unusual(bad), ElementsAre(kConstantByAddress)) << bad;
}

TEST(PtxUse, CallsOfTheRuntimeAreNamed) {
  PtxUse use = read_ptx_use(
      ".extern .func  (.param .b64 func_retval0) malloc\n(\n.param .b64 malloc_param_0\n)\n;\n"
      ".extern .func free(.param .b64 p);\n"
      ".visible .entry k()\n{\n{\ncall.uni (retval0), malloc, (param0);\n}\nret;\n}\n");
  EXPECT_THAT(use.device_calls, ElementsAre("malloc"));
}

TEST(PtxUse, SizesAreInBytes) {
  PtxUse use = read_ptx_use(
      ".visible .global .align 8 .f64 a[3][4];\n.global .b8 b[7];\n"
      ".visible .entry k()\n{\nld.global.f64 %d, [a];\nld.global.u8 %r, [b];\n}\n");
  ASSERT_EQ(use.globals.size(), 2u);
  EXPECT_EQ(use.globals[0].bytes, 96);
  EXPECT_EQ(use.globals[1].bytes, 7);
}

TEST(PtxUse, GarbageEnds) {
  for (const char* text : {"", "{", "}}}}", "\"", "/*", ".global", ".global ;", "@", "@ ;", "@%p",
                           ".loc", ".loc 1", ".file 1 \"x", ".extern .func (", "st.global.u32 [",
                           ".entry {", ".global .u32 x[99999999999999][99999999999999];{x;}"})
    EXPECT_LE(read_ptx_use(text).globals.size(), 1u) << text;
}

TEST(PtxUse, ACrowdOfMarksIsGivenUpSafely) {
  std::string text, body;
  for (int i = 0; i < 1600; ++i) {
    std::string n = std::to_string(i);
    text += ".global .u32 v" + n + ";\n";
    body += "add.s64 %r" + std::to_string(i + 1) + ", %r" + n + ", v" + n + ";\n";
  }
  PtxUse use = read_ptx_use(text + ".visible .entry k()\n{\n" + body + "}\n");
  ASSERT_EQ(use.globals.size(), 1600u);
  for (const GlobalAudit& g : use.globals) EXPECT_TRUE(g.written);
}

}  // namespace
}  // namespace cutegen::toolchain
