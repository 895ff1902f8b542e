// SPDX-License-Identifier: Apache-2.0
// The shipped schema and the parser must refuse the same plans. Exceptions are rules that a JSON
// schema cannot express (the text of expressions, names that clash).
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validator.hpp>

#include "base/file.h"
#include "core/plan.h"
#include "core/testing/test_task.h"

namespace cutegen {
namespace {

using Adapter = valijson::adapters::NlohmannJsonAdapter;

class PlanSchema : public testing::Test {
 protected:
  PlanSchema() : schema_json_(nlohmann::json::parse(plan_schema())) {
    valijson::SchemaParser parser(valijson::SchemaParser::kDraft7);
    parser.populateSchema(Adapter(schema_json_), schema_);
  }

  bool accepts(const Json& plan) const {
    nlohmann::json plain = nlohmann::json::parse(plan.dump());
    valijson::Validator validator;
    return validator.validate(schema_, Adapter(plain), nullptr);
  }

  // Checks that schema and parser agree on `plan`.
  void expect_agreement(const Json& plan, const std::string& what) const {
    auto parsed = plan_from_json(plan);
    EXPECT_EQ(accepts(plan), parsed.has_value())
        << what << ": " << (parsed ? "the schema refuses it" : parsed.error().text());
  }

  static std::vector<Json> good_plans() {
    std::string golden = std::string(CUTEGEN_SOURCE_DIR) + "/tests/golden/core/plan.json";
    return {parse_json(test_plan_text(), "plan").value(),
            parse_json(read_file(golden).value(), "plan").value()};
  }

 private:
  nlohmann::json schema_json_;
  valijson::Schema schema_;
};

std::vector<Json::json_pointer> pointers_of(const Json& json) {
  std::vector<Json::json_pointer> out;
  std::function<void(const Json&, const Json::json_pointer&)> walk =
      [&](const Json& j, const Json::json_pointer& at) {
        out.push_back(at);
        if (j.is_object())
          for (const auto& [key, value] : j.items()) walk(value, at / key);
        else if (j.is_array())
          for (size_t i = 0; i < j.size(); ++i) walk(j[i], at / i);
      };
  walk(json, Json::json_pointer());
  return out;
}

TEST_F(PlanSchema, AcceptsGoodPlans) {
  for (const Json& plan : good_plans()) {
    EXPECT_TRUE(accepts(plan));
    EXPECT_TRUE(accepts(to_json(plan_from_json(plan).value())));
  }
}

TEST_F(PlanSchema, AgreesWithTheParserOnEveryRetypedField) {
  const Json values[] = {nullptr,       true,           -1,    0,    2.5, uint64_t{1} << 63, "",
                         Json::array(), Json::object(), "a_b", "f32"};
  for (const Json& plan : good_plans())
    for (const auto& pointer : pointers_of(plan))
      for (const Json& value : values) {
        Json mutated = plan;
        mutated[pointer] = value;
        expect_agreement(mutated, pointer.to_string() + " = " + value.dump());
      }
}

TEST_F(PlanSchema, AgreesWithTheParserOnMissingAndUnknownFields) {
  for (const Json& plan : good_plans())
    for (const auto& pointer : pointers_of(plan)) {
      if (!pointer.empty() && plan[pointer.parent_pointer()].is_object()) {
        Json without = plan;
        without[pointer.parent_pointer()].erase(pointer.back());
        expect_agreement(without, "without " + pointer.to_string());
      }
      if (plan[pointer].is_object()) {
        Json more = plan;
        more[pointer]["un known"] = 1;
        expect_agreement(more, "unknown field in " + pointer.to_string());
      }
    }
}

TEST_F(PlanSchema, RefusesReservedAndOversized) {
  Json plan = good_plans()[0];
  for (const char* name : {"states", "layouts", "rng"}) {
    Json with = plan;
    with[name] = Json::object();
    expect_agreement(with, name);
    EXPECT_FALSE(accepts(with));
  }
  Json many = plan;
  for (int i = 0; i < 513; ++i) many["steps"].push_back(plan["steps"][1]);
  EXPECT_FALSE(accepts(many));
  expect_agreement(many, "513 steps");
  Json escape = plan;
  escape["sources"] = {"../x.cu"};
  EXPECT_FALSE(accepts(escape));
}

}  // namespace
}  // namespace cutegen
