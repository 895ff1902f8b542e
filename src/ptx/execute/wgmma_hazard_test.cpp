// SPDX-License-Identifier: Apache-2.0
// Wrong uses of wgmma: each gives a finding that names the fault. Correct kernels give none.
#include <bit>
#include <cmath>
#include <numeric>

#include "ptx/testing/wgmma_kernel.h"

namespace cutegen::ptx {
namespace {

constexpr uint64_t k128 = uint64_t{1} << 62;
// The descriptor of a matrix at `start` with a 128-byte swizzle.
constexpr uint64_t tile(uint64_t start, uint64_t stride = 1024) {
  return start >> 4 | uint64_t{1} << 16 | (stride >> 4) << 32 | k128;
}
const std::string kList = list_of("%c", 16);
const std::string kProduct = "wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 " + kList +
                             ", %d0, %d1, %p1, 1, 1, 0, 0;\n";
const std::string kFromRegisters = "wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 " + kList +
                                   ", {%a0, %a1, %a2, %a3}, %d1, %p1, 1, 1, 0;\n";

class WgmmaHazard : public testing::Test {
 protected:
  LaunchReport run(const WgmmaKernel& kernel, LaunchStatus status, int64_t threads = 128,
                   Order order = Order::in_order) {
    auto m = Module::parse(wgmma_text(kernel));
    if (!m) {
      ADD_FAILURE() << m.error().text();
      return {};
    }
    Sim sim;
    sim.options.threads = 1, sim.options.order = order;
    std::vector<uint8_t> image(kWgmmaImage, 0x3f);
    std::vector<uint32_t> out(1024 * 64), acc(out.size()), frag(4096);
    return sim.run(*m, "k", 1, threads,
                   {sim.output("out", out), sim.input("image", image), sim.input("acc", acc),
                    sim.input("frag", frag)},
                   0, status);
  }
  Finding found(const WgmmaKernel& kernel, const char* kind, int64_t threads = 128) {
    const auto r = run(kernel, LaunchStatus::finding, threads);
    if (!r.finding) return {};
    EXPECT_EQ(r.finding->kind, kind) << r.finding->message;
    EXPECT_GT(r.finding->ptx_line, 0);
    return *r.finding;
  }
  static WgmmaKernel kernel(const std::string& body, uint64_t a = tile(0),
                            uint64_t b = tile(32768)) {
    return {.registers = 16, .a = a, .b = b, .body = body};
  }
  static bool says(const Finding& f, const std::string& text) {
    return f.message.find(text) != std::string::npos;
  }
};

TEST_F(WgmmaHazard, ARightSequencePasses) {
  run(kernel(kWgmmaBegin + kProduct + kProduct + kWgmmaEnd), LaunchStatus::ok);
  run(kernel(kWgmmaBegin + kFromRegisters + kProduct + kWgmmaEnd), LaunchStatus::ok);
  // After wait_group 1, the results of the older of two groups may be used. Copying an accumulator
  // is not a use.
  run(kernel(std::string(kWgmmaBegin) + kProduct +
             "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 1;\n"
             "mov.b32 %r9, %c0; wgmma.wait_group.sync.aligned 0; add.u32 %r9, %r9, 1;\n"),
      LaunchStatus::ok);
}

TEST_F(WgmmaHazard, RegistersBeforeTheWait) {
  Finding f =
      found(kernel(kWgmmaBegin + kProduct + "add.u32 %r9, %c3, 1;\n" + kWgmmaEnd), "wgmma_pending");
  EXPECT_TRUE(says(f, "read of an accumulator of the wgmma at")) << f.message;
  f = found(kernel(kWgmmaBegin + kProduct + "add.u32 %c3, %r0, 1;\n" + kWgmmaEnd), "wgmma_pending");
  EXPECT_TRUE(says(f, "write of an accumulator")) << f.message;
  f = found(kernel(kWgmmaBegin + kFromRegisters + "add.u32 %a1, %r0, 1;\n" + kWgmmaEnd),
            "wgmma_pending");
  EXPECT_TRUE(says(f, "write of a register of A")) << f.message;
  f = found(kernel(kWgmmaBegin + kProduct + "wgmma.commit_group.sync.aligned;\n"), "wgmma_pending");
  EXPECT_TRUE(f.instruction.find("st.global") != std::string::npos) << f.instruction;
  // A wait does not cover an uncommitted product, and a copy of an accumulator inherits the hazard.
  found(kernel(kWgmmaBegin + kProduct + "wgmma.wait_group.sync.aligned 0;\n"), "wgmma_pending");
  found(kernel(kWgmmaBegin + kProduct + "mov.b32 %r9, %c0; add.u32 %r9, %r9, 1;\n" + kWgmmaEnd),
        "wgmma_pending");
}

TEST_F(WgmmaHazard, AMissingFence) {
  Finding f = found(kernel(kProduct + kWgmmaEnd), "missing_wgmma_fence");
  EXPECT_TRUE(says(f, "the first wgmma.mma_async")) << f.message;
  f = found(kernel(kWgmmaBegin + std::string("add.u32 %c1, %r0, 1;\n") + kProduct + kWgmmaEnd),
            "missing_wgmma_fence");
  EXPECT_TRUE(says(f, "written after the last wgmma.fence")) << f.message;
  found(kernel(kWgmmaBegin + std::string("xor.b32 %a1, %r0, 1;\n") + kFromRegisters + kWgmmaEnd),
        "missing_wgmma_fence");
}

TEST_F(WgmmaHazard, AnOverwrittenOperand) {
  const std::string store = "st.shared.b32 [%r1+32832], %r0;\n", one = "@%p3 " + store;
  const std::string pick = "setp.eq.u32 %p3, %r0, 0;\n";
  // A row of B starts at byte 32768. The next slices of k start 64 bytes later.
  Finding f = found(
      kernel(pick + kWgmmaBegin + kProduct + "@%p3 st.shared.b32 [%r1+32768], %r0;\n" + kWgmmaEnd),
      "wgmma_operand_overwritten");
  EXPECT_EQ(f.address, 32768u);
  ASSERT_TRUE(f.other);
  run(kernel(pick + kWgmmaBegin + kProduct + one + kWgmmaEnd), LaunchStatus::ok);
  run(kernel(pick + kWgmmaBegin + kProduct + kWgmmaEnd + "bar.sync 0;\n" +
             "@%p3 st.shared.b32 [%r1+32768], %r0;\n"),
      LaunchStatus::ok);
}

TEST_F(WgmmaHazard, AWriteThatNoBarrierOrders) {
  const std::string plain = "setp.eq.u32 %p3, %r0, 96; @%p3 st.shared.b32 [%r1+32768], %r0;\n";
  const std::string store = plain + "fence.proxy.async.shared::cta;\n";
  Finding f = found(kernel(store + kWgmmaBegin + kProduct + kWgmmaEnd), "shared_race");
  EXPECT_TRUE(f.instruction.find("wgmma") != std::string::npos) << f.instruction;
  run(kernel(store + "bar.sync 0;\n" + kWgmmaBegin + kProduct + kWgmmaEnd), LaunchStatus::ok);
  for (const char* wrong : {"", "fence.proxy.async.global;\n"}) {
    f = found(kernel(plain + wrong + "bar.sync 0;\n" + kWgmmaBegin + kProduct + kWgmmaEnd),
              "missing_proxy_fence");
    EXPECT_TRUE(says(f, "wgmma reads bytes [32768, 32784)")) << f.message;
  }
}

// The warps of a warpgroup share the check of B, but each needs its own synchronisation.
TEST_F(WgmmaHazard, AWriteThatABarrierOrdersForSomeWarps) {
  const std::string store =
      "setp.lt.u32 %p3, %r0, 96; setp.lt.u32 %p4, %r0, 32;\n"
      "@%p3 bra WAIT; st.shared.b32 [%r1+32768], %r1; fence.proxy.async;\n";
  auto body = [&](const std::string& threads, const std::string& guard) {
    return kernel(store + "bar.arrive 1, " + threads + "; bra GO;\nWAIT: " + guard +
                  "bar.sync 1, " + threads + ";\nGO: " + kWgmmaBegin + kProduct + kWgmmaEnd);
  };
  for (Order order : {Order::in_order, Order::reversed}) {
    run(body("128", ""), LaunchStatus::ok, 128, order);
    const auto r = run(body("96", "@!%p4 "), LaunchStatus::finding, 128, order);
    ASSERT_TRUE(r.finding);
    // The warp that arrives last at the first barrier goes on first: warp 3 or warp 0. If warp 3
    // does, it has already checked B for warp 0.
    const bool last = order == Order::in_order;
    EXPECT_EQ(r.finding->kind, last ? "shared_race" : "wgmma_operand_overwritten");
    EXPECT_EQ(r.finding->thread / 32, last ? 0 : 3);
  }
}

TEST_F(WgmmaHazard, AnotherShapeNeedsAFence) {
  const std::string narrow = "wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 " +
                             list_of("%c", 8) + ", %d0, %d1, %p1, 1, 1, 0, 0;\n";
  const Finding f =
      found(kernel(kWgmmaBegin + kProduct + narrow + kWgmmaEnd), "missing_wgmma_fence");
  EXPECT_TRUE(says(f, "different shapes")) << f.message;
  run(kernel(kWgmmaBegin + kProduct + "wgmma.fence.sync.aligned;\n" + narrow + kWgmmaEnd),
      LaunchStatus::ok);
}

TEST_F(WgmmaHazard, WarpsThatStayAway) {
  const std::string guard = "setp.lt.u32 %p3, %r0, 96;\n@!%p3 bra END;\n";
  Finding f =
      found(kernel(guard + kWgmmaBegin + kProduct + kWgmmaEnd + "END:\n"), "divergent_warpgroup");
  EXPECT_TRUE(says(f, "ended, but another warp of its warpgroup executed") ||
              says(f, "warp 3 of the warpgroup does not execute"))
      << f.message;
  f = found(kernel(kWgmmaBegin + kProduct + kWgmmaEnd), "divergent_warpgroup", 96);
  EXPECT_TRUE(says(f, "needs a warpgroup of four warps, but the CTA has 3")) << f.message;
  f = found(kernel("setp.lt.u32 %p3, %r0, 16;\n@!%p3 bra END;\n" + kWgmmaBegin + kProduct +
                   kWgmmaEnd + "END:\n"),
            "divergent_collective");
  // Warp 2 executes another instruction instead.
  f = found(kernel("shr.u32 %r9, %r0, 5; setp.eq.u32 %p3, %r9, 2;\n" + kWgmmaBegin +
                   "@%p3 bra B;\n" + kProduct + "bra END;\nB: " + kProduct + "END:\n" + kWgmmaEnd),
            "divergent_warpgroup");
  EXPECT_TRUE(says(f, "another warp of its warpgroup executed")) << f.message;
  f = found(kernel("shr.u32 %r9, %r0, 5; cvt.u64.u32 %rd12, %r9; shl.b64 %rd12, %rd12, 6;\n"
                   "add.s64 %d1, %d1, %rd12;\n" +
                   kWgmmaBegin + kProduct + kWgmmaEnd),
            "divergent_warpgroup");
  EXPECT_TRUE(says(f, "different descriptors")) << f.message;
}

TEST_F(WgmmaHazard, Descriptors) {
  auto bad = [&](uint64_t a, uint64_t b) {
    return found(kernel(kWgmmaBegin + kProduct + kWgmmaEnd, a, b), "bad_descriptor");
  };
  Finding f = bad(tile(256) | uint64_t{1} << 49, tile(32768));
  EXPECT_TRUE(says(f, "the descriptor of A has start address 0x100 with base offset 1"))
      << f.message;
  f = bad(tile(0), tile(32768, 512));
  EXPECT_TRUE(says(f, "the descriptor of B has stride byte offset 512")) << f.message;
  f = bad(tile(0), tile(32768, 0));
  EXPECT_TRUE(says(f, "multiple of the pattern's 1024 bytes")) << f.message;
  constexpr uint64_t kLeading = uint64_t{0x3fff} << 16;
  f = bad(tile(0) & ~k128 & ~kLeading, tile(32768));  // no swizzle, leading byte offset 0
  EXPECT_TRUE(says(f, "core matrices have 128 bytes and must not overlap")) << f.message;
  f = bad(tile(0) | uint64_t{1} << 46, tile(32768));
  EXPECT_TRUE(says(f, "reserved bits")) << f.message;
  // Without a swizzle, the halves of a slice may overlap.
  run(kernel(kWgmmaBegin + kProduct + kWgmmaEnd, tile(0) & ~k128, tile(32768)), LaunchStatus::ok);
  // A tile may begin inside a pattern, and the pattern anywhere if the base offset says so.
  run(kernel(kWgmmaBegin + kProduct + kWgmmaEnd, tile(128)), LaunchStatus::ok);
  run(kernel(kWgmmaBegin + kProduct + kWgmmaEnd, tile(128) | uint64_t{1} << 49), LaunchStatus::ok);
  // Groups of eight rows may lie at any distance in rows.
  run(kernel(kWgmmaBegin + kProduct + kWgmmaEnd, tile(0, 1280)), LaunchStatus::ok);
  f = found(kernel(kWgmmaBegin + kProduct + kWgmmaEnd, tile(0), tile(64512)), "out_of_bounds");
  EXPECT_TRUE(says(f, "wgmma reads B at offset")) << f.message;
  EXPECT_TRUE(says(f, "which has 65536 bytes")) << f.message;
}

TEST_F(WgmmaHazard, OtherFormsAreRefusedByName) {
  for (const char* opcode : {"wgmma.mma_async.sp.sync.aligned.m64n32k32.f32.bf16.bf16",
                             "wgmma.mma_async.sync.aligned.m64n12k16.f32.bf16.bf16",
                             "wgmma.mma_async.sync.aligned.m64n40k32.s32.s8.s8",
                             "wgmma.mma_async.sync.aligned.m64n32k16.f16.bf16.bf16",
                             "wgmma.mma_async.sync.aligned.m64n264k16.f32.f16.f16",
                             "wgmma.mma_async.sync.aligned.m64n32k256.s32.b1.b1.and.popc"}) {
    const auto r =
        run(kernel(kWgmmaBegin + (opcode + (" " + kList)) + ", %d0, %d1, %p1, 1, 1, 0, 0;"),
            LaunchStatus::unsupported);
    EXPECT_NE(r.reason.find(opcode), std::string::npos) << r.reason;
  }
  auto m = Module::parse(wgmma_text(kernel("wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 " +
                                           kList + ", %d0, %d1, %p1, 2, 1, 0, 0;")));
  ASSERT_FALSE(m.has_value());
  EXPECT_NE(m.error().text().find("imm-scale-a must be -1 or 1"), std::string::npos);
}

// Truncation makes long sums drift. Rounding to nearest does not.
TEST_F(WgmmaHazard, TruncationShowsInLongSums) {
  std::vector<float> image(kWgmmaImage / 4);
  for (size_t i = 0; i < image.size(); ++i)  // tf32 numbers between 1 and 2
    image[i] = 1.f + float(i * 2654435761u >> 22 & 1023) / 1024;
  std::string body = kWgmmaBegin;
  double exact = 0;
  float plain = 0;  // float32, rounded to nearest after each instruction
  for (uint64_t i = 0; i < 128; ++i) {
    const uint64_t a = i % 4 * 32, b = 32768 + i / 4 % 8 * 4096 + i / 32 * 32;
    body += "mov.b64 %d0, " + std::to_string(tile(a)) + "; mov.b64 %d1, " +
            std::to_string(tile(b)) + ";\nwgmma.mma_async.sync.aligned.m64n32k8.f32.tf32.tf32 " +
            kList + ", %d0, %d1, %p1, 1, 1;\n";
    double dot = 0;
    for (size_t k = 0; k < 8; ++k) dot += double(image[a / 4 + k]) * double(image[b / 4 + k]);
    exact += dot;
    plain = float(double(plain) + dot);
  }
  auto m = Module::parse(wgmma_text(kernel(body + kWgmmaEnd)));
  ASSERT_TRUE(m.has_value()) << m.error().text();
  Sim sim;
  std::vector<float> out(128 * 16), acc(out.size());
  std::vector<uint32_t> frag(512);
  sim.run(*m, "k", 1, 128,
          {sim.output("out", out), sim.input("image", image), sim.input("acc", acc),
           sim.input("frag", frag)});
  EXPECT_LT(out[0], exact);
  EXPECT_GT(exact - double(out[0]), 10 * std::abs(exact - double(plain)));
  EXPECT_NEAR(out[0], exact, 128 * 0x1p-12);  // at most one unit in the last place per instruction
}

}  // namespace
}  // namespace cutegen::ptx
