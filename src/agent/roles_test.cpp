// SPDX-License-Identifier: Apache-2.0
// The questions of all roles, compared with golden files; their sizes; hints and advice. After a
// deliberate change: CUTEGEN_UPDATE_GOLDEN=1 agent_test, then read the difference.
#include "agent/roles.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <regex>

#include "agent/describe.h"
#include "agent/hints.h"
#include "agent/library.h"
#include "agent/testing/test_program.h"
#include "agent/tools.h"
#include "base/file.h"
#include "base/text.h"
#include "llm/tokens.h"

namespace cutegen::agent {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

TaskBrief softmax_brief(size_t nodes = 2) {
  TaskBrief b;
  Task& t = b.task;
  t.name = "softmax";
  t.source =
      "import torch\nimport torch.nn as nn\n\n\nclass Model(nn.Module):\n    def forward(self, "
      "x):\n"
      "        return torch.softmax(x, dim=1)\n\n\ndef get_inputs():\n    return [torch.rand(4096, "
      "1024)]\n\n\ndef get_init_inputs():\n    return []\n";
  t.tensors = {
      {.name = "x", .role = TensorRole::input, .dtype = DType::f32, .shape = {4096, 1024}},
      {.name = "out", .role = TensorRole::output, .dtype = DType::f32, .shape = {4096, 1024}}};
  t.attributes = {{.name = "dim", .value = int64_t{1}}};
  t.workload = "softmax";
  ShapeCase official;
  official.name = "official";
  official.tensors = {{"x", {4096, 1024}}, {"out", {4096, 1024}}};
  official.least_bytes = Bytes{33554432};
  official.flops = Flops{20971520};
  ShapeCase odd = official;
  odd.name = "odd1";
  odd.kind = ShapeKind::odd;
  odd.tensors = {{"x", {7, 33}}, {"out", {7, 33}}};
  t.shapes = {official, odd};
  for (size_t i = 0; i < nodes; ++i) {
    std::string name = "n" + std::to_string(i);
    t.graph.nodes.push_back(
        {.id = name,
         .op = i ? "aten.div.Tensor" : "aten.exp.default",
         .args = {Json{{"ref", i ? "n0" : "x"}}},
         .kwargs = Json::object(),
         .outputs = {{.name = name, .dtype = DType::f32, .shape = {4096, 1024}}}});
  }
  b.gpu = find_gpu("h200").value();
  b.device = "sim:h200";
  b.floor_ns = 6990, b.reachable_ns = 9600, b.roofline_ns = 7000;
  b.bound_by = RooflineBound::memory;
  return b;
}

struct State {
  Candidate candidate;
  Verdict verdict;
};

State correct_state() {
  State s;
  s.candidate.id = "c3";
  s.candidate.program = test_program();
  s.verdict.status = Status::correct;
  s.verdict.timing = Timing{.origin = Origin::modelled, .time_ns = 21000, .floor_ns = 6990};
  s.verdict.feedback.resources = "scale: 24 registers, no spills";
  s.verdict.feedback.bottleneck = "scale is bound by latency (21.0 us)";
  KernelProfile k;
  k.kernel = "scale";
  k.time_ns = 15000;
  k.bound_by = "latency";
  k.limited_by = CtaLimit::grid;
  k.counters = {
      {"occupancy", 0.25},          {"warp_instructions", 184320}, {"registers", 24},
      {"limit_ctas.blocks", 32},    {"modelled_ns.dram", 4100},    {"dram_read_bytes", 8388608},
      {"dram_write_bytes", 8388608}};
  k.remarks = {{.kind = "bytes_in_flight",
                .line = 30,
                .message = "2.1 KB in flight an SM; 24 KB are needed"}};
  k.lines = {{.line = 30,
              .text = "float value = x[i];",
              .counters = {{"issue_share", 0.4}, {"memory_share", 0.5}}}};
  s.verdict.profile = Profile{.kernels = {k}, .shape = "official"};
  return s;
}

State failed_state() {
  State s = correct_state();
  s.candidate.id = "c4";
  s.verdict = Verdict{};
  s.verdict.status = Status::failed;
  s.verdict.feedback.headline =
      "out: 36 of 231 elements wrong (15.6%) on shape odd1: columns from 32 on";
  s.verdict.feedback.mismatches = {{.shape = "odd1",
                                    .family = "made",
                                    .output = "out",
                                    .elements = 231,
                                    .wrong = 36,
                                    .pattern = "columns from 32 on"}};
  s.verdict.feedback.detail =
      "first wrong at [0, 32]\nthe worst error is 1e+06 times the accepted one";
  return s;
}

std::vector<Attempt> some_history() {
  return {{.id = "c1",
           .parent = "",
           .summary = "rows in registers",
           .status = Status::correct,
           .headline = "",
           .time_ns = 42000,
           .kept = true},
          {.id = "c2",
           .parent = "c1",
           .summary = "wider loads",
           .status = Status::failed,
           .headline = "kernel.cu:12: expected a \";\"",
           .kept = false},
          {.id = "c3",
           .parent = "c1",
           .summary = "two rows a warp",
           .status = Status::correct,
           .headline = "",
           .time_ns = 21000,
           .kept = true}};
}

void expect_golden(const std::string& name, const std::string& text) {
  std::string path = std::string(CUTEGEN_SOURCE_DIR) + "/tests/golden/agent/" + name + ".md";
  if (std::getenv("CUTEGEN_UPDATE_GOLDEN")) {
    ASSERT_TRUE(write_file(path, text));
  }
  auto held = read_file(path);
  ASSERT_TRUE(held) << held.error().text();
  EXPECT_EQ(*held, text) << "see the head of this file";
}

// Everything after the task.
std::string question(const Question& q) {
  std::string out;
  for (const llm::Message& message : make_request(softmax_brief(), q, {}).messages)
    out += (out.empty() ? "" : "\n") + message.text;
  const std::string task = make_request(softmax_brief(), {}, {}).messages.at(0).text;
  EXPECT_TRUE(out.starts_with(task));
  return out.substr(std::min(out.size(), task.size() + 1));
}

TEST(Golden, WhatAllQuestionsOfARunBeginWith) {
  auto request =
      make_request(softmax_brief(), {.role = Role::coder, .purpose = Purpose::first}, {});
  expect_golden("system", request.system);
  expect_golden("task", request.messages.at(0).text);
  EXPECT_TRUE(request.messages[0].cache_end);
  auto cuda = softmax_brief();
  cuda.dialect = Dialect::cuda;
  EXPECT_THAT(make_request(cuda, {.role = Role::coder, .purpose = Purpose::first}, {}).system,
              AllOf(HasSubstr("\"dialect\": \"cuda\""), Not(HasSubstr("TiledMMA"))));
}

// Models used `k` as a symbol, because no question said that the name is reserved.
TEST(Questions, ReservedNamesAndFamiliesAreInTheCommonPart) {
  const std::string system =
      make_request(softmax_brief(), {.role = Role::coder, .purpose = Purpose::first}, {}).system;
  const size_t at = system.find("These names are reserved");
  ASSERT_NE(at, std::string::npos);
  const std::string reserved = system.substr(at, system.find('\n', at) - at);
  for (const std::string name : {"arg", "attr", "ceil_div", "dim", "k", "max", "min", "occupancy",
                                 "size", "stride", "rows"}) {
    Json plan = to_json(test_program().plan);
    plan["symbols"] = {{name, "4"}};
    plan["steps"][0]["grid"] = {name};
    const bool refused = !plan_from_json(plan);
    EXPECT_EQ(refused, name != "rows") << name;
    EXPECT_EQ(std::regex_search(reserved, std::regex("\\b" + name + "\\b")), refused) << name;
  }
  EXPECT_THAT(reserved, HasSubstr(" gpu "));  // "gpu.sms"
  for (const char* family : {"made", "signed", "heavy", "outliers", "special", "extremes"})
    EXPECT_THAT(system, HasSubstr(std::string("`") + family + "` (")) << family;
}

TEST(Questions, TheStrictDialectNamesWhatItRefuses) {
  auto brief = softmax_brief();
  auto system = [&] {
    return make_request(brief, {.role = Role::coder, .purpose = Purpose::first}, {}).system;
  };
  EXPECT_THAT(system(), Not(HasSubstr("cute-strict")));
  brief.dialect = Dialect::cute_strict;
  EXPECT_THAT(system(), AllOf(HasSubstr("\"dialect\": \"cute-strict\","),
                              HasSubstr("The lint refuses inline assembly with matrix"),
                              HasSubstr("TiledMMA")));
}

// Three of four statements use CuTe, or none does; plain CUDA has no share.
TEST(Questions, TheShareOfCuteIsTold) {
  KernelProgram program;
  program.sources["kernel.cu"] =
      "#include <cute/tensor.hpp>\nvoid f() { auto l = make_layout(a); auto t = make_tensor(p, l);"
      " copy(t, u); int i = 0; }";
  EXPECT_EQ(describe_cute(program), "CuTe: 75% of the statements.\n");
  program.plan.dialect = Dialect::cute_strict;
  EXPECT_EQ(describe_cute(program), "CuTe: 75% of the statements.\n");
  program.sources["kernel.cu"] = "void f() { int i = 0; }";
  EXPECT_THAT(describe_cute(program), HasSubstr("CuTe: 0% of the statements. Use its layouts"));
  program.plan.dialect = Dialect::cuda;
  EXPECT_EQ(describe_cute(program), "");
  const State good = correct_state();
  EXPECT_THAT(question({.role = Role::coder,
                        .purpose = Purpose::improve,
                        .subject = &good.candidate,
                        .verdict = &good.verdict}),
              HasSubstr("% of the statements."));
}

TEST(Golden, QuestionsOfAllRoles) {
  State good = correct_state(), bad = failed_state();
  expect_golden("planner",
                question({.role = Role::planner, .purpose = Purpose::plan, .approaches = 2}));
  expect_golden("coder_first", question({.role = Role::coder,
                                         .purpose = Purpose::first,
                                         .approach = "One warp a row, all in registers."}));
  expect_golden("coder_structure", question({.role = Role::coder,
                                             .purpose = Purpose::improve,
                                             .stage = Stage::structure,
                                             .subject = &good.candidate,
                                             .verdict = &good.verdict,
                                             .history = some_history()}));
  expect_golden("coder_detail", question({.role = Role::coder,
                                          .purpose = Purpose::improve,
                                          .stage = Stage::detail,
                                          .subject = &good.candidate,
                                          .verdict = &good.verdict,
                                          .history = some_history(),
                                          .profile = true}));
  expect_golden("debugger", question({.role = Role::debugger,
                                      .purpose = Purpose::repair,
                                      .subject = &bad.candidate,
                                      .verdict = &bad.verdict,
                                      .history = some_history(),
                                      .advice = "PROBLEM: the tail of a row is not written",
                                      .repair = 2}));
  expect_golden("judge_repair", question({.role = Role::judge,
                                          .purpose = Purpose::repair,
                                          .subject = &bad.candidate,
                                          .verdict = &bad.verdict}));
  expect_golden("judge_improve", question({.role = Role::judge,
                                           .purpose = Purpose::improve,
                                           .subject = &good.candidate,
                                           .verdict = &good.verdict,
                                           .profile = true}));
  State base = good, changed = good;
  base.candidate.program = changed.candidate.program = long_program();
  changed.candidate.id = "c5";
  std::string& source = changed.candidate.program.sources["kernel.cu"];
  source.replace(source.find("x * 4.5f"), 8, "x * 4.75f");
  source.replace(source.find("  x = stage_9(x);\n"), 18, "  x = stage_9(x) + 1.0f;\n");
  changed.candidate.program.plan.steps[0].block[0] = Expr(128);
  expect_golden("coder_changes", question({.role = Role::coder,
                                           .purpose = Purpose::improve,
                                           .stage = Stage::detail,
                                           .subject = &changed.candidate,
                                           .base = &base.candidate,
                                           .verdict = &changed.verdict,
                                           .history = some_history()}));
  const std::vector<std::string> tests{"one row: tokens = 1; a single block"};
  expect_golden("tester", question({.role = Role::tester, .purpose = Purpose::plan}));
  expect_golden("profiler", question({.role = Role::profiler,
                                      .purpose = Purpose::improve,
                                      .subject = &good.candidate,
                                      .verdict = &good.verdict,
                                      .history = some_history(),
                                      .profile = true}));
  expect_golden("planner_suggest", question({.role = Role::planner,
                                             .purpose = Purpose::improve,
                                             .subject = &good.candidate,
                                             .verdict = &good.verdict,
                                             .history = some_history(),
                                             .reading = "BOTTLENECK: few blocks in flight",
                                             .profile = true,
                                             .tests = tests}));
  expect_golden("planner_repair", question({.role = Role::planner,
                                            .purpose = Purpose::repair,
                                            .subject = &bad.candidate,
                                            .verdict = &bad.verdict}));
  expect_golden("reask",
                reask_text({.reason = "no_block", .text = "The reply contains no block."}, true));
}

TEST(Prompt, AProfileIsShownOnlyWhenItMayBe) {
  State good = correct_state();
  Question q{.role = Role::coder,
             .purpose = Purpose::improve,
             .stage = Stage::detail,
             .subject = &good.candidate,
             .verdict = &good.verdict};
  EXPECT_THAT(question(q), AllOf(Not(HasSubstr("Bottleneck")), Not(HasSubstr("in flight"))));
  q.profile = true;
  EXPECT_THAT(question(q), AllOf(HasSubstr("Bottleneck"), HasSubstr("line   30 | float value")));
}

// cudaforge's coder also repairs, so its question must not call the failing program correct.
TEST(Prompt, ACodersRepairIsARepair) {
  State bad = failed_state();
  const std::string text = question({.role = Role::coder,
                                     .purpose = Purpose::repair,
                                     .subject = &bad.candidate,
                                     .verdict = &bad.verdict,
                                     .advice = "PROBLEM: the tail"});
  EXPECT_THAT(text, AllOf(HasSubstr("Your turn: repair it"), HasSubstr("PROBLEM: the tail"),
                          Not(HasSubstr("It is correct")), Not(HasSubstr("make it faster"))));
}

TEST(Prompt, TheBestIsTheRunsBest) {
  State good = correct_state();
  Question q{.role = Role::coder,
             .purpose = Purpose::improve,
             .stage = Stage::detail,
             .subject = &good.candidate,
             .verdict = &good.verdict,
             .best = "c3",
             .best_ns = 21000};
  EXPECT_THAT(question(q), HasSubstr("It is the run's best so far."));
  q.best = "c1";
  q.best_ns = 19000;
  EXPECT_THAT(question(q),
              AllOf(HasSubstr("the best program of its approach;\nthe run's best is c1 (19 us)."),
                    Not(HasSubstr("best so far"))));
  q.best.clear();  // the question may not show the run's best program
  EXPECT_THAT(question(q), Not(HasSubstr("best")));
}

TEST(Prompt, AFirstProgramSeesTheCorrectOneOfAnotherLine) {
  State good = correct_state();
  Question q{.role = Role::coder, .purpose = Purpose::first, .approach = "columns"};
  EXPECT_THAT(question(q), Not(HasSubstr("another approach")));
  q.other = &good.candidate;
  q.best = "c3";
  q.best_ns = 21000;
  EXPECT_THAT(question(q),
              AllOf(HasSubstr("# Program c3"), HasSubstr("scale(const float* x"),
                    HasSubstr("Program c3 above follows another approach and is correct (21 us)")));
  EXPECT_TRUE(make_request(softmax_brief(), q, {}).files.empty()) << "it is no base for edits";
}

TEST(Verdict, NumbersShowFromTheFirstCorrectProgramOn) {
  State good = correct_state();
  good.verdict.timing->time_ns = 21004.4;
  good.verdict.accuracy = Accuracy{.share = 0.036};
  const std::string text = describe_verdict(good.verdict, 6990, false, 2);
  EXPECT_THAT(text, AllOf(HasSubstr("Time: 21.00 us (modelled), 3.005 times the floor"),
                          HasSubstr("Accuracy: 3.6% of the accepted error is used."),
                          HasSubstr("- scale: 15.00 us (modelled), bound by latency, then by dram "
                                    "(4.100 us)\n"),
                          Not(HasSubstr("line   30"))));
  good.verdict.accuracy->rms = ErrorGate{.rms = 0.5, .rms_limit = 1};
  EXPECT_THAT(describe_verdict(good.verdict, 6990, false, 2), HasSubstr("Accuracy: 50%"));
}

TEST(Prompt, LongTasksAreShortenedToTheLimit) {
  State good = correct_state();
  TaskBrief brief = softmax_brief(3000);
  for (int i = 0; i < 3000; ++i)
    brief.task.source += "# a line of a very long reference " + std::to_string(i) + "\n";
  brief.task.workload = "matmul+conv+norm+elementwise";
  std::vector<Attempt> history;
  for (int i = 0; i < 500; ++i)
    history.push_back({.id = "c" + std::to_string(i),
                       .parent = "c1",
                       .summary = std::string(150, 'x'),
                       .status = Status::failed,
                       .headline = std::string(300, 'y'),
                       .kept = false});
  Question q{.role = Role::coder,
             .purpose = Purpose::improve,
             .stage = Stage::detail,
             .subject = &good.candidate,
             .verdict = &good.verdict,
             .history = history,
             .profile = true};
  for (int64_t limit : {24000, 16000}) {
    auto request = make_request(brief, q, {.prefix_tokens = limit * 5 / 8, .tokens = limit});
    EXPECT_LE(llm::estimate_tokens(request), limit);
    EXPECT_THAT(request.messages, testing::Contains(testing::Field(
                                      &llm::Message::text, HasSubstr("scale(const float* x"))))
        << "the program stays whole";
    EXPECT_THAT(request.messages[0].text, HasSubstr("are not shown"));
    auto with_tools = make_request(
        brief, q,
        {.prefix_tokens = limit * 5 / 8,
         .tokens = limit,
         .tools =
             tool_specs({.compile = true, .evaluate = true, .profile = true, .diff_best = true}),
         .tool_calls = 8});
    EXPECT_LE(llm::estimate_tokens(with_tools), limit);
    EXPECT_THAT(with_tools.system, AllOf(HasSubstr("DRAFT: d2"), HasSubstr("8 times at most")));
    EXPECT_THAT(with_tools.tools, SizeIs(5));
  }
}

// After a small change of a long program, everything before the changes repeats an earlier prompt.
TEST(Prompt, OfANewProgramOnlyTheChangesAreNew) {
  State base = correct_state(), now = correct_state();
  base.candidate.program = long_program();
  now.candidate.id = "c4";
  now.candidate.program = long_program();
  std::string& source = now.candidate.program.sources["kernel.cu"];
  source.replace(source.find("x * 4.5f"), 8, "x * 4.75f");
  Question q{.role = Role::coder,
             .purpose = Purpose::improve,
             .subject = &base.candidate,
             .base = &base.candidate,
             .verdict = &base.verdict,
             .history = some_history()};
  auto before = make_request(softmax_brief(), q, {});
  q.subject = &now.candidate;
  auto after = make_request(softmax_brief(), q, {});
  ASSERT_EQ(after.messages.size(), before.messages.size());
  for (size_t i : {0U, 1U, 3U}) EXPECT_EQ(after.messages[i].text, before.messages[i].text);
  EXPECT_THAT(after.messages[2].text,
              AllOf(HasSubstr("it is c3 above"), HasSubstr("4.75f"), Not(HasSubstr("4.5f"))));
  EXPECT_EQ(after.files.at("kernel.cu"), source);
  EXPECT_EQ(before.files.size(), 2U);
  // Too much is new, so the program is shown whole again.
  source = replace_all(source, "fmaxf", "fminf");
  EXPECT_THAT(make_request(softmax_brief(), q, {}).messages[1].text, HasSubstr("# Program c4"));
}

TEST(Prompt, MostOfALaterQuestionIsThePrefixThatAllShare) {
  State good = correct_state();
  Question q{.role = Role::coder,
             .purpose = Purpose::improve,
             .stage = Stage::structure,
             .subject = &good.candidate,
             .verdict = &good.verdict,
             .history = some_history(),
             .profile = true};
  auto first = make_request(softmax_brief(), {.role = Role::planner, .purpose = Purpose::plan}, {});
  auto later = make_request(softmax_brief(), q, {});
  EXPECT_EQ(first.system, later.system);
  EXPECT_EQ(first.messages[0].text, later.messages[0].text);
  double prefix =
      double(llm::estimate_tokens(later.system) + llm::estimate_tokens(later.messages[0].text));
  EXPECT_GE(prefix / double(llm::estimate_tokens(later)), 0.78);
  EXPECT_LE(llm::estimate_tokens(first), 24000);
  // The next question about the same program also shares the program and its verdict.
  q.stage = Stage::detail;
  q.history.push_back({.id = "c4",
                       .parent = "c3",
                       .summary = "wider loads",
                       .status = Status::failed,
                       .headline = "wrong",
                       .kept = false});
  auto next = make_request(softmax_brief(), q, {});
  ASSERT_EQ(next.messages.size(), 5U);
  // The fourth attempt completes a part of the history. That part then precedes a short program.
  EXPECT_THAT(next.messages[1].text, AllOf(HasSubstr("- c1:"), HasSubstr("- c4 (from c3)")));
  for (size_t i : {1U, 2U}) EXPECT_EQ(next.messages[i + 1].text, later.messages[i].text);
  EXPECT_TRUE(next.messages[1].cache_end);
  EXPECT_TRUE(next.messages[3].cache_end);
  q.history.push_back({.id = "c5",
                       .parent = "c3",
                       .summary = "more warps",
                       .status = Status::failed,
                       .headline = "wrong",
                       .kept = false});
  auto third = make_request(softmax_brief(), q, {});
  ASSERT_EQ(third.messages.size(), 6U);
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(third.messages[i].text, next.messages[i].text);
  EXPECT_THAT(third.messages[4].text, HasSubstr("# Latest attempts\n"
                                                "\n"
                                                "- c5"));
  EXPECT_FALSE(third.messages[4].cache_end);
}

TEST(History, KeepsTheNewestAndTheBest) {
  std::vector<Attempt> all;
  for (int i = 1; i <= 9; ++i)
    all.push_back({.id = "c" + std::to_string(i),
                   .parent = "",
                   .summary = "try",
                   .status = Status::correct,
                   .headline = "",
                   .time_ns = 1000.0 + i,
                   .kept = i == 1});
  EXPECT_THAT(describe_history(all, 2).recent,
              AllOf(HasSubstr("6 earlier attempts"), HasSubstr("- c1:"), HasSubstr("- c9:"),
                    Not(HasSubstr("- c5:"))));
  EXPECT_EQ(describe_history({}, 5).recent, "");
  EXPECT_THAT(describe_history({}, 5).settled, SizeIs(0));
}

// As a history grows to fifty attempts, each text begins with the previous one, except when old
// attempts are dropped.
TEST(History, StaysAsItIsWhileItGrows) {
  std::vector<Attempt> all;
  std::vector<std::string> before;
  int anew = 0;
  for (int i = 1; i <= 50; ++i) {
    all.push_back({.id = "c" + std::to_string(i),
                   .parent = "",
                   .summary = "try",
                   .status = Status::correct,
                   .headline = "",
                   .time_ns = 1000.0 + i,
                   .kept = i == 1});
    auto text = describe_history(all, 16);
    std::string now;
    for (const std::string& part : text.settled) now += part;
    now += text.recent;
    auto shown = std::count(now.begin(), now.end(), '>');
    EXPECT_GE(shown, std::min(i, 9));
    EXPECT_LE(shown, 17);
    EXPECT_LE(std::count(text.recent.begin(), text.recent.end(), '>'), 3);
    bool grew = text.settled.size() >= before.size() &&
                std::equal(before.begin(), before.end(), text.settled.begin());
    anew += !grew;
    before = std::move(text.settled);
  }
  EXPECT_EQ(anew, 5) << "at 17, 25, 33, 41, 49";
}

TEST(Advice, OfPlannersAndJudges) {
  Question planner{.role = Role::planner, .purpose = Purpose::plan, .approaches = 2};
  auto two = parse_advice(
      "Well.\n\n**APPROACH 1: rows**\none warp a row\n\nAPPROACH 2: tiles\nshared\n", planner);
  ASSERT_TRUE(two);
  EXPECT_THAT(*two, ElementsAre("rows\none warp a row", "tiles\nshared"));
  EXPECT_THAT(*parse_advice("just do it", planner), ElementsAre("just do it"));
  const State good = correct_state();
  Question suggests{.role = Role::planner, .purpose = Purpose::improve};
  suggests.subject = &good.candidate;
  EXPECT_THAT(*parse_advice("CHANGE: tiles\nAPPROACH 2: x", suggests),
              ElementsAre("CHANGE: tiles\nAPPROACH 2: x"));
  Question judge{.role = Role::judge, .purpose = Purpose::repair};
  EXPECT_THAT(*parse_advice("<think>hm</think>PROBLEM: a\nFIX: b", judge),
              ElementsAre("PROBLEM: a\nFIX: b"));
  EXPECT_EQ(parse_advice(" \n", judge).error().reason, "no_advice");
  EXPECT_LE(parse_advice(std::string(100000, 'a'), judge)->front().size(), 2600u);
}

TEST(Hints, CertainFaultsNeedNoCompiler) {
  GpuSpec gpu = find_gpu("h200").value();
  KernelProgram p = test_program();
  EXPECT_THAT(certain_faults(p, gpu), SizeIs(0));
  std::string& source = p.sources["kernel.cu"];
  source.replace(source.find("  float value = x[i];"), 0, "  extern __shared__ float tile[];\n");
  EXPECT_THAT(certain_faults(p, gpu).at(0).message, HasSubstr("extern __shared__"));
  p.plan.steps[0].shared_bytes = Expr(1 << 20);
  EXPECT_THAT(certain_faults(p, gpu).at(0).message, HasSubstr("1048576 bytes"));
  p.plan.steps[0].shared_bytes = Expr(1024);
  p.plan.steps[1].block[0] = Expr(2048);
  EXPECT_THAT(certain_faults(p, gpu).at(0).message, HasSubstr("2048 threads"));
}

}  // namespace
}  // namespace cutegen::agent
