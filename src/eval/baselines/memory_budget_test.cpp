// SPDX-License-Identifier: Apache-2.0
#include "eval/baselines/memory_budget.h"

#include <gtest/gtest.h>

#include <optional>
#include <thread>

namespace cutegen::eval {
namespace {

Context soon() {
  return Context().with_timeout(std::chrono::milliseconds(30));
}

TEST(MemoryBudget, WaitsUntilBytesComeBack) {
  MemoryBudget budget(100);
  std::optional<MemoryBudget::Claim> held(std::move(*budget.claim({}, 60)));
  EXPECT_FALSE(budget.claim(soon(), 50));
  EXPECT_TRUE(budget.claim(soon(), 40));
  std::jthread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    held.reset();
  });
  EXPECT_TRUE(budget.claim({}, 100));
}

TEST(MemoryBudget, MoreThanThereIsIsAll) {
  MemoryBudget budget(100);
  auto all = budget.claim({}, 1000);
  ASSERT_TRUE(all);
  EXPECT_FALSE(budget.claim(soon(), 1));
}

TEST(MemoryBudget, IsTriedWithoutWaiting) {
  MemoryBudget budget(100);
  auto held = budget.try_claim(60);
  ASSERT_TRUE(held);
  EXPECT_FALSE(budget.try_claim(50));
  EXPECT_FALSE(budget.try_claim(1000));
  held.reset();
  EXPECT_TRUE(budget.try_claim(1000));
}

TEST(MemoryBudget, NobodyPassesAnUrgentOne) {
  MemoryBudget budget(100);
  std::optional<MemoryBudget::Claim> held(std::move(*budget.claim({}, 60)));
  std::optional<MemoryBudget::Claim> urgent;
  std::jthread waits([&] { urgent.emplace(std::move(*budget.claim({}, 90, true))); });
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  EXPECT_FALSE(budget.claim(soon(), 10));  // it would fit, but an urgent claim waits
  held.reset();
  waits.join();
  EXPECT_TRUE(urgent);
}

}  // namespace
}  // namespace cutegen::eval
