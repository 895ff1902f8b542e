// SPDX-License-Identifier: Apache-2.0
#include "core/asked_accuracy.h"

#include <gmock/gmock.h>

#include <limits>

namespace cutegen {
namespace {

TEST(AskedAccuracy, SurvivesJson) {
  AskedAccuracy asked;
  EXPECT_TRUE(asked.empty());
  EXPECT_EQ(to_json(asked), Json::object());
  asked.math_mode = MathMode::tf32;
  asked.atol = 0.0;
  asked.sources["math_mode"] = "flag --math-mode";
  EXPECT_FALSE(asked.empty());
  auto again = read_json<AskedAccuracy>(to_json(asked));
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_EQ(again->math_mode, MathMode::tf32);
  EXPECT_EQ(again->atol, 0.0);
  EXPECT_FALSE(again->rtol);
  EXPECT_EQ(again->sources.at("math_mode"), "flag --math-mode");
  EXPECT_EQ(again->sources.at("atol"), "the caller");
}

TEST(AskedAccuracy, RefusesWhatIsNoBound) {
  auto error = [](const char* text) {
    auto asked = read_json<AskedAccuracy>(Json::parse(text));
    return asked ? "" : asked.error().text();
  };
  EXPECT_THAT(error(R"({"rtol": {"value": -1, "source": "x"}})"), testing::HasSubstr("rtol"));
  EXPECT_THAT(error(R"({"rtol": {"value": "1", "source": "x"}})"), testing::HasSubstr("rtol"));
  EXPECT_THAT(error(R"({"atol": {"value": 1}})"), testing::HasSubstr("source"));
  EXPECT_THAT(error(R"({"ratol": {"value": 1, "source": "x"}})"), testing::HasSubstr("ratol"));
  EXPECT_THAT(error(R"({"math_mode": {"value": "fp322", "source": "x"}})"),
              testing::HasSubstr("did you mean"));
  AskedAccuracy endless;
  endless.rtol = std::numeric_limits<double>::infinity();
  EXPECT_FALSE(read_json<AskedAccuracy>(to_json(endless)));
}

}  // namespace
}  // namespace cutegen
