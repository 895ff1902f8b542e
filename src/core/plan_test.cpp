// SPDX-License-Identifier: Apache-2.0
#include "core/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "core/json_place.h"
#include "core/testing/test_task.h"

namespace cutegen {
namespace {

using testing::HasSubstr;

Json good() {
  return parse_json(test_plan_text(), "plan.json").value();
}

// The error for the good plan after `change`.
std::string error_after(const std::function<void(Json&)>& change) {
  Json json = good();
  change(json);
  auto plan = plan_from_json(json);
  return plan ? "no error" : plan.error().text();
}

TEST(PlanParse, ReadsEveryField) {
  Plan p = plan_from_json(good()).value();
  EXPECT_EQ(p.dialect, Dialect::cute);
  EXPECT_EQ(p.arch, std::vector<std::string>{"sm_80+"});
  EXPECT_EQ(p.bind[0], std::pair(std::string("w"), std::string("fc.weight")));
  EXPECT_EQ(p.symbols[1].second.text(), "dim(x,-1)");
  EXPECT_TRUE(p.scratch[0].zero);
  ASSERT_EQ(p.steps.size(), 2U);
  EXPECT_EQ(p.steps[0].grid[0].text(), "M");
  EXPECT_EQ(p.steps[0].grid[2].text(), "1");
  EXPECT_EQ(p.steps[0].args[4].kind, ArgSpec::Kind::i32);
  EXPECT_TRUE(p.steps[1].is_fill);
  EXPECT_EQ(p.steps[1].id, "s1");
}

TEST(PlanParse, CanonicalFormIsAFixedPoint) {
  Json once = to_json(plan_from_json(good()).value());
  EXPECT_EQ(to_json(plan_from_json(once).value()), once);
  EXPECT_FALSE(once["steps"][0].contains("cooperative"));
  EXPECT_FALSE(once["steps"][1].contains("id"));
}

TEST(PlanParse, RefusesReservedFieldsByName) {
  for (const char* name : {"layouts", "rng"})
    EXPECT_THAT(error_after([&](Json& j) { j[name] = Json::object(); }),
                HasSubstr(std::string("'") + name + "' is reserved for a later version"));
  for (const char* name : {"for", "after", "reference"})
    EXPECT_THAT(error_after([&](Json& j) { j["steps"][0][name] = 1; }),
                HasSubstr("plan.json#/steps/0/" + std::string(name) + ": error: '" + name +
                          "' is reserved for a later version"));
  EXPECT_THAT(
      error_after([](Json& j) { j["states"] = Json::array(); }),
      AllOf(HasSubstr("plan.json#/states"), HasSubstr("pass a mutated tensor by its name")));
  EXPECT_THAT(error_after([](Json& j) { j["symbols"]["s"] = "rng.seed"; }), HasSubstr("reserved"));
  EXPECT_THAT(error_after([](Json& j) { j["steps"][0]["args"][0] = {{"state", "h"}}; }),
              HasSubstr("reserved"));
}

TEST(PlanParse, ErrorsNamePlaceAndRemedy) {
  EXPECT_THAT(error_after([](Json& j) { j["cutegen"] = 2; }), HasSubstr("version 2 is not known"));
  EXPECT_THAT(error_after([](Json& j) { j["step"] = 2; }), HasSubstr("did you mean 'steps'?"));
  EXPECT_THAT(error_after([](Json& j) { j["dialect"] = "opencl"; }),
              HasSubstr("one of cute, cuda"));
  EXPECT_THAT(error_after([](Json& j) { j["arch"] = {"sm90"}; }), HasSubstr("plan.json#/arch/0"));
  EXPECT_THAT(error_after([](Json& j) { j["arch"] = Json::array(); }), HasSubstr("1 to 16"));
  EXPECT_THAT(error_after([](Json& j) { j["steps"] = Json::array(); }),
              HasSubstr("at least one step"));
  EXPECT_THAT(error_after([](Json& j) { j.erase("steps"); }), HasSubstr("missing field 'steps'"));
  EXPECT_THAT(error_after([](Json& j) { j["steps"][0].erase("grid"); }),
              HasSubstr("plan.json#/steps/0: error: missing field 'grid'"));
  EXPECT_THAT(error_after([](Json& j) { j["steps"][0]["grid"][0] = "M +"; }),
              HasSubstr("plan.json#/steps/0/grid/0: error: the expression ends too early"));
  EXPECT_THAT(error_after([](Json& j) { j["steps"][0]["grid"] = {1, 1, 1, 1}; }),
              HasSubstr("limit"));
  EXPECT_THAT(error_after([](Json& j) { j["steps"][0]["args"][0] = {{"tensr", "x"}}; }),
              HasSubstr("did you mean 'tensor'?"));
  EXPECT_THAT(error_after([](Json& j) { j["steps"][0]["args"][0] = "x"; }),
              HasSubstr("an argument is an object with one field"));
  EXPECT_THAT(error_after([](Json& j) { j["steps"][1]["kernel"] = "x"; }),
              HasSubstr("unknown field"));
  EXPECT_THAT(error_after([](Json& j) { j["defines"]["A B"] = 1; }), HasSubstr("is not a name"));
  EXPECT_THAT(error_after([](Json& j) { j["defines"]["X=1 -include"] = 1; }),
              HasSubstr("not a name"));
  EXPECT_THAT(error_after([](Json& j) { j["scratch"][0]["dtype"] = "float32"; }),
              HasSubstr("write 'f32'"));
  EXPECT_THAT(error_after([](Json& j) { j["scratch"][0]["init"] = "ones"; }),
              HasSubstr("poison, zero"));
  EXPECT_THAT(error_after([](Json& j) { j["scratch"][0]["life"] = "run"; }),
              HasSubstr("call, weights"));
  EXPECT_THAT(error_after([](Json& j) {
                j["tensor_maps"]["a"] = {
                    {"tensor", "x"}, {"spec", "s"}, {"dims", {1, 2}}, {"strides", {1}}};
              }),
              HasSubstr("2 dims but 1 strides"));
}

TEST(PlanParse, SourcesArePlainFileNames) {
  for (const char* name :
       {"../a.cu", "a/b.cu", "/etc/passwd", "", ".cu", "-o.cu", "a.txt", "a b.cu"})
    EXPECT_THAT(error_after([&](Json& j) { j["sources"] = {name}; }),
                HasSubstr("is not a source name"))
        << name;
  EXPECT_THAT(error_after([](Json& j) { j["sources"] = {"a.cu", "a.cu"}; }), HasSubstr("twice"));
  EXPECT_THAT(error_after([](Json& j) {
                j["sources"] = Json::array();
                for (int i = 0; i < 257; ++i) j["sources"].push_back(std::to_string(i) + ".cu");
              }),
              HasSubstr("1 to 256 sources"));
}

TEST(PlanParse, HostileText) {
  EXPECT_FALSE(parse_plan(""));
  EXPECT_FALSE(parse_plan("[]"));
  EXPECT_FALSE(parse_plan("null"));
  EXPECT_FALSE(parse_plan(std::string(100'000, '[')));
  EXPECT_FALSE(parse_plan("{\"cutegen\": 1e999}"));
  EXPECT_FALSE(parse_plan("{\"cutegen\": 1, \"sources\": [\"\xff\xfe.cu\"]}"));
  EXPECT_THAT(parse_plan(std::string(2 << 20, ' ')).error().text(), HasSubstr("over the limit"));
  EXPECT_THAT(parse_plan("{\n \"cutegen\": 1,\n}").error().where, HasSubstr("plan.json:3:1"));
  EXPECT_THAT(error_after([](Json& j) {
                for (int i = 0; i < 1025; ++i) j["symbols"]["s" + std::to_string(i)] = 1;
              }),
              HasSubstr("the limit is 1024"));
}

// All messages of check_plan for the good plan after `change`.
std::vector<std::string> problems(const std::function<void(Json&)>& change) {
  Json json = good();
  change(json);
  auto plan = plan_from_json(json);
  if (!plan) return {"does not parse: " + plan.error().text()};
  std::vector<std::string> out;
  for (const Error& e : check_plan(*plan, test_task())) out.push_back(e.text());
  return out;
}

#define EXPECT_PROBLEM(text, ...) \
  EXPECT_THAT(problems([](Json& j) { __VA_ARGS__; }), testing::ElementsAre(HasSubstr(text)))

TEST(PlanCheck, AcceptsTheGoodPlan) {
  EXPECT_TRUE(problems([](Json&) {}).empty());
}

TEST(PlanCheck, Names) {
  EXPECT_PROBLEM(
      "plan.json#/bind/w: error: the task has no tensor 'fc.weigth' "
      "(did you mean 'fc.weight'?)",
      j["bind"]["w"] = "fc.weigth");
  EXPECT_PROBLEM("'x' is already a tensor of the task", j["bind"]["x"] = "fc.weight");
  EXPECT_PROBLEM("neither the task nor the scratch has 'outt' (did you mean 'out'?)",
                 j["steps"][0]["args"][0]["tensor"] = "outt");
  EXPECT_PROBLEM("unknown symbol 'N'", j["steps"][0]["grid"][0] = "N");
  EXPECT_PROBLEM("the task has no tensor 'y'", j["symbols"]["Y"] = "dim(y, 0)");
  EXPECT_PROBLEM("'x' has 2 dimension(s), so there is no axis 2", j["symbols"]["Y"] = "dim(x, 2)");
  EXPECT_PROBLEM("so there is no axis -3", j["symbols"]["Y"] = "stride(x, -3)");
  EXPECT_PROBLEM("the task has no attribute 'epss' (did you mean 'eps'?)",
                 j["defines"]["EPS"] = "attr(epss)");
  EXPECT_PROBLEM("attribute 'mode' is a string", j["defines"]["EPS"] = "attr(mode)");
  EXPECT_PROBLEM("the task has no scalar argument 'beta'", j["symbols"]["b"] = "arg(beta)");
  EXPECT_PROBLEM("no step launches a kernel 'nrm' (did you mean 'norm'?)",
                 j["symbols"]["o"] = "occupancy(nrm)");
  EXPECT_PROBLEM("no tensor map 'a'", j["steps"][0]["args"].push_back({{"map", "a"}}));
  EXPECT_PROBLEM("symbol 'B' is used before it is defined",
                 j["symbols"] = (Json{{"A", "B"}, {"B", 1}, {"M", 1}, {"K", 1}}));
  EXPECT_PROBLEM("scratch 'sums' occurs twice", j["scratch"].push_back(j["scratch"][0]));
  EXPECT_PROBLEM("'out' is already a tensor",
                 j["scratch"].push_back({{"name", "out"}, {"dtype", "f32"}, {"shape", {1}}}));
  EXPECT_PROBLEM("two steps are called 'norm'", j["steps"][1]["id"] = "norm");
}

TEST(PlanCheck, Literals) {
  EXPECT_PROBLEM("plan.json#/steps/0/grid/0: error: grid[0] is 0; it must be positive",
                 j["steps"][0]["grid"][0] = 0);
  EXPECT_PROBLEM("block[1] is -4; it must be positive", j["steps"][0]["block"][1] = -4);
  EXPECT_PROBLEM("2048 threads per block: the limit is 1024", j["steps"][0]["block"] = {1024, 2});
  EXPECT_PROBLEM("block[0] is 2048, over the limit of 1024", j["steps"][0]["block"] = {2048});
  EXPECT_PROBLEM("3221225472 bytes of shared memory: the limit is 232448",
                 j["steps"][0]["shared_bytes"] = "3 * 1024 * 1024 * 1024");
  EXPECT_PROBLEM("division by zero", j["steps"][0]["grid"][0] = "1 / 0");
  EXPECT_PROBLEM("a size of -1", j["scratch"][0]["shape"][0] = -1);
}

TEST(PlanCheck, WhatAStepMayTouch) {
  EXPECT_PROBLEM("'x' is the task's input and must not be written", j["steps"][1]["fill"] = "x");
  EXPECT_PROBLEM("no step gets the output 'out'", j["steps"].erase(1),
                 j["steps"][0]["args"][3]["tensor"] = "sums");
  auto prepare = [](const char* tensor) {
    return Json::array({{{"kernel", "pack"},
                         {"grid", {1}},
                         {"block", {1}},
                         {"args", Json::array({{{"tensor", tensor}}})}}});
  };
  EXPECT_TRUE(problems([&](Json& j) { j["prepare"] = prepare("w"); }).empty());
  EXPECT_THAT(problems([&](Json& j) { j["prepare"] = prepare("x"); }),
              testing::ElementsAre(HasSubstr("'x' does not persist between calls")));
  EXPECT_THAT(problems([&](Json& j) { j["prepare"] = prepare("sums"); }),
              testing::ElementsAre(HasSubstr("'sums' does not persist between calls")));
}

TEST(PlanCheck, AMutatedTensorIsAResultOfTheSteps) {
  Task task = test_task();
  task.tensors[1].mutated = true;  // fc.weight
  auto problems_of = [&](const std::function<void(Json&)>& change) {
    Json json = good();
    change(json);
    std::string out;
    for (const Error& e : check_plan(plan_from_json(json).value(), task)) out += e.text() + "\n";
    return out;
  };
  EXPECT_EQ(problems_of([](Json&) {}), "");
  EXPECT_EQ(problems_of([](Json& j) { j["steps"][1]["fill"] = "w"; }), "");
  EXPECT_THAT(problems_of([](Json& j) { j["steps"][0]["args"][1]["tensor"] = "x"; }),
              HasSubstr("no step gets the mutated tensor 'fc.weight'"));
  EXPECT_THAT(problems_of([](Json& j) {
                Json step{{"kernel", "pack"}, {"grid", {1}}, {"block", {1}}};
                step["args"] = Json::array({{{"tensor", "w"}}});
                j["prepare"] = Json::array({step});
              }),
              HasSubstr("'w' does not persist between calls"));
}

TEST(PlanCheck, WhatDependsOnModulesComesLate) {
  EXPECT_PROBLEM("needs k(name)", j["defines"]["S"] = "k(smem)");
  EXPECT_PROBLEM("needs k(name)", j["symbols"]["S"] = "k(smem)", j["requires"] = {"S > 0"});
  EXPECT_TRUE(problems([](Json& j) { j["symbols"]["S"] = "k(smem)"; }).empty());
}

TEST(PlanCheck, ListsEveryProblem) {
  EXPECT_EQ(problems([](Json& j) {
              j["bind"]["v"] = "nothing";
              j["symbols"]["Y"] = "dim(y, 0) + attr(z)";
              j["steps"][0]["block"][0] = 0;
            }).size(),
            4U);
}

TEST(JsonPlace, FindsValues) {
  std::string text = test_plan_text();
  EXPECT_EQ(place_of(text, ""), std::pair(1, 1));
  EXPECT_EQ(place_of(text, "/cutegen"), std::pair(2, 14));
  EXPECT_EQ(place_of(text, "/bind/w"), std::pair(4, 17));
  EXPECT_EQ(place_of(text, "/steps/0/grid/0"), std::pair(10, 15));
  EXPECT_EQ(place_of(text, "/steps/0/args/4/i32"), std::pair(12, 23));
  EXPECT_EQ(place_of(text, "/steps/1/value"), std::pair(13, 30));
  EXPECT_EQ(place_of(text, "/steps/1/missing"), std::pair(13, 5));
  EXPECT_EQ(place_of(text, "/steps/7/grid"), std::nullopt);
  EXPECT_EQ(place_of(text, "steps"), std::nullopt);
  EXPECT_EQ(place_of("{\"a/b\": {\"c\\\"\": [true, null, -1.5e3, \"],\", 7]}}", "/a~1b/c\"/4"),
            std::pair(1, 44));
}

TEST(JsonPlace, SurvivesBrokenText) {
  std::string text = test_plan_text();
  for (size_t n = 0; n < text.size(); ++n)
    (void)place_of(std::string_view(text).substr(0, n), "/steps/0/args/4/i32");
  EXPECT_EQ(place_of("", "/a/b"), std::nullopt);
  EXPECT_EQ(place_of(std::string(1 << 20, '['), "/0/0").value().second, 3);
}

TEST(PlanCheck, SymbolsWithTheNameOfAFunctionAreRefusedWithTheReservedNames) {
  for (const char* name : {"k", "min", "dim", "gpu"}) {
    Json json = good();
    json["symbols"][name] = "dim(x,0)";
    std::string out;
    for (const Error& e : check_plan(plan_from_json(json).value(), test_task()))
      out += e.text() + "\n";
    EXPECT_THAT(out, HasSubstr(std::string("/symbols/") + name)) << name;
    EXPECT_THAT(out,
                HasSubstr(std::string(name) == "gpu" ? "choose another name" : "gpu are reserved"))
        << out;
  }
}

TEST(JsonPlace, TurnsErrorsIntoFilePlaces) {
  Json json = good();
  json["steps"][0]["grid"][0] = 0;
  std::string text = dump_json(json, 1);
  auto errors = check_plan(parse_plan(text).value(), test_task());
  ASSERT_EQ(errors.size(), 1U);
  EXPECT_THAT(with_place(errors[0], text).text(),
              testing::MatchesRegex("plan.json:[0-9]+:[0-9]+: "
                                    "error: grid.0. is 0; it must be .*"));
  Error plain{.kind = ErrorKind::user, .message = "m", .where = "x.py:3"};
  EXPECT_EQ(with_place(plain, text).where, "x.py:3");
}

#undef EXPECT_PROBLEM

}  // namespace
}  // namespace cutegen
