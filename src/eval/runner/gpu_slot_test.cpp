// SPDX-License-Identifier: Apache-2.0
// One process measures on a GPU at a time.
#include "eval/runner/gpu_slot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <optional>
#include <thread>

namespace cutegen::eval {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using testing::HasSubstr;

// Whether another thread can share the GPU within `limit`.
bool can_share(milliseconds limit) {
  return std::async(
             std::launch::async,
             [limit] { return GpuSlot::share(Context().with_timeout(limit), "GPU-1").has_value(); })
      .get();
}

class GpuSlotTest : public testing::Test {
 protected:
  GpuSlotTest() {
    char name[] = "/tmp/cutegen-slot-XXXXXX";
    folder_ = ::mkdtemp(name);
    ::setenv("CUTEGEN_LOCKS", folder_.c_str(), 1);
  }
  ~GpuSlotTest() override {
    ::unsetenv("CUTEGEN_LOCKS");
    fs::remove_all(folder_);
  }
  fs::path folder_;
};

TEST_F(GpuSlotTest, IsHadByOneAtATimeAndFreedAtTheEnd) {
  std::optional<GpuSlot> first;
  {
    auto slot = GpuSlot::acquire(Context(), "GPU-1");
    ASSERT_TRUE(slot) << slot.error().text();
    first.emplace(std::move(*slot));
  }
  int told = 0;
  auto second =
      GpuSlot::acquire(Context().with_timeout(milliseconds(50)), "GPU-1", [&] { ++told; });
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().message, HasSubstr("another cutegen is measuring"));
  EXPECT_EQ(told, 1);
  EXPECT_TRUE(GpuSlot::acquire(Context(), "GPU-2"));  // another GPU
  std::jthread later([&] {
    std::this_thread::sleep_for(milliseconds(30));
    first.reset();
  });
  EXPECT_TRUE(GpuSlot::acquire(Context().with_timeout(std::chrono::seconds(5)), "GPU-1"));
}

TEST_F(GpuSlotTest, WorkGoesOnBesideWorkButNotBesideAMeasurement) {
  const Context soon = Context().with_timeout(milliseconds(30));
  {
    auto work = GpuSlot::share(soon, "GPU-1");
    ASSERT_TRUE(work) << work.error().text();
    EXPECT_TRUE(can_share(milliseconds(30)));
    EXPECT_FALSE(GpuSlot::acquire(soon, "GPU-1"));
  }
  auto measuring = GpuSlot::acquire(Context().with_timeout(milliseconds(30)), "GPU-1");
  ASSERT_TRUE(measuring);
  EXPECT_FALSE(can_share(milliseconds(30)));
}

TEST_F(GpuSlotTest, AThreadThatHoldsTheGpuMayShareItAgain) {
  {
    auto measuring = GpuSlot::acquire(Context(), "GPU-1");
    ASSERT_TRUE(measuring);
    EXPECT_TRUE(GpuSlot::share(Context().with_timeout(milliseconds(30)), "GPU-1"));
    EXPECT_FALSE(can_share(milliseconds(30)));  // the GPU is still held
    EXPECT_TRUE(GpuSlot::share(Context().with_timeout(milliseconds(30)), "GPU-2"));
  }
  auto work = GpuSlot::share(Context(), "GPU-1");
  ASSERT_TRUE(work);
  std::atomic<bool> waits = false;
  std::jthread measuring([&] {
    EXPECT_FALSE(
        GpuSlot::acquire(Context().with_timeout(milliseconds(60)), "GPU-1", [&] { waits = true; }));
  });
  while (!waits) std::this_thread::sleep_for(milliseconds(1));
  EXPECT_TRUE(GpuSlot::share(Context().with_timeout(milliseconds(10)), "GPU-1"));
}

TEST_F(GpuSlotTest, AMeasurementThatWaitsComesBeforeLaterWork) {
  auto work = GpuSlot::share(Context(), "GPU-1");
  ASSERT_TRUE(work);
  std::optional<GpuSlot> first(std::move(*work));
  std::atomic<bool> waits = false, measured = false;
  std::jthread measuring([&] {
    auto slot = GpuSlot::acquire(Context().with_timeout(std::chrono::seconds(5)), "GPU-1",
                                 [&] { waits = true; });
    measured = slot.has_value();
    std::this_thread::sleep_for(milliseconds(30));
  });
  while (!waits) std::this_thread::sleep_for(milliseconds(1));
  std::jthread later([&] { first.reset(); });
  EXPECT_TRUE(can_share(std::chrono::seconds(5)));
  EXPECT_TRUE(measured);
}

TEST_F(GpuSlotTest, ANameIsNoPathAndALinkIsNotFollowed) {
  EXPECT_TRUE(GpuSlot::acquire(Context(), "../../GPU/3"));
  EXPECT_TRUE(fs::exists(folder_ / "cutegen-gpu-GPU3.lock"));
  fs::create_symlink("/etc/passwd", folder_ / "cutegen-gpu-GPU4.lock");
  EXPECT_FALSE(GpuSlot::acquire(Context(), "GPU4"));
  fs::create_directory(folder_ / "cutegen-gpu-GPU5.lock");
  auto folder = GpuSlot::acquire(Context(), "GPU5");
  ASSERT_FALSE(folder);
  EXPECT_THAT(folder.error().remedy, HasSubstr("remove it"));
}

}  // namespace
}  // namespace cutegen::eval
