// SPDX-License-Identifier: Apache-2.0
#include "eval/sets/gpu_truth_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <set>

#include "eval/testing/toy_task.h"

namespace cutegen::eval {
namespace {

constexpr int64_t kSet = int64_t{4} << 20;  // memory of one toy set

// Makes sets without memory, because the pool looks only at their size, task and family.
struct Maker {
  std::atomic<int> made{0};
  std::optional<Error> refusal;
  Result<GpuSetPtr> operator()(const Task& task, const ShapeCase& shape,
                               const std::string& family) {
    ++made;
    if (refusal) return fail(*refusal);
    auto set = std::make_shared<GpuSet>();
    set->task_id = task.id;
    set->shape = shape.name;
    set->family = family;
    set->bytes = kSet;
    return GpuSetPtr(std::move(set));
  }
};

class Pool : public testing::Test {
 protected:
  Pool() : toy_([](double x) { return x; }) {
    pool_ = std::make_unique<GpuTruthPool>(
        [this](const Context&, const Task& task, const ShapeCase& shape, const std::string& family,
               uint64_t) { return maker_(task, shape, family); });
  }
  GpuSetPtr draw(const std::string& family, const std::string& program) {
    auto set = pool_->draw(Context(), toy_.task, toy_.task.shapes[0], family, program);
    EXPECT_TRUE(set) << set.error().text();
    return set ? *set : nullptr;
  }
  void wait_for(int64_t bytes) {
    for (int i = 0; i < 2000 && pool_->bytes() != bytes; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_EQ(pool_->bytes(), bytes);
  }

  testing_world::ToyTask toy_;
  Maker maker_;
  std::unique_ptr<GpuTruthPool> pool_;
};

TEST_F(Pool, SetsOfOneShapeAreNotThoseOfAnother) {
  pool_->allow(10 * kSet);
  ShapeCase wide = toy_.task.shapes[0];
  wide.name = "wide";
  GpuSetPtr first = draw("made", "a");
  auto other = pool_->draw(Context(), toy_.task, wide, "made", "b");
  ASSERT_TRUE(other);
  EXPECT_EQ((*other)->shape, "wide");
  EXPECT_NE(first, *other);
  EXPECT_EQ(draw("made", "b"), first) << "both are kept";
  EXPECT_EQ(maker_.made, 2);
}

TEST_F(Pool, AProgramNeverMeetsASetTwice) {
  pool_->allow(10 * kSet);
  GpuSetPtr first = draw("made", "a"), other = draw("made", "b");
  EXPECT_EQ(first, other);  // another program gets the same set
  EXPECT_NE(draw("made", "a"), first);
  EXPECT_EQ(maker_.made, 2);
}

TEST_F(Pool, ASetIsDroppedAfterItsLastUse) {
  pool_->allow(10 * kSet);
  std::set<GpuSetPtr> met;
  for (int i = 0; i < 2 * SetStock::kMostUses; ++i)
    met.insert(draw("made", "program " + std::to_string(i)));
  EXPECT_EQ(met.size(), 2U);
  EXPECT_EQ(pool_->bytes(), 0);
}

TEST_F(Pool, MemoryIsLimitedAndTheOldestGoFirst) {
  pool_->allow(2 * kSet);
  draw("made", "a");
  draw("signed", "a");
  draw("made", "b");  // now "signed" was drawn longest ago
  draw("heavy", "a");
  EXPECT_EQ(pool_->bytes(), 2 * kSet);
  EXPECT_EQ(maker_.made, 3);
  draw("made", "c");
  EXPECT_EQ(maker_.made, 3);
  draw("signed", "c");
  EXPECT_EQ(maker_.made, 4);
  pool_->shrink(kSet);
  EXPECT_EQ(pool_->bytes(), kSet);
}

TEST_F(Pool, WhatDoesNotFitIsNotKept) {
  pool_->allow(kSet - 1);
  EXPECT_NE(draw("made", "a"), nullptr);
  EXPECT_EQ(pool_->bytes(), 0);
}

TEST_F(Pool, WhatCannotBeMadeIsNotAskedForAgainAtOnce) {
  maker_.refusal =
      Error{.kind = ErrorKind::unsupported, .message = "it takes 3 GiB, and 2 GiB are free"};
  for (int i = 0; i < 3; ++i) {
    auto set = pool_->draw(Context(), toy_.task, toy_.task.shapes[0], "made", "a");
    ASSERT_FALSE(set);
    EXPECT_THAT(set.error().message, testing::HasSubstr("3 GiB"));
  }
  EXPECT_EQ(maker_.made, 1);
  pool_->forget(toy_.task.id);
  maker_.refusal.reset();
  EXPECT_NE(draw("made", "a"), nullptr);
}

TEST_F(Pool, TroubleOfOurOwnIsTriedAgain) {
  maker_.refusal = Error{.kind = ErrorKind::world, .message = "the worker died"};
  EXPECT_FALSE(pool_->draw(Context(), toy_.task, toy_.task.shapes[0], "made", "a"));
  maker_.refusal.reset();
  EXPECT_NE(draw("made", "a"), nullptr);
}

TEST_F(Pool, SetsAreMadeAheadButNotWhilePaused) {
  pool_->pause();
  pool_->want(toy_.task, toy_.task.shapes[0], {"made", "outliers"});
  pool_->allow(10 * kSet);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(maker_.made, 0);
  pool_->resume();
  const int made = 2 + GpuTruthPool::kMoreToTime;
  wait_for(made * kSet);
  EXPECT_EQ(maker_.made, made);
  draw("made", "a");
  EXPECT_EQ(maker_.made, made);  // no new set was made
  pool_->forget(toy_.task.id);
  EXPECT_EQ(pool_->bytes(), 0);
}

TEST_F(Pool, TimedBlocksGetWhatIsThereAndNothingIsMadeForThem) {
  pool_->allow(10 * kSet);
  EXPECT_EQ(pool_->ready(toy_.task.id, toy_.task.official().name, "made", "a"), nullptr);
  EXPECT_EQ(maker_.made, 0);
  pool_->want(toy_.task, toy_.task.shapes[0], {"made", "outliers"});
  const int made = 2 + GpuTruthPool::kMoreToTime;
  wait_for(made * kSet);
  pool_->pause();
  std::set<GpuSetPtr> met{draw("made", "a")};
  for (int i = 0; i < GpuTruthPool::kMoreToTime; ++i)
    met.insert(pool_->ready(toy_.task.id, toy_.task.official().name, "made", "a"));
  EXPECT_EQ(met.size(), size_t{1} + GpuTruthPool::kMoreToTime);
  EXPECT_FALSE(met.contains(nullptr));
  EXPECT_EQ(pool_->ready(toy_.task.id, toy_.task.official().name, "made", "a"),
            nullptr);  // the program has been judged on all sets
  EXPECT_NE(pool_->ready(toy_.task.id, toy_.task.official().name, "made", "b"), nullptr);
  EXPECT_EQ(maker_.made, made);
}

TEST_F(Pool, AFamilyOfEachComesBeforeMoreOfTheFirst) {
  pool_->allow(2 * kSet);
  pool_->want(toy_.task, toy_.task.shapes[0], {"made", "outliers"});
  wait_for(2 * kSet);
  pool_->pause();
  EXPECT_NE(pool_->ready(toy_.task.id, toy_.task.official().name, "outliers", "a"), nullptr);
  EXPECT_NE(pool_->ready(toy_.task.id, toy_.task.official().name, "made", "a"), nullptr);
  EXPECT_EQ(pool_->ready(toy_.task.id, toy_.task.official().name, "made", "a"), nullptr);
}

}  // namespace
}  // namespace cutegen::eval
