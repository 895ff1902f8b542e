// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/scrub.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace cutegen::device::cuda {
namespace {

constexpr int kHeld = 224;  // registers per thread that hold the value at the same time
constexpr int64_t kLeastLocal = 1024;
constexpr const char* kHead = ".version 7.0\n.target sm_70\n.address_size 64\n";

// Volatile loads fill the registers before a barrier. The factor after the barrier is unknown at
// compile time, so all registers stay live across the barrier.
std::string registers_ptx() {
  std::string out =
      kHead + fmt::format(R"(.visible .entry scrub_registers(.param .u32 scrub_registers_v,
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

// Reads back one word, chosen at run time, so that the compiler must keep the stores. An unrolled
// loop would take ptxas a second.
std::string local_ptx(int64_t bytes) {
  return kHead + fmt::format(R"(.visible .entry scrub_local_{0}(.param .u32 scrub_local_v,
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
  .pragma "nounroll";
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
                             bytes, bytes - 4);
}

}  // namespace

void Scrubber::unload() {
  if (registers_.module) driver_.module_unload(registers_.module);
  for (auto& [bytes, k] : locals_)
    if (k.module) driver_.module_unload(k.module);
  registers_ = {}, locals_.clear(), local_ = nullptr, prepared_ = false;
}

Scrubber::Kernel Scrubber::load(const std::string& ptx, const std::string& name) const {
  Kernel k;
  if (driver_.module_load(&k.module, ptx.c_str()) != kOk) return {};
  if (driver_.module_function(&k.function, k.module, name.c_str()) != kOk) k.function = nullptr;
  return k;
}

void Scrubber::prepare(int64_t local_bytes) {
  if (!prepared_) registers_ = load(registers_ptx(), "scrub_registers");
  prepared_ = true;
  const auto bytes =
      int64_t(std::bit_ceil(uint64_t(std::clamp(local_bytes, kLeastLocal, kMostScrubbedLocal))));
  auto [at, fresh] = locals_.try_emplace(bytes);
  local_ = &at->second;
  if (fresh) *local_ = load(local_ptx(bytes), fmt::format("scrub_local_{}", bytes));
}

void Scrubber::launch(Kernel& k, unsigned blocks, unsigned threads, Handle stream,
                      void** arguments) const {
  if (!k.function) return;
  LaunchSettings settings{};
  settings.grid[0] = unsigned(sms_) * blocks;
  settings.block[0] = threads;
  settings.grid[1] = settings.grid[2] = settings.block[1] = settings.block[2] = 1;
  settings.stream = stream;
  if (driver_.launch(&settings, k.function, arguments, nullptr) != kOk) k.function = nullptr;
}

void Scrubber::run(Handle stream, uint32_t value, Address spare) {
  void* arguments[] = {&value, &spare};
  launch(registers_, 1, 256, stream, arguments);
  launch(*local_, 4, 512, stream, arguments);
  if (resets_) resets_ = driver_.reset_persisting_l2 && driver_.reset_persisting_l2() == kOk;
}

std::vector<std::string> Scrubber::missing() const {
  std::vector<std::string> out;
  if (!registers_.function) out.emplace_back("registers");
  if (!local_->function) out.emplace_back("local memory");
  if (!resets_) out.emplace_back("persisting L2 lines");
  return out;
}

}  // namespace cutegen::device::cuda
