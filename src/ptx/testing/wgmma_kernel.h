// SPDX-License-Identifier: Apache-2.0
// For tests: builds a kernel of one warpgroup that copies an image (bytes from global memory) to
// shared memory and executes wgmma instructions on it.
//
// Contract: the kernel is `k(out, image, acc, frag)` with 128 threads. The kernel copies
// kWgmmaImage bytes, loads `registers` accumulators (%c0...) and four registers of A (%a0...) per
// thread, runs `body`, and stores the accumulators. %d0 and %d1 hold the descriptors of A and B.
//
// Example: Module m = wgmma_kernel({.registers = 64, .body = product("m64n128k16.f32.f16.f16")});
#pragma once

#include <string>

#include "ptx/testing/test_machine.h"

namespace cutegen::ptx {

inline constexpr int kWgmmaImage = 65536;

struct WgmmaKernel {
  int registers = 0;
  uint64_t a = 0, b = 0;  // descriptors
  std::string body;
  std::string shared = "65536";
};

inline std::string list_of(const std::string& name, int n) {
  std::string out = "{";
  for (int i = 0; i < n; ++i) out += (i ? ", " : "") + name + std::to_string(i);
  return out + "}";
}

inline std::string wgmma_text(const WgmmaKernel& k) {
  std::string s =
      ".version 9.0\n.target sm_90a\n.address_size 64\n"
      ".visible .entry k(.param .u64 out, .param .u64 image, .param .u64 acc, .param .u64 "
      "frag)\n{\n"
      ".reg .b32 %c<128>; .reg .b32 %a<4>; .reg .b32 %r<16>; .reg .b64 %d<2>; .reg .b64 %rd<16>;\n"
      ".reg .pred %p<6>; .shared .align 1024 .b8 s[" +
      k.shared +
      "];\n"
      "mov.u32 %r0, %tid.x; ld.param.u64 %rd0, [out]; ld.param.u64 %rd1, [image];\n"
      "ld.param.u64 %rd2, [acc]; ld.param.u64 %rd3, [frag]; mov.u32 %r1, s;\n"
      "shl.b32 %r2, %r0, 4; cvt.u64.u32 %rd4, %r2; add.s64 %rd5, %rd1, %rd4; add.u32 %r3, %r1, "
      "%r2;\nmov.u32 %r4, 0;\nCOPY: ld.global.v4.b32 {%r5, %r6, %r7, %r8}, [%rd5];\n"
      "st.shared.v4.b32 [%r3], {%r5, %r6, %r7, %r8}; add.s64 %rd5, %rd5, 2048;\n"
      "add.u32 %r3, %r3, 2048; add.u32 %r4, %r4, 2048; setp.lt.u32 %p0, %r4, " +
      std::to_string(kWgmmaImage) +
      ";\n@%p0 bra COPY;\nfence.proxy.async; bar.sync 0;\n"
      "mul.wide.u32 %rd6, %r0, " +
      std::to_string(4 * k.registers) +
      "; add.s64 %rd7, %rd2, %rd6; add.s64 %rd8, %rd0, %rd6;\n"
      "mul.wide.u32 %rd9, %r0, 16; add.s64 %rd9, %rd3, %rd9;\n"
      "ld.global.v4.b32 {%a0, %a1, %a2, %a3}, [%rd9];\nsetp.eq.u32 %p1, %r0, %r0; setp.ne.u32 %p2, "
      "%r0, %r0;\n";
  for (int i = 0; i < k.registers; ++i)
    s += "ld.global.b32 %c" + std::to_string(i) + ", [%rd7+" + std::to_string(4 * i) + "];\n";
  s += "mov.b64 %d0, " + std::to_string(int64_t(k.a)) + "; mov.b64 %d1, " +
       std::to_string(int64_t(k.b)) + ";\n" + k.body + "\n";
  for (int i = 0; i < k.registers; ++i)
    s += "st.global.b32 [%rd8+" + std::to_string(4 * i) + "], %c" + std::to_string(i) + ";\n";
  return s + "ret;\n}\n";
}

inline const std::string kWgmmaBegin = "wgmma.fence.sync.aligned;\n";
inline const std::string kWgmmaEnd =
    "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n";

}  // namespace cutegen::ptx
