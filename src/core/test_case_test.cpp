// SPDX-License-Identifier: Apache-2.0
#include "core/test_case.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/task.h"

namespace cutegen {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Task tokens_task() {
  Task task;
  task.tensors = {
      {.name = "x", .role = TensorRole::input, .dtype = DType::f16, .shape = {512, 4096}},
      {.name = "index", .role = TensorRole::input, .dtype = DType::i64, .shape = {512}},
      {.name = "weight", .role = TensorRole::parameter, .dtype = DType::f16, .shape = {4096}},
      {.name = "out", .role = TensorRole::output, .dtype = DType::f16, .shape = {512, 4096}}};
  ShapeCase official{.name = "official"}, odd{.name = "odd1", .kind = ShapeKind::odd};
  odd.constants = {{"tokens", 7}, {"hidden", 33}};
  task.shapes = {official, odd};
  return task;
}

std::string refusal(const TestCase& test) {
  auto checked = check_test_cases({test}, tokens_task());
  return checked ? "accepted" : checked.error().text();
}

TEST(TestCases, AcceptWhatTheTaskMayBeTestedOn) {
  EXPECT_THAT(sizes_to_test(tokens_task()), ElementsAre("hidden", "tokens"));
  EXPECT_THAT(inputs_to_test(tokens_task()), ElementsAre("x"));
  EXPECT_EQ(refusal({"one row", {{"tokens", 1}}, {}, ""}), "accepted");
  EXPECT_EQ(refusal({"constant", {}, {{"x", {2, 2, {0}}}}, ""}), "accepted");
}

// Each hostile value is refused with an error that names it, its place and the remedy.
TEST(TestCases, RefuseWhatIsNotBounded) {
  const auto size = [](int64_t value) {
    return refusal({.name = "t", .sizes = {{"tokens", value}}, .why = ""});
  };
  for (int64_t value : {int64_t{0}, int64_t{-4}, int64_t{1} << 40, INT64_MAX, INT64_MIN})
    EXPECT_THAT(size(value), HasSubstr("of 'tokens' is not from 1 to")) << value;
  EXPECT_THAT(refusal({"t", {{"heads", 8}}, {}, ""}), HasSubstr("one of hidden, tokens"));
  EXPECT_THAT(refusal({"t", {}, {}, ""}), HasSubstr("neither sizes nor values"));
  const auto range = [](ValueRange r) {
    return refusal({.name = "t", .values = {{"x", std::move(r)}}, .why = ""});
  };
  EXPECT_THAT(range({1, -1, {}}), HasSubstr("low 1, high -1"));
  EXPECT_THAT(range({0, 1e6, {}}), HasSubstr("stay within 65504"));
  EXPECT_THAT(range({0, INFINITY, {}}), HasSubstr("inf is outside the range of 'x' (f16)"));
  EXPECT_THAT(range({0, 1, {NAN}}), HasSubstr("nan is outside the range"));
  EXPECT_THAT(refusal({"t", {}, {{"index", {0, 1, {}}}}, ""}), HasSubstr("no floating input"));
  EXPECT_THAT(refusal({"t", {}, {{"weight", {0, 1, {}}}}, ""}), HasSubstr("one of x"));
}

TEST(TestCases, RefuseAWrongCount) {
  const Task task = tokens_task();
  EXPECT_THAT(check_test_cases({}, task).error().text(), HasSubstr("give 1 to 6"));
  std::vector<TestCase> many;
  for (int i = 0; i < 7; ++i)
    many.push_back({.name = std::to_string(i), .sizes = {{"tokens", i + 1}}, .why = ""});
  EXPECT_THAT(check_test_cases(many, task).error().text(), HasSubstr("7 tests"));
  many.resize(2);
  many[1].name = many[0].name;
  EXPECT_THAT(check_test_cases(many, task).error().text(),
              HasSubstr("two tests have the name '0'"));
}

TEST(TestCases, RoundTripAndRefuseUnknownFields) {
  const TestCase test{.name = "edge",
                      .sizes = {{"tokens", 3}},
                      .values = {{"x", {.low = -1, .high = 4, .edges = {0, 2}}}},
                      .why = "a tail"};
  EXPECT_EQ(*read_json<TestCase>(to_json(test)), test);
  EXPECT_EQ(describe(test), "edge: tokens = 3; x from -1 to 4, also 0, 2; a tail");
  EXPECT_FALSE(read_json<TestCase>(Json{{"name", "x"}, {"shapes", {1}}}));
  Json edges = to_json(test);
  edges["values"]["x"]["edges"] = {1, 2, 3, 4, 5};
  EXPECT_FALSE(read_json<TestCase>(edges));
}

}  // namespace
}  // namespace cutegen
