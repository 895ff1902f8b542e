// SPDX-License-Identifier: Apache-2.0
// Applies the audit's rules to reports.
#include "eval/rungs/audit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cutegen::eval {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

BinaryAudit with_mma(const std::string& opcode) {
  BinaryAudit a;
  a.assembler = "ptxas 13.0.88";
  a.kernels.emplace_back();
  a.kernels[0].module = "kernel.cu";
  a.kernels[0].kernel = "gemm";
  a.kernels[0].registers = 40;
  a.kernels[0].code = CodeAudit{};
  if (!opcode.empty()) a.kernels[0].code->mma[opcode] = 8;
  return a;
}

TEST(AuditRung, ACleanProgramPasses) {
  AuditOutcome out = judge_audit(with_mma(""), MathMode::fp32, true);
  EXPECT_TRUE(out.end.passed);
  EXPECT_EQ(out.result, RungResult::passed);
  EXPECT_EQ(out.end.detail, "gemm: 40 registers, no spills");
  EXPECT_THAT(out.marks, IsEmpty());
}

TEST(AuditRung, MuchLocalMemoryIsMarked) {
  BinaryAudit a = with_mma("");
  a.kernels[0].stack_bytes = 16384;
  EXPECT_THAT(judge_audit(a, MathMode::fp32, true).marks, IsEmpty());
  a.kernels[0].stack_bytes = 32768;
  a.kernels.push_back(a.kernels[0]);  // the same kernel of another module
  a.kernels[1].stack_bytes = 20000;
  AuditOutcome out = judge_audit(a, MathMode::fp32, true);
  EXPECT_TRUE(out.end.passed);
  EXPECT_THAT(out.marks, ElementsAre("gemm has 32768 bytes of local memory per thread: on a GPU, "
                                     "cutegen overwrites 16384 of them between runs"));
}

TEST(AuditRung, LowerPrecisionIsMarkedWhereMeasuringTells) {
  AuditOutcome out = judge_audit(with_mma("HMMA.1688.F32.TF32"), MathMode::fp32, true);
  EXPECT_TRUE(out.end.passed);
  EXPECT_THAT(out.marks, ElementsAre("computes with HMMA.1688.F32.TF32 in gemm in math mode fp32: "
                                     "accepted because the measured error is small enough"));
}

TEST(AuditRung, LowerPrecisionIsRejectedWhereMeasuringCannotTell) {
  AuditOutcome out = judge_audit(with_mma("HMMA.1688.F32.TF32"), MathMode::fp32, false);
  EXPECT_FALSE(out.end.passed);
  EXPECT_EQ(out.end.status, Status::rejected);
  EXPECT_THAT(out.end.headline,
              HasSubstr("less precision than math mode fp32: HMMA.1688.F32.TF32 in gemm"));
}

TEST(AuditRung, EachModePermitsItsOwnPrecision) {
  struct Row {
    MathMode mode;
    const char* opcode;
    bool fine;
  };
  for (const Row& row :
       {Row{MathMode::fp32, "DMMA.8x8x4", true}, Row{MathMode::fp32, "HMMA.16816.F32", false},
        Row{MathMode::tf32, "HMMA.1688.F32.TF32", true},
        Row{MathMode::tf32, "HMMA.16816.F32.BF16", false},
        Row{MathMode::fp16, "HMMA.16816.F32", true},
        Row{MathMode::fp16, "QGMMA.64x64x32.F32.E4M3.E4M3", false},
        Row{MathMode::bf16, "HGMMA.64x64x16.F32.BF16", true},
        Row{MathMode::bf16, "IMMA.16832.S8.S8", false}})
    EXPECT_EQ(judge_audit(with_mma(row.opcode), row.mode, false).end.passed, row.fine)
        << to_string(row.mode) << " " << row.opcode;
}

TEST(AuditRung, OutputsPermitTheirOwnPrecision) {
  Task task;
  task.math_mode = MathMode::fp32;
  task.tensors.push_back(
      {.name = "out.0", .role = TensorRole::output, .dtype = DType::f32, .shape = {4}});
  task.tensors.push_back(
      {.name = "out.1", .role = TensorRole::output, .dtype = DType::f32, .shape = {4}});
  auto judged = [&](const char* opcode, bool proven) {
    return judge_audit(with_mma(opcode), task, proven);
  };
  EXPECT_FALSE(judged("HMMA.1688.F32.TF32", false).end.passed);
  task.tf32_convolutions = true;
  EXPECT_TRUE(judged("HMMA.1688.F32.TF32", false).end.passed);
  EXPECT_THAT(judged("HMMA.1688.F32.TF32", true).marks, IsEmpty());
  EXPECT_THAT(judged("HMMA.16816.F32.BF16", true).marks,
              ElementsAre(HasSubstr("convolutions in tf32 (as PyTorch ships): accepted")));
  task.tf32_convolutions = false;
  task.math_mode = MathMode::bf16;
  task.tensors[1].math_mode = MathMode::fp32;
  EXPECT_TRUE(judged("HMMA.16816.F32.BF16", false).end.passed);  // out.0 may use it
  EXPECT_THAT(judged("HMMA.16816.F32.BF16", true).marks,
              ElementsAre(HasSubstr("in math mode bf16, out.1 in fp32: accepted")));
  EXPECT_FALSE(judged("QGMMA.64x64x32.F32.E4M3.E4M3", false).end.passed);
}

TEST(AuditRung, WhatTellsLaunchesApartIsRejected) {
  BinaryAudit a = with_mma("");
  a.unusual_reads = {"%smid"};
  AuditOutcome out = judge_audit(a, MathMode::fp32, true);
  EXPECT_TRUE(out.end.passed);
  EXPECT_THAT(out.marks, ElementsAre("reads %smid: its results may depend on where it runs"));
  a.unusual_reads = {"%gridid", "%smid"};
  out = judge_audit(a, MathMode::fp32, true);
  EXPECT_EQ(out.end.status, Status::rejected);
  EXPECT_THAT(out.end.headline, HasSubstr("reads %gridid, which may change from launch"));
  a.unusual_reads = {kConstantByAddress};
  out = judge_audit(a, MathMode::fp32, true);
  EXPECT_EQ(out.end.status, Status::rejected);
  EXPECT_THAT(out.end.headline, HasSubstr("reads constant memory by address"));
}

TEST(AuditRung, StateInGlobalVariablesIsRejected) {
  BinaryAudit a = with_mma("");
  a.globals = {{.module = "kernel.cu", .name = "table", .bytes = 16, .written = false}};
  EXPECT_TRUE(judge_audit(a, MathMode::fp32, true).end.passed);
  a.globals.push_back({.module = "kernel.cu", .name = "counter", .bytes = 4, .written = true});
  AuditOutcome out = judge_audit(a, MathMode::fp32, true);
  EXPECT_EQ(out.end.status, Status::rejected);
  EXPECT_THAT(out.end.headline, HasSubstr("'counter' in global memory (4 bytes)"));
}

TEST(AuditRung, CallsOfTheRuntime) {
  BinaryAudit a = with_mma("");
  a.device_calls = {"__assertfail"};
  EXPECT_TRUE(judge_audit(a, MathMode::fp32, true).end.passed);
  a.device_calls = {"malloc"};
  EXPECT_EQ(judge_audit(a, MathMode::fp32, true).end.status, Status::failed);
  a.device_calls = {"cudaLaunchDeviceV2", "malloc"};  // the worse finding decides
  EXPECT_EQ(judge_audit(a, MathMode::fp32, true).end.status, Status::rejected);
  a.device_calls = {"malloc", "cudaLaunchDeviceV2"};
  EXPECT_EQ(judge_audit(a, MathMode::fp32, true).end.status, Status::rejected);
}

TEST(AuditRung, ClockReadsAreMarked) {
  BinaryAudit a = with_mma("");
  a.kernels[0].code->clock_reads = 2;
  AuditOutcome out = judge_audit(a, MathMode::fp32, true);
  EXPECT_TRUE(out.end.passed);
  EXPECT_THAT(out.marks, ElementsAre(HasSubstr("gemm reads the clock")));
}

TEST(AuditRung, WithoutTheAssemblerItIsSkippedWithTheReason) {
  BinaryAudit a;
  a.skipped = {"registers and machine code: ptxas is missing"};
  AuditOutcome out = judge_audit(a, MathMode::fp32, true);
  EXPECT_TRUE(out.end.passed);
  EXPECT_EQ(out.result, RungResult::skipped);
  EXPECT_THAT(out.end.detail, HasSubstr("ptxas is missing"));
  a.globals = {{.module = "kernel.cu",
                .name = "counter",
                .bytes = 4,
                .written = true}};  // known from the PTX
  EXPECT_EQ(judge_audit(a, MathMode::fp32, true).end.status, Status::rejected);
}

TEST(AuditRung, RegistersOfABuild) {
  BinaryAudit a = with_mma("");
  EXPECT_EQ(registers_of(a, "kernel.cu", "gemm"), 40);
  EXPECT_EQ(registers_of(a, "kernel.cu|N=2", "gemm"), 0);
  EXPECT_EQ(registers_of(a, "kernel.cu", "other"), 0);
}

}  // namespace
}  // namespace cutegen::eval
