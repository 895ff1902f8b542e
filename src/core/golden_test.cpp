// SPDX-License-Identifier: Apache-2.0
// Golden files pin the JSON forms of core's values byte for byte. CUTEGEN_UPDATE_GOLDEN=1 rewrites
// the files. A changed file means that a versioned format changed.
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <map>

#include "base/file.h"
#include "core/candidate.h"
#include "core/task.h"
#include "core/verdict.h"

namespace cutegen {
namespace {

using RoundTrip = std::function<Result<Json>(const Json&)>;

template <class T>
Result<Json> through(const Json& json) {
  CG_TRY(T value, read_json<T>(json));
  return to_json(value);
}

const std::map<std::string, RoundTrip>& codecs() {
  static const std::map<std::string, RoundTrip> table{{"task", through<Task>},
                                                      {"plan",
                                                       [](const Json& j) -> Result<Json> {
                                                         CG_TRY(Plan plan, plan_from_json(j));
                                                         return to_json(plan);
                                                       }},
                                                      {"program", through<KernelProgram>},
                                                      {"candidate", through<Candidate>},
                                                      {"event", through<Event>},
                                                      {"verdict", through<Verdict>},
                                                      {"profile", through<Profile>}};
  return table;
}

std::string golden_path(const std::string& name) {
  return std::string(CUTEGEN_SOURCE_DIR) + "/tests/golden/core/" + name + ".json";
}

class Golden : public testing::TestWithParam<std::string> {};

TEST_P(Golden, RoundTripsByteForByte) {
  std::string text = read_file(golden_path(GetParam())).value();
  auto out = codecs().at(GetParam())(parse_json(text, GetParam()).value());
  ASSERT_TRUE(out) << out.error().text();
  std::string written = dump_json(*out, 2) + "\n";
  if (std::getenv("CUTEGEN_UPDATE_GOLDEN"))
    ASSERT_TRUE(write_file(golden_path(GetParam()), written));
  else
    EXPECT_EQ(written, text);
}

// A missing or retyped field must be an error or a default. Whatever the parser accepts must
// survive another round trip.
void mutate_each(const Json& json, const std::function<void(Json&)>& change,
                 const std::function<void(const Json&, const std::string&)>& use) {
  std::vector<Json::json_pointer> pointers;
  std::function<void(const Json&, const Json::json_pointer&)> walk =
      [&](const Json& j, const Json::json_pointer& at) {
        pointers.push_back(at);
        if (j.is_object())
          for (const auto& [key, value] : j.items()) walk(value, at / key);
        else if (j.is_array())
          for (size_t i = 0; i < j.size(); ++i) walk(j[i], at / i);
      };
  walk(json, Json::json_pointer());
  for (const auto& pointer : pointers) {
    Json mutated = json;
    change(mutated[pointer]);
    use(mutated, pointer.to_string());
  }
}

TEST_P(Golden, SurvivesEveryMutation) {
  const RoundTrip& codec = codecs().at(GetParam());
  Json json = parse_json(read_file(golden_path(GetParam())).value(), GetParam()).value();
  const Json values[] = {nullptr,
                         true,
                         -1,
                         0,
                         3.5,
                         uint64_t{1} << 63,
                         1e300,
                         "",
                         "a.b?",
                         Json::array(),
                         Json::object(),
                         Json::array({Json::array({1})}),
                         Json{{"zz", 1}}};
  int refused = 0;
  for (const Json& value : values)
    mutate_each(
        json, [&](Json& j) { j = value; },
        [&](const Json& mutated, const std::string& place) {
          auto out = codec(mutated);
          if (!out) {
            EXPECT_EQ(out.error().kind, ErrorKind::user) << place;
            EXPECT_FALSE(out.error().message.empty()) << place;
            EXPECT_FALSE(out.error().where.empty()) << place << " = " << value;
            ++refused;
            return;
          }
          auto again = codec(*out);
          ASSERT_TRUE(again) << place << " = " << value << ": " << again.error().text();
          EXPECT_EQ(*again, *out) << place;
        });
  EXPECT_GT(refused, 20);
}

TEST_P(Golden, RefusesUnknownFields) {
  Json json = parse_json(read_file(golden_path(GetParam())).value(), GetParam()).value();
  json["surprise"] = 1;
  auto out = codecs().at(GetParam())(json);
  ASSERT_FALSE(out);
  EXPECT_NE(out.error().message.find("surprise"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Core, Golden,
                         testing::Values("task", "plan", "program", "candidate", "event", "verdict",
                                         "profile"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace cutegen
