// SPDX-License-Identifier: Apache-2.0
// Memory shared by descriptors, with a fake driver and on a GPU if there is one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "device/cuda/cuda_device.h"
#include "device/cuda/session.h"
#include "device/testing/driver_process.h"

namespace cutegen::device::cuda {
namespace {

std::vector<int> ints_at(const Session& session, Address at, size_t count) {
  std::vector<int> out(count);
  EXPECT_TRUE(session.read(std::as_writable_bytes(std::span(out)), at));
  return out;
}

constexpr const char* kSevensModule = R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry sevens(.param .u64 sevens_p)
{
  .reg .b64 %rd<3>;
  .reg .b32 %r<6>;
  ld.param.u64 %rd1, [sevens_p];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd2, %r1, 4;
  add.u64 %rd1, %rd1, %rd2;
  mov.u32 %r2, 7;
  st.global.u32 [%rd1], %r2;
  ret;
}
)";

// A Device in another process writes the shared memory, and the owner reads it.
void write_what_is_shared(bool read_only) {
  auto session = Session::open("cuda:0");
  ASSERT_TRUE(session) << session.error().text();
  Session& s = **session;
  auto block = s.memory().take(100000);
  ASSERT_TRUE(block) << block.error().text();
  ASSERT_TRUE(s.set(block->mapped, 1, block->mapped_bytes));
  ASSERT_TRUE(s.wait(Context()));
  auto descriptor = s.memory().share(*block);
  ASSERT_TRUE(descriptor) << descriptor.error().text();
  auto device = open_device("cuda:0");
  ASSERT_TRUE(device) << device.error().text();
  ASSERT_TRUE((*device)->load({kSevensModule}));
  BufferBinding binding{.name = "y", .bytes = {static_cast<std::byte*>(nullptr), 64}};
  binding.read_only = read_only;
  binding.shared = {
      .descriptor = descriptor->get(), .mapped_bytes = block->mapped_bytes, .offset = 512};
  auto bound = (*device)->bind({binding});
  ASSERT_TRUE(bound) << bound.error().text();
  Launch launch{.step = "one", .kernel = "sevens", .block = {16, 1, 1}};
  launch.args.push_back({.buffer = "y"});
  auto report = (*device)->run(Context(), {launch}, {});
  ASSERT_TRUE(report) << report.error().text();
  if (read_only) {  // the fake driver does not fault
    EXPECT_EQ(report->status, RunReport::Status::finding);
    EXPECT_TRUE(report->device_lost);
  } else {
    EXPECT_EQ(report->status, RunReport::Status::ok) << report->message;
    EXPECT_THAT(ints_at(s, block->mapped + 512, 16), testing::Each(7));
    EXPECT_THAT(ints_at(s, block->mapped + 512 - 64, 16), testing::Each(0x01010101));
    EXPECT_THAT(ints_at(s, block->mapped + 512 + 64, 16), testing::Each(0x01010101));
  }
}

// Every timed run restores a mutated tensor from its initial buffer.
void restore_what_is_mutated() {
  auto session = Session::open("cuda:0");
  ASSERT_TRUE(session) << session.error().text();
  Session& s = **session;
  auto block = s.memory().take(100000), first = s.memory().take(64);
  ASSERT_TRUE(block && first);
  const std::vector<int> before(16, 5);
  ASSERT_TRUE(s.write(first->mapped, std::as_bytes(std::span(before))));
  auto descriptor = s.memory().share(*block), given = s.memory().share(*first);
  ASSERT_TRUE(descriptor && given);
  auto device = open_device("cuda:0");
  ASSERT_TRUE(device) << device.error().text();
  ASSERT_TRUE((*device)->load({kSevensModule}));
  BufferBinding state{.name = "y", .bytes = {static_cast<std::byte*>(nullptr), 64}};
  state.shared = {
      .descriptor = descriptor->get(), .mapped_bytes = block->mapped_bytes, .offset = 512};
  state.initial = "initial/y";
  BufferBinding initial{.name = "initial/y", .bytes = {static_cast<std::byte*>(nullptr), 64}};
  initial.read_only = true;
  initial.shared = {.descriptor = given->get(), .mapped_bytes = first->mapped_bytes, .offset = 0};
  Launch launch{.step = "one", .kernel = "sevens", .block = {8, 1, 1}};  // half of the tensor
  launch.args.push_back({.buffer = "y"});
  for (TimeMode mode : {TimeMode::cold, TimeMode::warm, TimeMode::graph, TimeMode::call}) {
    ASSERT_TRUE((*device)->bind({state, initial}));
    ASSERT_TRUE(s.set(block->mapped, 1, block->mapped_bytes));
    ASSERT_TRUE(s.wait(Context()));
    TimeRequest request{.mode = mode, .steps = {launch}, .samples = 3};
    auto report = (*device)->time(Context(), request);
    ASSERT_TRUE(report) << report.error().text();
    EXPECT_THAT(ints_at(s, block->mapped + 512 + 32, 8), testing::Each(5));
    EXPECT_THAT(ints_at(s, block->mapped + 512 + 64, 8), testing::Each(0x01010101));
  }
  initial.bytes = initial.bytes.first(32);
  ASSERT_TRUE((*device)->bind({state, initial}));
  TimeRequest request{.mode = TimeMode::cold, .steps = {launch}, .samples = 1};
  EXPECT_FALSE((*device)->time(Context(), request));
}

void refuse_what_does_not_fit() {
  auto session = Session::open("cuda:0");
  ASSERT_TRUE(session) << session.error().text();
  BlockMemory& memory = (*session)->memory();
  auto block = memory.take(1);
  ASSERT_TRUE(block);
  auto descriptor = memory.share(*block);
  ASSERT_TRUE(descriptor);
  EXPECT_FALSE(memory.import(descriptor->get(), 4 * block->mapped_bytes, true));  // too large
  EXPECT_FALSE(memory.import(descriptor->get(), block->mapped_bytes - 1, true));
  EXPECT_FALSE(memory.import(-1, block->mapped_bytes, true));
  auto device = open_device("cuda:0");
  ASSERT_TRUE(device);
  BufferBinding binding{.name = "y", .bytes = {static_cast<std::byte*>(nullptr), 64}};
  binding.shared = {.descriptor = descriptor->get(),
                    .mapped_bytes = block->mapped_bytes,
                    .offset = block->mapped_bytes - 63};
  auto bound = (*device)->bind({binding});
  ASSERT_FALSE(bound);
  EXPECT_THAT(bound.error().message, testing::HasSubstr("lies outside its memory"));
  EXPECT_GT(*(*session)->free_bytes(), 0);
  EXPECT_FALSE((*session)->launch("no_such", 1, 1, {}));
  memory.give_back(*block);
}

TEST(SharedMemory, WhatIsSharedIsTheSameMemory) {
  with_driver("good", [] { write_what_is_shared(false); });
}

TEST(SharedMemory, AMutatedTensorIsRestoredBeforeEachTimedRun) {
  with_driver("good", restore_what_is_mutated);
}

TEST(SharedMemory, WhatDoesNotFitIsRefused) {
  with_driver("good", refuse_what_does_not_fit);
}

TEST(SharedMemory, OnAGpuReadOnlyMemoryFaultsWhenItIsWritten) {
  if (!open_library("libcuda.so.1").library) GTEST_SKIP() << "no GPU here";
  with_driver("real", [] {
    write_what_is_shared(false);
    write_what_is_shared(true);
  });
}

}  // namespace
}  // namespace cutegen::device::cuda
