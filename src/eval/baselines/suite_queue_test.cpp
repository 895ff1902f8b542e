// SPDX-License-Identifier: Apache-2.0
#include "eval/baselines/suite_queue.h"

#include <gtest/gtest.h>

namespace cutegen::eval {
namespace {

// Two described tasks. The first one needs more memory.
class SuiteQueueTest : public testing::Test {
 protected:
  SuiteQueueTest() {
    large_.build_bytes = 8, large_.truth_bytes = 80;
    small_.build_bytes = 2, small_.truth_bytes = 20;
    for (SuiteItem* item : {&large_, &small_}) queue_.add(*item);
    EXPECT_EQ(queue_.next_job()->item, &large_);
    EXPECT_EQ(queue_.next_job()->item, &small_);
  }
  void describe_all() {
    queue_.described(large_, true);
    queue_.described(small_, true);
  }
  SuiteItem large_, small_;
  SuiteQueue queue_;
};

TEST_F(SuiteQueueTest, DescriptionsMayBringMore) {
  EXPECT_FALSE(queue_.next_job());
  EXPECT_TRUE(queue_.has_jobs_under_way());
  EXPECT_TRUE(queue_.has_truths_to_come());
  queue_.described(large_, false);
  queue_.described(small_, false);
  EXPECT_FALSE(queue_.next_job());
  EXPECT_FALSE(queue_.has_jobs_under_way());
  EXPECT_FALSE(queue_.has_truths_to_come());
}

TEST_F(SuiteQueueTest, SmallBuildsComeFirstAndRepeatedOnesLast) {
  describe_all();
  EXPECT_EQ(queue_.next_job()->item, &small_);
  queue_.built();
  queue_.build_alone(small_, 1);
  EXPECT_EQ(queue_.next_job()->item, &large_);
  auto again = queue_.next_job();
  ASSERT_TRUE(again);
  EXPECT_EQ(again->item, &small_);
  EXPECT_FALSE(again->describe);
  EXPECT_TRUE(small_.alone);
}

TEST_F(SuiteQueueTest, TheLargestTruthThatFitsComesFirst) {
  describe_all();
  MemoryBudget budget(100);
  auto first = queue_.next_truth(budget);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->item, &large_);
  auto beside = budget.try_claim(10);
  EXPECT_FALSE(queue_.next_truth(budget));
  EXPECT_TRUE(queue_.has_truths_to_come());
  first.reset();
  EXPECT_EQ(queue_.next_truth(budget)->item, &small_);
  EXPECT_FALSE(queue_.has_truths_to_come());
}

TEST_F(SuiteQueueTest, DroppedTasksAreNotDone) {
  describe_all();
  queue_.drop(small_);
  EXPECT_EQ(queue_.next_job()->item, &large_);
  EXPECT_FALSE(queue_.next_job());
}

}  // namespace
}  // namespace cutegen::eval
