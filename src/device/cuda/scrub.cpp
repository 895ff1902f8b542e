// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/scrub.h"

#include <fmt/format.h>

namespace cutegen::device::cuda {
namespace {

constexpr int kHeld = 224;         // registers per thread that hold the value at the same time
constexpr int kLocalBytes = 1024;  // per thread

// Volatile loads fill the registers before a barrier. The factor after the barrier is unknown at
// compile time, so all registers stay live across the barrier.
std::string registers_kernel() {
  std::string out = fmt::format(R"(.visible .entry scrub_registers(.param .u32 scrub_registers_v,
  .param .u64 scrub_registers_p)
.maxntid 256, 1, 1
{{
  .reg .pred %p<2>;
  .reg .b32 %r<8>;
  .reg .b32 %h<{0}>;
  .reg .b64 %rd<2>;
  .shared .align 4 .b8 pool[1024];
  ld.param.u32 %r1, [scrub_registers_v];
  ld.param.u64 %rd1, [scrub_registers_p];
  mov.u32 %r2, %tid.x;
  shl.b32 %r3, %r2, 2;
  mov.u32 %r4, pool;
  add.u32 %r3, %r3, %r4;
  xor.b32 %r2, %r2, %r1;
  st.volatile.shared.u32 [%r3], %r2;
  bar.sync 0;
)",
                                kHeld);
  for (int i = 0; i < kHeld; ++i)
    out += fmt::format("  ld.volatile.shared.u32 %h{}, [pool+{}];\n", i, 4 * i);
  out += "  bar.sync 0;\n  ld.volatile.shared.u32 %r5, [%r3];\n  mov.u32 %r6, 1;\n";
  for (int i = 0; i < kHeld; ++i) out += fmt::format("  mad.lo.u32 %r6, %r6, %r5, %h{};\n", i);
  return out + R"(  setp.eq.u32 %p1, %r6, 305419896;
  @%p1 st.global.u32 [%rd1], %r6;
  ret;
}
)";
}

// Reads back one word, chosen at run time, so that the compiler must keep the stores.
std::string local_kernel() {
  return fmt::format(R"(.visible .entry scrub_local(.param .u32 scrub_local_v,
  .param .u64 scrub_local_p)
.maxntid 512, 1, 1
.minnctapersm 4
{{
  .local .align 16 .b8 stash[{0}];
  .reg .pred %p<3>;
  .reg .b32 %r<6>;
  .reg .b64 %rd<6>;
  ld.param.u32 %r1, [scrub_local_v];
  ld.param.u64 %rd4, [scrub_local_p];
  mov.u64 %rd1, stash;
  mov.u64 %rd2, %rd1;
  mov.u32 %r2, 0;
NEXT:
  xor.b32 %r3, %r1, %r2;
  st.local.v4.u32 [%rd2], {{%r3, %r1, %r3, %r1}};
  add.s64 %rd2, %rd2, 16;
  add.u32 %r2, %r2, 16;
  setp.lt.u32 %p1, %r2, {0};
  @%p1 bra NEXT;
  and.b32 %r4, %r1, {1};
  cvt.u64.u32 %rd3, %r4;
  add.s64 %rd3, %rd1, %rd3;
  ld.local.u32 %r5, [%rd3];
  setp.eq.u32 %p2, %r5, 305419896;
  @%p2 st.global.u32 [%rd4], %r5;
  ret;
}}
)",
                     kLocalBytes, kLocalBytes - 4);
}

}  // namespace

std::string scrub_ptx() {
  return ".version 7.0\n.target sm_70\n.address_size 64\n" + registers_kernel() + local_kernel();
}

void Scrubber::unload() {
  if (module_) driver_.module_unload(module_);
  module_ = nullptr;
}

void Scrubber::miss(const char* what) {
  missing_.emplace_back(what);
}

void Scrubber::prepare() {
  if (prepared_) return;
  prepared_ = true;
  const std::string text = scrub_ptx();
  const bool loaded = driver_.module_load(&module_, text.c_str()) == kOk;
  if (!loaded) module_ = nullptr;
  for (Kernel& k : kernels_) {
    if (loaded && driver_.module_function(&k.function, module_, k.name) == kOk) continue;
    k.function = nullptr;
    miss(k.what);
  }
}

void Scrubber::run(Handle stream, uint32_t value, Address spare) {
  void* arguments[] = {&value, &spare};
  for (Kernel& k : kernels_) {
    if (!k.function) continue;
    LaunchSettings settings{};
    settings.grid[0] = unsigned(sms_) * k.blocks;
    settings.block[0] = k.threads;
    settings.grid[1] = settings.grid[2] = settings.block[1] = settings.block[2] = 1;
    settings.stream = stream;
    if (driver_.launch(&settings, k.function, arguments, nullptr) == kOk) continue;
    k.function = nullptr;
    miss(k.what);
  }
  if (!resets_ || (driver_.reset_persisting_l2 && driver_.reset_persisting_l2() == kOk)) return;
  resets_ = false;
  miss("persisting L2 lines");
}

}  // namespace cutegen::device::cuda
