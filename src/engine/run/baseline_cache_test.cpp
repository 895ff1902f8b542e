// SPDX-License-Identifier: Apache-2.0
#include "engine/run/baseline_cache.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/text.h"
#include "engine/testing/toy_world.h"

namespace cutegen::engine {
namespace {

namespace fs = std::filesystem;

class BaselineCacheTest : public testing::Test {
 protected:
  void TearDown() override { fs::remove_all(dir_); }
  static BaselineRecord record(double ns) {
    BaselineRecord r;
    r.task_id = "t", r.gpu = "h200", r.driver = "580", r.torch = "2.11";
    r.times = {{.kind = "eager", .time_ns = ns, .low_ns = ns, .high_ns = ns, .samples = 8}};
    return r;
  }
  fs::path dir_ = toy::scratch_path("baselines");
  BaselineCache cache_{dir_};
};

TEST_F(BaselineCacheTest, KeepsOneRecordForEachGpuDriverAndTorch) {
  EXPECT_FALSE(cache_.find("t", "h200", "580", "2.11"));
  ASSERT_TRUE(cache_.keep(record(10)));
  ASSERT_TRUE(cache_.keep(record(20)));
  auto found = cache_.find("t", "h200", "580", "2.11");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->times[0].time_ns, 20);
  EXPECT_FALSE(cache_.find("u", "h200", "580", "2.11"));
  EXPECT_FALSE(cache_.find("t", "h100", "580", "2.11"));
  EXPECT_FALSE(cache_.find("t", "h200", "590", "2.11"));
  EXPECT_FALSE(cache_.find("t", "h200", "580", "2.12"));
}

BaselineRecord judged(BaselineRecord record, int policy_version) {
  record.policy_version = policy_version;
  record.times[0].accuracy = {
      .precision = "fp32", .coarser = false, .share = 0.5, .passes = true, .why = ""};
  return record;
}

TEST_F(BaselineCacheTest, AccuracyByOtherRulesIsDroppedAndTimesStay) {
  const int now = Verdict().policy_version;
  for (const int version : {0, now - 1, now}) {
    ASSERT_TRUE(cache_.keep(judged(record(10), version)));
    auto found = cache_.find("t", "h200", "580", "2.11");
    ASSERT_TRUE(found);
    EXPECT_EQ(found->times[0].time_ns, 10);
    const BaselineAccuracy& accuracy = found->times[0].accuracy;
    EXPECT_EQ(accuracy.precision, "fp32");
    EXPECT_EQ(accuracy.passes.has_value(), version == now);
    EXPECT_EQ(accuracy.share.has_value(), version == now);
    EXPECT_EQ(accuracy.why.empty(), version == now) << accuracy.why;
    EXPECT_EQ(cache_.with_times_of({{.kind = BaselineKind::eager}}).size(), version == now ? 1 : 0)
        << "cutegen baselines judges it again";
  }
}

TEST_F(BaselineCacheTest, AFileThatCannotBeReadIsNoRecord) {
  ASSERT_TRUE(cache_.keep(record(10)));
  for (const auto& entry : fs::directory_iterator(dir_))
    ASSERT_TRUE(write_file(entry.path(), "{\"schema\": \"cutegen.baselines.v1\""));
  EXPECT_FALSE(cache_.find("t", "h200", "580", "2.11"));
}

TEST_F(BaselineCacheTest, ARecordUnderAnotherNameIsNotTaken) {
  ASSERT_TRUE(cache_.keep(record(10)));
  for (const auto& entry : fs::directory_iterator(dir_)) {
    auto text = read_file(entry.path());
    ASSERT_TRUE(text);
    ASSERT_TRUE(write_file(entry.path(), replace_all(*text, "\"580\"", "\"581\"")));
  }
  EXPECT_FALSE(cache_.find("t", "h200", "580", "2.11"));
}

TEST_F(BaselineCacheTest, ControlsAreThoseOfNowForAWhile) {
  EXPECT_FALSE(cache_.controls("h200", "580"));
  ASSERT_TRUE(cache_.keep_controls("h200", "580", {{"stream", "p", 100}}));
  auto found = cache_.controls("h200", "580");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->at(0).time_ns, 100);
  EXPECT_FALSE(cache_.controls("h200", "590"));
  for (const auto& entry : fs::directory_iterator(dir_))
    ASSERT_TRUE(write_file(entry.path(), "{\"timed\": 1000, \"controls\": []}"));
  EXPECT_FALSE(cache_.controls("h200", "580"));
}

}  // namespace
}  // namespace cutegen::engine
