// SPDX-License-Identifier: Apache-2.0
#include "agent/test_proposals.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cutegen::agent {
namespace {

using testing::HasSubstr;

Task rows_task() {
  Task task;
  task.tensors = {
      {.name = "x", .role = TensorRole::input, .dtype = DType::f32, .shape = {512, 64}},
      {.name = "out", .role = TensorRole::output, .dtype = DType::f32, .shape = {512, 64}}};
  ShapeCase official{.name = "official"}, odd{.name = "odd1", .kind = ShapeKind::odd};
  odd.constants = {{"rows", 7}};
  task.shapes = {official, odd};
  return task;
}

std::string problem(const std::string& reply) {
  auto tests = parse_test_cases(reply, rows_task());
  return tests ? "accepted" : tests.error().text;
}

TEST(TestProposals, ReadsADocumentInAFenceOrAlone) {
  const std::string document = R"({"cases": [{"sizes": {"rows": 1}, "why": "one block"}]})";
  for (const std::string& reply :
       {document, "Here they are:\n```json\n" + document + "\n```\nGood luck.",
        "<think>{ hm }</think>" + document}) {
    auto tests = parse_test_cases(reply, rows_task());
    ASSERT_TRUE(tests) << tests.error().text;
    ASSERT_EQ(tests->size(), 1U);
    EXPECT_EQ(tests->front().name, "test 1");
    EXPECT_EQ(tests->front().sizes.front().second, 1);
  }
}

TEST(TestProposals, AsksAgainWithThePlaceAndTheRemedy) {
  EXPECT_THAT(problem(""), HasSubstr("has no test"));
  EXPECT_THAT(problem("Test one row."), HasSubstr("has no test"));
  EXPECT_THAT(problem(R"({"cases": [)"
                      "}"),
              HasSubstr("cases"));
  EXPECT_THAT(problem(R"({"tests": []})"), HasSubstr("cases"));
  EXPECT_THAT(problem(R"({"cases": []})"), HasSubstr("give 1 to 6"));
  EXPECT_THAT(problem(R"({"cases": {"rows": 1}})"), HasSubstr("cases"));
  EXPECT_THAT(problem(R"({"cases": [{"sizes": {"rows": "many"}}]})"), HasSubstr("cases/0/sizes"));
  EXPECT_THAT(problem(R"({"cases": [{"sizes": {"rows": -1}}]})"), HasSubstr("from 1 to"));
  EXPECT_THAT(problem(R"({"cases": [{"sizes": {"rows": 1e30}}]})"), HasSubstr("rows"));
  EXPECT_THAT(problem(R"({"cases": [{"values": {"x": {"low": 0, "high": 1e300}}}]})"),
              HasSubstr("stay within"));
  EXPECT_THAT(problem(R"({"cases": [{"sizes": {"rows": 1}, "code": "int"}]})"), HasSubstr("code"));
  std::string many = R"({"cases": [)";
  for (int i = 1; i <= 7; ++i)
    many += std::string(i > 1 ? "," : "") + R"({"sizes": {"rows": )" + std::to_string(i) + "}}";
  EXPECT_THAT(problem(many + "]}"), HasSubstr("7 tests"));
  EXPECT_THAT(problem("{" + std::string(20'000, ' ') + "}"), HasSubstr("longer than 16 KiB"));
}

}  // namespace
}  // namespace cutegen::agent
