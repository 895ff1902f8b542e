// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/own_kernels.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <new>

namespace cutegen::device::cuda {
namespace {

constexpr size_t kLeastFlush = size_t{128} << 20;

// gate: holds back everything queued behind it until a word of pinned memory is `gate_value`.
//   It is a kernel, because a wait operation of the stream yields the GPU to other processes for
//   milliseconds. It opens by itself after kGateLimit, because a driver call may wait for the GPU.
// tick: counts the SM's cycles during a measured time.
// soil: overwrites all shared memory of each SM, so that no data passes to the next run.
constexpr auto kGateLimit = std::chrono::milliseconds(250);
constexpr const char* kOwnKernels = R"(.version 7.0
.target sm_70
.address_size 64
.visible .entry gate(.param .u64 gate_at, .param .u32 gate_value, .param .u64 gate_limit)
{
  .reg .pred %p<3>;
  .reg .b32 %r<3>;
  .reg .b64 %rd<5>;
  ld.param.u64 %rd1, [gate_at];
  ld.param.u32 %r1, [gate_value];
  ld.param.u64 %rd2, [gate_limit];
  mov.u64 %rd3, %globaltimer;
  add.s64 %rd2, %rd2, %rd3;
WAIT:
  ld.relaxed.sys.global.u32 %r2, [%rd1];
  setp.ge.u32 %p1, %r2, %r1;
  @%p1 bra OPEN;
  mov.u64 %rd4, %globaltimer;
  setp.lt.u64 %p2, %rd4, %rd2;
  @%p2 bra WAIT;
OPEN:
  ret;
}
.visible .entry tick(.param .u64 tick_at)
{
  .reg .pred %p<2>;
  .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [tick_at];
  mov.u64 %rd2, %globaltimer;
EDGE:
  mov.u64 %rd3, %globaltimer;
  setp.eq.u64 %p1, %rd3, %rd2;
  @%p1 bra EDGE;
  mov.u64 %rd4, %clock64;
  add.s64 %rd5, %rd3, 15000;
COUNT:
  mov.u64 %rd6, %globaltimer;
  setp.lt.u64 %p1, %rd6, %rd5;
  @%p1 bra COUNT;
  mov.u64 %rd7, %clock64;
  sub.s64 %rd7, %rd7, %rd4;
  sub.s64 %rd6, %rd6, %rd3;
  st.global.u64 [%rd1], %rd7;
  st.global.u64 [%rd1+8], %rd6;
  ret;
}
.extern .shared .align 16 .b8 room[];
.visible .entry soil(.param .u32 soil_value, .param .u32 soil_words)
{
  .reg .pred %p<2>;
  .reg .b32 %r<8>;
  ld.param.u32 %r1, [soil_value];
  ld.param.u32 %r2, [soil_words];
  mov.u32 %r3, %tid.x;
  mov.u32 %r4, %ntid.x;
  mov.u32 %r5, room;
LOOP:
  setp.ge.u32 %p1, %r3, %r2;
  @%p1 bra DONE;
  shl.b32 %r6, %r3, 2;
  add.u32 %r6, %r5, %r6;
  st.shared.u32 [%r6], %r1;
  add.u32 %r3, %r3, %r4;
  bra LOOP;
DONE:
  ret;
}
)";

}  // namespace

Result<void> OwnKernels::prepare() {
  constexpr unsigned kMapped = 2;
  void* pinned = nullptr;
  CG_CHECK(driver_.check(driver_.host_allocate(&pinned, sizeof(Pinned), kMapped),
                         "allocating pinned memory"));
  pinned_ = new (pinned) Pinned{};
  return driver_.check(driver_.host_address(&pinned_address_, pinned, 0), "mapping pinned memory");
}

Result<void> OwnKernels::load(const DeviceFacts& facts, size_t l2_bytes) {
  if (flush_) return {};
  sms_ = unsigned(facts.sms), shared_bytes_ = unsigned(facts.max_shared_bytes);
  flush_bytes_ = std::max(kLeastFlush, 3 * l2_bytes);
  CG_CHECK(
      driver_.check(driver_.allocate(&flush_, flush_bytes_), "allocating memory to cool the L2"));
  for (Handle* event : {&cooling_, &cooled_})
    CG_CHECK(driver_.check(driver_.event_create(event, 0), "making an event"));
  constexpr const char* kLoading = "loading our own kernels";
  CG_CHECK(driver_.check(driver_.module_load(&module_, kOwnKernels), kLoading));
  CG_CHECK(driver_.check(driver_.module_function(&gate_, module_, "gate"), kLoading));
  CG_CHECK(driver_.check(driver_.module_function(&tick_, module_, "tick"), kLoading));
  CG_CHECK(driver_.check(driver_.module_function(&soil_, module_, "soil"), kLoading));
  return driver_.check(driver_.function_set(soil_, kDynamicShared, int(shared_bytes_)),
                       "preparing our own kernel");
}

void OwnKernels::close() {
  for (Handle event : {cooling_, cooled_})
    if (event) driver_.event_destroy(event);
  if (flush_) driver_.free(flush_);
  if (module_) driver_.module_unload(module_);
  if (pinned_) driver_.host_free(pinned_);
}

// Writes one half of the memory at flush_, and copies it to the other half. Afterwards, the L2
// holds none of the program's data, and holds clean lines as well as dirty ones. The gate excludes
// the host's work from the time between the events.
Result<void> OwnKernels::cool_l2(Handle stream) {
  const size_t half = flush_bytes_ / 2;
  CG_CHECK(shut_gate(stream));
  Status s = driver_.event_record(cooling_, stream);
  if (s == kOk) s = driver_.set8(flush_, uint8_t(gates_), half, stream);
  if (s == kOk) s = driver_.copy(flush_ + half, flush_, half, stream);
  if (s == kOk) s = driver_.event_record(cooled_, stream);
  open_gate();
  return driver_.check(s, "cooling the L2");
}

std::optional<double> OwnKernels::cooling_ns() const {
  float ms = 0;
  if (driver_.event_elapsed(&ms, cooling_, cooled_) != kOk || ms <= 0) return std::nullopt;
  return double(ms) * 1e6;
}

Result<void> OwnKernels::soil_shared(Handle stream) {
  uint32_t value = mark(), words = shared_bytes_ / 4;
  void* arguments[] = {&value, &words};
  LaunchSettings settings{};
  settings.grid[0] = sms_;
  settings.block[0] = 1024;
  settings.grid[1] = settings.grid[2] = settings.block[1] = settings.block[2] = 1;
  settings.shared_bytes = shared_bytes_;
  settings.stream = stream;
  return driver_.check(driver_.launch(&settings, soil_, arguments, nullptr),
                       "writing shared memory");
}

Result<void> OwnKernels::shut_gate(Handle stream) {
  uint64_t limit = uint64_t(Nanoseconds(kGateLimit).count());
  uint32_t value = ++gates_;
  void* arguments[] = {&pinned_address_, &value, &limit};
  return launch_one(gate_, arguments, stream);
}

Result<void> OwnKernels::tick(Handle stream) {
  Address ticks_at = pinned_address_ + offsetof(Pinned, cycles);
  void* arguments[] = {&ticks_at};
  return launch_one(tick_, arguments, stream);
}

std::optional<double> OwnKernels::clock_hz() const {
  if (pinned_->ns == 0) return std::nullopt;
  return 1e9 * double(pinned_->cycles) / double(pinned_->ns);
}

Result<void> OwnKernels::launch_one(Handle kernel, void** arguments, Handle stream) {
  LaunchSettings settings{};
  for (int i = 0; i < 3; ++i) settings.grid[i] = settings.block[i] = 1;
  settings.stream = stream;
  return driver_.check(driver_.launch(&settings, kernel, arguments, nullptr),
                       "launching our own kernel");
}

}  // namespace cutegen::device::cuda
