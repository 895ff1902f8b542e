// SPDX-License-Identifier: Apache-2.0
// What is carried over from one day to another, which baseline counts, and the JSON form.
#include "core/baseline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cutegen {
namespace {

BaselineTime took(const std::string& kind, double ns) {
  BaselineTime t;
  t.kind = kind, t.time_ns = ns, t.low_ns = 0.9 * ns, t.high_ns = 1.1 * ns, t.samples = 8;
  return t;
}

BaselineTime missing(const std::string& kind, const std::string& why) {
  BaselineTime t;
  t.kind = kind, t.why = why, t.build_s = 3;
  return t;
}

BaselineRecord record() {
  BaselineRecord b;
  b.task_id = "t", b.name = "19_ReLU", b.workload = "elementwise", b.gpu = "h200", b.uuid = "GPU-1";
  b.driver = "580", b.torch = "2.11", b.measured = "2026-11-22 07:00", b.floor_ns = 5;
  b.bound_by = "memory", b.admitted = true, b.truth = {0.5, 4096, {"a note"}, ""};
  b.controls = {{"stream", "p1", 100}, {"multiply", "p2", 200}};
  b.times = {took("eager", 30), took("eager-tf32", 10), missing("compile", "it raises")};
  return b;
}

TEST(Baseline, TheFastestInTheMathModeCounts) {
  const auto times = record().times;
  EXPECT_EQ(best_baseline(times, MathMode::fp32)->kind, "eager");
  EXPECT_EQ(best_baseline(times, MathMode::tf32)->kind, "eager-tf32");
  EXPECT_EQ(best_baseline({missing("eager", "no")}, MathMode::fp32), nullptr);
}

TEST(Baseline, TimesAreCarriedOverByTheControls) {
  CarriedOver c = carried_over(record(), {{"stream", "p1", 102}, {"multiply", "p2", 204}});
  EXPECT_EQ(c.why, "");
  EXPECT_NEAR(c.ratio, 1.02, 1e-12);
  ASSERT_EQ(c.times.size(), 3U);
  EXPECT_NEAR(c.times[0].time_ns, 30.6, 1e-9);
  EXPECT_NEAR(c.times[0].high_ns, 33.66, 1e-9);
  EXPECT_EQ(c.times[0].origin, Origin::cached);
  EXPECT_EQ(c.times[2].why, "it raises");
}

TEST(Baseline, NothingIsCarriedOverWhenTheControlsDiffer) {
  CarriedOver c = carried_over(record(), {{"stream", "p1", 106}, {"multiply", "p2", 200}});
  EXPECT_TRUE(c.times.empty());
  EXPECT_EQ(c.why, "the control kernel 'stream' takes 6.0% longer than then");
  c = carried_over(record(), {{"stream", "p1", 100}, {"multiply", "other", 200}});
  EXPECT_EQ(c.why, "the control kernel 'multiply' of then is not timed now");
  BaselineRecord none = record();
  none.controls.clear();
  EXPECT_EQ(carried_over(none, {}).why, "no control kernel was timed with them");
}

TEST(Baseline, ARecordHoldsItsFormThroughJson) {
  Json json = to_json(record());
  auto back = baseline_record_from_json(json);
  ASSERT_TRUE(back) << back.error().text();
  EXPECT_EQ(to_json(*back), json);
  EXPECT_EQ(back->times[2].why, "it raises");
  Json bad = json;
  bad["schema"] = "cutegen.baselines.v9";
  EXPECT_FALSE(baseline_record_from_json(bad));
  bad = json;
  bad["baselines"][0]["time_ns"] = 0;
  EXPECT_FALSE(baseline_record_from_json(bad));
  bad = json;
  bad["baselines"][0]["origin"] = "guessed";
  EXPECT_FALSE(baseline_record_from_json(bad));
  bad = json;
  bad["extra"] = 1;
  EXPECT_FALSE(baseline_record_from_json(bad));
}

}  // namespace
}  // namespace cutegen
