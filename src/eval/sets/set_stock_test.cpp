// SPDX-License-Identifier: Apache-2.0
#include "eval/sets/set_stock.h"

#include <gtest/gtest.h>

namespace cutegen::eval {
namespace {

const SetKey kKey{.task_id = "task", .shape = "official", .family = "made"};

// A set without memory, because the stock looks only at its key and its size.
GpuSetPtr sized_set(const SetKey& key, int64_t bytes) {
  auto set = std::make_shared<GpuSet>();
  set->task_id = key.task_id;
  set->shape = key.shape;
  set->family = key.family;
  set->bytes = bytes;
  return set;
}

TEST(SetStock, KeepsNothingBeforeItMay) {
  SetStock stock;
  stock.keep(sized_set(kKey, 10), {});
  EXPECT_EQ(stock.count(kKey), 0);
  EXPECT_FALSE(stock.has_room(10));
  stock.allow(10);
  stock.keep(sized_set(kKey, 10), {});
  stock.keep(sized_set(kKey, 11), {});
  EXPECT_EQ(stock.bytes(), 10) << "a set over the limit drops no other set";
}

TEST(SetStock, TellsSetsApartByTaskShapeAndFamily) {
  SetStock stock;
  stock.allow(10);
  stock.keep(sized_set(kKey, 10), {});
  EXPECT_EQ(stock.take({"other", "official", "made"}, "a"), nullptr);
  EXPECT_EQ(stock.take({"task", "wide", "made"}, "a"), nullptr);
  EXPECT_EQ(stock.take({"task", "official", "signed"}, "a"), nullptr);
  EXPECT_NE(stock.take(kKey, "a"), nullptr);
}

TEST(SetStock, ASetMadeForAProgramReplacesThoseItHasMet) {
  SetStock stock;
  stock.allow(100);
  stock.keep(sized_set(kKey, 10), {});
  stock.keep(sized_set(kKey, 10), {});
  EXPECT_EQ(stock.count(kKey), 2) << "sets made ahead do not replace each other";
  const GpuSetPtr fresh = sized_set(kKey, 10);
  stock.keep(fresh, "a");
  EXPECT_EQ(stock.count(kKey), 1);
  EXPECT_EQ(stock.take(kKey, "a"), nullptr);
  EXPECT_EQ(stock.take(kKey, "b"), fresh);
}

TEST(SetStock, TheUseOfTheProgramThatASetWasMadeForCounts) {
  SetStock stock;
  stock.allow(10);
  stock.keep(sized_set(kKey, 10), "first");
  for (int use = 1; use < SetStock::kMostUses; ++use)
    EXPECT_NE(stock.take(kKey, "program " + std::to_string(use)), nullptr);
  EXPECT_EQ(stock.count(kKey), 0);
}

TEST(SetStock, DropsTheSetsDrawnLongestAgo) {
  SetStock stock;
  stock.allow(30);
  const SetKey other{.task_id = "task", .shape = "official", .family = "signed"},
      another{.task_id = "task", .shape = "official", .family = "heavy"};
  stock.keep(sized_set(kKey, 10), {});
  stock.keep(sized_set(other, 10), {});
  stock.keep(sized_set(another, 10), {});
  EXPECT_NE(stock.take(kKey, "a"), nullptr);
  stock.make_room(5);
  EXPECT_EQ(stock.count(other), 0);
  stock.shrink(10);
  EXPECT_EQ(stock.count(another), 0);
  EXPECT_EQ(stock.count(kKey), 1);
  stock.forget("task");
  EXPECT_EQ(stock.bytes(), 0);
}

}  // namespace
}  // namespace cutegen::eval
