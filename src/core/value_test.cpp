// SPDX-License-Identifier: Apache-2.0
// Rules of core's values beyond their JSON form: names, exit codes, refusals.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "base/file.h"
#include "core/candidate.h"
#include "core/task.h"
#include "core/verdict.h"

namespace cutegen {
namespace {

using testing::HasSubstr;

Json golden(const std::string& name) {
  std::string path = std::string(CUTEGEN_SOURCE_DIR) + "/tests/golden/core/" + name + ".json";
  return parse_json(read_file(path).value(), name).value();
}

std::string task_error(const std::function<void(Json&)>& change) {
  Json json = golden("task");
  change(json);
  auto task = read_json<Task>(json);
  return task ? "no error" : task.error().text();
}

TEST(Task, FindsTensors) {
  Task t = read_json<Task>(golden("task")).value();
  EXPECT_EQ(t.find("fc.weight")->dtype, DType::bf16);
  EXPECT_EQ(t.find("nothing"), nullptr);
  EXPECT_EQ(t.with_role(TensorRole::output).size(), 2U);
  EXPECT_EQ(t.official().tensors.at("x"), (Shape{4096, 1024}));
  EXPECT_EQ(t.graph.producer("max_1.1")->id, "max_1");
  EXPECT_EQ(t.graph.producer("x"), nullptr);
  EXPECT_EQ(t.graph.find("fc.weight")->dtype, DType::bf16);
  EXPECT_EQ(t.graph.find("nothing"), nullptr);
}

TEST(Task, ResultsAreOutputsThenMutatedTensorsByName) {
  Task t = read_json<Task>(golden("task")).value();
  for (TensorInfo& info : t.tensors) info.mutated = info.role != TensorRole::output;
  std::vector<std::string> names, mutated;
  for (const TensorInfo* info : results_of(t)) names.push_back(info->name);
  EXPECT_THAT(std::vector(names.begin(), names.begin() + 2),
              testing::ElementsAre("out.0", "out.1"));
  EXPECT_EQ(names.size(), t.tensors.size());
  EXPECT_TRUE(std::is_sorted(names.begin() + 2, names.end()));
}

TEST(Task, WhatIsReturnedIsAResult) {
  Json json = golden("task");
  json["tensors"][0]["mutated"] = true;
  json["returns"] = {"x", "out.1"};
  Task t = read_json<Task>(json).value();
  EXPECT_THAT(t.returns, testing::ElementsAre("x", "out.1"));
  EXPECT_EQ(to_json(t)["returns"], json["returns"]);
  EXPECT_FALSE(golden("task").contains("returns"));
  EXPECT_THAT(task_error([](Json& j) { j["returns"] = {"x"}; }),
              HasSubstr("task#/returns: error: 'x' is neither an output nor mutated"));
  EXPECT_THAT(task_error([](Json& j) { j["returns"] = {"nope"}; }), HasSubstr("'nope'"));
}

TEST(Task, KeepsInfiniteAttributes) {
  Task t = read_json<Task>(golden("task")).value();
  EXPECT_TRUE(std::isinf(std::get<double>(t.attributes[4].value)));
  t.attributes[4].value = std::nan("");
  EXPECT_TRUE(
      std::isnan(std::get<double>(read_json<Task>(to_json(t)).value().attributes[4].value)));
}

TEST(Task, RefusesInconsistentShapes) {
  EXPECT_THAT(task_error([](Json& j) { j["shapes"] = Json::array(); }), HasSubstr("no shapes"));
  EXPECT_THAT(task_error([](Json& j) { j["shapes"][1]["tensors"].erase("x"); }),
              HasSubstr("task#/shapes/odd1: error: no shape of 'x'"));
  EXPECT_THAT(task_error([](Json& j) { j["shapes"][1]["tensors"]["x"] = {7}; }),
              HasSubstr("a different number of dimensions"));
  EXPECT_THAT(task_error([](Json& j) { j["tensors"][1]["name"] = "x"; }), HasSubstr("twice"));
  EXPECT_THAT(task_error([](Json& j) { j["tensors"][0]["shape"] = {INT64_MAX, 2}; }),
              HasSubstr("overflows"));
  EXPECT_THAT(task_error([](Json& j) { j["tensors"][0]["shape"] = {-1, 2}; }),
              HasSubstr("-1 is below 0"));
  EXPECT_THAT(task_error([](Json& j) { j["schema"] = "cutegen.task.v2"; }),
              HasSubstr("another version"));
  EXPECT_THAT(task_error([](Json& j) { j["math_mode"] = "fp322"; }), HasSubstr("did you mean"));
}

TEST(Graph, RefusesUnknownReferences) {
  EXPECT_THAT(task_error([](Json& j) { j["graph"]["nodes"][0]["args"][0]["ref"] = "nope"; }),
              HasSubstr("unknown value 'nope'"));
  EXPECT_THAT(task_error([](Json& j) {
                j["graph"]["nodes"][0]["args"][0] = Json::array({1, {{"ref", "clamp"}}});
              }),
              HasSubstr("graph#/nodes/0/args/0/1/ref: error: unknown value 'clamp'"));
  EXPECT_THAT(task_error([](Json& j) { j["graph"]["outputs"] = {"nope"}; }),
              HasSubstr("graph#/outputs"));
  EXPECT_THAT(task_error([](Json& j) { j["graph"]["nodes"][2]["outputs"][0]["name"] = "mul"; }),
              HasSubstr("'mul' occurs twice"));
}

TEST(Verdict, ExitCodes) {
  EXPECT_EQ(exit_code(Status::correct), 0);
  EXPECT_EQ(exit_code(Status::failed), 3);
  EXPECT_EQ(exit_code(Status::rejected), 4);
  EXPECT_EQ(exit_code(Status::unsupported), 5);
  EXPECT_EQ(exit_code(Status::aborted), 6);
}

TEST(Verdict, NamesAreUnique) {
  for (const char* name : {"lint", "compile", "audit", "load", "correctness", "timing", "profile"})
    EXPECT_STREQ(to_string(rung_from(name).value()), name);
  EXPECT_THAT(rung_from("compiel").error().text(), HasSubstr("did you mean 'compile'?"));
  EXPECT_THAT(rung_from("xyz").error().text(), HasSubstr("one of lint, compile"));
  EXPECT_STREQ(to_string(math_mode_from("bf16").value()), "bf16");
  EXPECT_FALSE(math_mode_from("int8"));
}

TEST(Verdict, OptionalPartsStayAbsent) {
  Json json = golden("verdict");
  json["timing"]["paired"] = Json::array({{{"against", "incumbent"},
                                           {"program_id", "p1"},
                                           {"speedup", 1.2},
                                           {"low", 1.1},
                                           {"high", 1.3},
                                           {"other_ns", 12.0},
                                           {"pairs", 16},
                                           {"stopped", "precise"}}});
  json["timing"]["clock"] = {{"claimed_ns", 10.0}, {"seen_ns", 12.0}, {"agrees", true}};
  auto paired = read_json<Verdict>(json);
  ASSERT_TRUE(paired) << paired.error().text();
  EXPECT_EQ(to_json(*paired), json);
  json["timing"]["paired"][0].erase("stopped");
  EXPECT_FALSE(read_json<Verdict>(json));
  json.erase("timing");
  json.erase("profile");
  json.erase("audit");
  Verdict v = read_json<Verdict>(json).value();
  EXPECT_FALSE(v.timing);
  EXPECT_FALSE(v.profile);
  EXPECT_FALSE(v.audit);
  EXPECT_EQ(to_json(v), json);
}

TEST(Candidate, RootHasNoParent) {
  Json json = golden("candidate");
  json.erase("parent");
  Candidate c = read_json<Candidate>(json).value();
  EXPECT_FALSE(c.parent);
  EXPECT_EQ(to_json(c), json);
}

TEST(Event, RefusesStrangeNumbers) {
  Json json = golden("event");
  json["seq"] = -1;
  EXPECT_FALSE(read_json<Event>(json));
  json["seq"] = 1;
  json["version"] = 0;
  EXPECT_FALSE(read_json<Event>(json));
}

// Older journals, whose profiles have no lines and remarks, stay readable.
TEST(Profile, FieldsThatCameLaterMayBeMissing) {
  auto parsed = parse_json(
      R"({"schema": "cutegen.profile.v1", "shape": "official", "kernels":
      [{"kernel": "f", "origin": "modelled", "time_ns": 1, "bound_by": "dram", "counters": {}}]})",
      "test");
  auto profile = read_json<Profile>(*parsed);
  ASSERT_TRUE(profile) << profile.error().text();
  EXPECT_EQ(profile->kernels[0].sampled_share, 1);
  EXPECT_TRUE(profile->kernels[0].lines.empty());
}

}  // namespace
}  // namespace cutegen
