// SPDX-License-Identifier: Apache-2.0
#include "ptx/model/pipes.h"

#include <gtest/gtest.h>

namespace cutegen::ptx {
namespace {

std::string pipe(const char* text) {
  return to_string(usage_of(text).pipe);
}

TEST(Pipes, OfPlainInstructions) {
  EXPECT_EQ(pipe("fma.rn.f32 %f1, %f2, %f3, %f4"), "fma");
  EXPECT_EQ(pipe("@!%p1 add.ftz.f32 %f1, %f2, %f3"), "fma");
  EXPECT_EQ(pipe("max.f32 %f1, %f2, %f3"), "alu");
  EXPECT_EQ(pipe("setp.lt.f32 %p1, %f2, %f3"), "alu");
  EXPECT_EQ(pipe("mad.lo.s32 %r1, %r2, %r3, %r4"), "alu");
  EXPECT_EQ(pipe("fma.rn.f16x2 %r1, %r2, %r3, %r4"), "half");
  EXPECT_EQ(pipe("fma.rn.f64 %fd1, %fd2, %fd3, %fd4"), "fp64");
  EXPECT_EQ(pipe("ex2.approx.ftz.f32 %f1, %f2"), "xu");
  EXPECT_EQ(pipe("tanh.approx.f32 %f1, %f2"), "xu");
  EXPECT_EQ(pipe("cvt.rn.f32.s32 %f1, %r2"), "convert");
  EXPECT_EQ(pipe("cvt.u64.u32 %rd1, %r2"), "alu");
  EXPECT_EQ(pipe("cvt.rn.bf16x2.f32 %r1, %f2, %f3"), "convert");
  EXPECT_EQ(pipe("ld.global.nc.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1]"), "lsu");
  EXPECT_EQ(pipe("ld.param.u64 %rd1, [p]"), "other");
  EXPECT_EQ(pipe("cp.async.cg.shared.global [%r1], [%rd1], 16"), "lsu");
  EXPECT_EQ(pipe("cp.async.commit_group"), "other");
  EXPECT_EQ(pipe("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r1}, [%r2]"), "lsu");
  EXPECT_EQ(pipe("shfl.sync.bfly.b32 %r1, %r2, 16, 31, -1"), "lsu");
  EXPECT_EQ(pipe("@%p1 bra $L__BB0_2"), "branch");
  EXPECT_EQ(pipe("bar.sync 0"), "other");
  EXPECT_EQ(pipe("mov.u32 %r1, %tid.x"), "other");
  EXPECT_EQ(pipe(""), "other");
  EXPECT_EQ(pipe("@%p1"), "other");
}

TEST(Pipes, MatrixInstructionsKnowTheirWorkAndType) {
  auto check = [](const char* text, const char* type, uint32_t flops) {
    const Usage u = usage_of(text);
    EXPECT_EQ(u.pipe, Pipe::tensor) << text;
    EXPECT_STREQ(to_string(u.tensor), type) << text;
    EXPECT_EQ(u.tensor_flops, flops) << text;
  };
  check("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f1}, {%r1}, {%r2}, {%f2}", "bf16",
        4096);
  check("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%r1}", "fp16", 4096);
  check("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f1}", "tf32", 2048);
  check("mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.s8.s32 {%r1}", "int8", 8192);
  check("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%fd1}", "fp64", 512);
  check("wmma.mma.sync.aligned.row.row.m16n16k16.f32.f32 {%f1}", "fp16", 8192);
  check("wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {%f1}", "bf16", 65536);
  EXPECT_EQ(pipe("wgmma.fence.sync.aligned"), "other");
  EXPECT_EQ(pipe("wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 {%r1}, [%r2]"), "lsu");
}

TEST(Pipes, WhatTheAssemblerExpands) {
  EXPECT_GT(usage_of("div.s32 %r1, %r2, %r3").issue, 10);
  EXPECT_GT(usage_of("rem.s64 %rd1, %rd2, %rd3").issue, usage_of("rem.s32 %r1, %r2, %r3").issue);
  EXPECT_EQ(usage_of("div.rn.f32 %f1, %f2, %f3").special, 1);
  EXPECT_GT(usage_of("div.rn.f32 %f1, %f2, %f3").issue,
            usage_of("div.full.f32 %f1, %f2, %f3").issue);
  EXPECT_GT(usage_of("ex2.approx.f32 %f1, %f2").issue,
            usage_of("ex2.approx.ftz.f32 %f1, %f2").issue);
  EXPECT_EQ(usage_of("add.s32 %r1, %r2, %r3").issue, 1);
  EXPECT_EQ(usage_of("add.s64 %rd1, %rd2, %rd3").issue, 2);
}

}  // namespace
}  // namespace cutegen::ptx
