// SPDX-License-Identifier: Apache-2.0
#include "torch/tuned.h"

#include <gtest/gtest.h>

#include <string>

namespace cutegen::torch {
namespace {

Json tree(const std::string& hash, const Json& ms) {
  return {{"addmm", {{"[(1024, 8192)]", {{"highest", {{hash, ms}}}}}}}};
}

TEST(TunedTimes, GrowByWhatIsToldAndKeepTheFirst) {
  TunedTimes t;
  EXPECT_EQ(t.all(), Json::object());
  t.add(tree("a", 1.5));
  t.add(tree("b", 2));
  t.add(tree("a", 7));
  EXPECT_EQ(t.all()["addmm"]["[(1024, 8192)]"]["highest"], (Json{{"a", 1.5}, {"b", 2}}));
}

TEST(TunedTimes, TakeNothingElse) {
  TunedTimes t;
  for (const Json& bad : {Json(), Json(3), Json::array({1}), Json{{"addmm", 1.0}},
                          tree("a", "fast"), tree("a", -1), tree("a", 0), tree("a", {{"b", 1}})})
    t.add(bad);
  const Json all = t.all();
  EXPECT_EQ(all.dump().find(":1"), std::string::npos) << all;
  EXPECT_EQ(all.dump().find("fast"), std::string::npos);
  t.add(tree(std::string(10000, 'x'), 1.0));
  EXPECT_LT(t.all().dump().size(), 100U);
}

TEST(TunedTimes, AreBounded) {
  TunedTimes t;
  for (int i = 0; i < 3000; ++i) t.add(tree(std::to_string(i) + std::string(8000, 'y'), 1.0));
  EXPECT_LT(t.all().dump().size(), size_t{9} << 20);
  EXPECT_GT(t.all().dump().size(), size_t{7} << 20);
}

}  // namespace
}  // namespace cutegen::torch
