// SPDX-License-Identifier: Apache-2.0
// Tests the strategies that ask a model in toy worlds of scripted answers and verdicts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "search/strategy.h"
#include "search/testing/test_verdict.h"

namespace cutegen::search {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

Verdict wrong(const std::string& headline = "wrong values") {
  Verdict v;
  v.status = Status::failed;
  v.feedback.headline = headline;
  return v;
}

Candidate source_kernel(const std::string& id) {
  Candidate out{.id = id};
  out.program.sources["kernel.cu"] = "extern \"C\" __global__ void k() {}\n";
  out.program.plan.sources = {"kernel.cu"};
  Step step;
  step.id = step.kernel = "k";
  out.program.plan.steps = {step};
  return out;
}

std::vector<TestCase> proposed_tests() {
  return {{.name = "one row", .sizes = {{"rows", 1}}, .why = "a single block"}};
}

// The verdict of a program with wrong values.
Verdict wrong_values() {
  Verdict v = wrong();
  v.rungs = {{.rung = Rung::correctness,
              .result = RungResult::failed,
              .elapsed = Nanoseconds(0),
              .detail = ""}};
  return v;
}

// One question that the strategy asked.
struct Asked {
  Role role;
  Json context;
};

// `answer` gives the outcome of a question ("" for the default). `judge` gives a candidate's
// verdict by its number and its question.
struct AgentWorld {
  std::function<Verdict(int number, const Asked& by)> judge;
  std::function<std::string(const Asked&, int number)> outcome = [](const Asked&, int) {
    return std::string();
  };
  std::string workload = "softmax";
  double floor_ns = 0, reachable_ns = 0;
  bool source = false;  // the task is a CUDA kernel

  std::vector<Asked> asked{};
  std::vector<Event> events{};
  std::vector<std::string> decisions{};
  std::map<std::string, Asked> makers{};
  int proposed = 0, evaluations = 0;

  void feed(Strategy& s, EventType type, Json data) {
    data["clock_ms"] = int64_t(events.size());
    events.push_back({.seq = int64_t(events.size()) + 1, .type = type, .version = 1, .data = data});
    s.apply(events.back());
  }

  void answer(Strategy& s, const Ask& ask) {
    asked.push_back({ask.role, ask.context});
    std::string special = outcome(asked.back(), int(asked.size()));
    if (!special.empty())
      return feed(s, EventType::answered, {{"outcome", special}, {"reason", "no block"}});
    if (ask.role == Role::planner)
      return feed(s, EventType::answered,
                  {{"outcome", "advised"}, {"advice", {"rows", "columns", "both"}}});
    if (ask.role == Role::tester)
      return feed(s, EventType::answered,
                  {{"outcome", "advised"}, {"tests", write_json(proposed_tests())}});
    if (ask.role == Role::profiler)
      return feed(s, EventType::answered,
                  {{"outcome", "advised"}, {"advice", {"bound by the loads"}}});
    if (ask.role == Role::judge)
      return feed(s, EventType::answered,
                  {{"outcome", "advised"}, {"advice", {"look at the tail"}}});
    std::string id = "c" + std::to_string(++proposed);
    makers[id] = asked.back();
    Json candidate{{"id", id}};
    if (ask.role == Role::source) candidate = to_json(source_kernel(id));
    feed(s, EventType::answered, {{"outcome", "proposed"}, {"candidate", candidate}});
  }

  Finish run(const std::string& name, const StrategySettings& settings) {
    auto made = make_strategy(*strategy_from(name), settings);
    EXPECT_TRUE(made) << made.error().text();
    Strategy& s = **made;
    feed(s, EventType::opened, Json::object());
    Json task{{"floor_ns", floor_ns},
              {"reachable_ns", reachable_ns},
              {"floor_bound_by", "memory"},
              {"task", {{"workload", workload}}}};
    if (source) task["start"] = Json::object(), task["device"] = "sim:h200";
    feed(s, EventType::task, std::move(task));
    for (int guard = 0; guard < 3000; ++guard) {
      auto todo = s.next();
      if (todo.size() != 1) break;
      feed(s, event_type(todo[0]), event_data(todo[0]));
      if (auto* ask = std::get_if<Ask>(&todo[0])) {
        answer(s, *ask);
      } else if (auto* e = std::get_if<Evaluate>(&todo[0])) {
        ++evaluations;
        Verdict v = judge(std::stoi(e->candidate.substr(1)), makers[e->candidate]);
        if (e->profile && v.status == Status::correct) v.profile = Profile{};
        feed(s, EventType::evaluated, {{"candidate", e->candidate}, {"verdict", to_json(v)}});
      } else if (auto* f = std::get_if<Finish>(&todo[0])) {
        return *f;
      } else {
        decisions.push_back(to_string(event_type(todo[0])) + std::string(" ") +
                            events.back().data["candidate"].get<std::string>());
      }
    }
    ADD_FAILURE() << "the strategy did not finish";
    return {};
  }
  std::vector<std::string> roles() const {
    std::vector<std::string> out;
    for (const Asked& a : asked)
      out.push_back(to_string(a.role) + std::string(" ") + a.context["purpose"].get<std::string>());
    return out;
  }
};

StrategySettings settings(int64_t evaluations, const AgentSettings& agents) {
  StrategySettings s;
  s.budget.evaluations = evaluations;
  s.plateau = 4;
  s.agents = agents;
  return s;
}

TEST(CutegenAgents, PlansThenWritesThenImproves) {
  AgentWorld world{.judge = [](int n, const Asked&) { return timed(100.0 - 10 * n); }};
  Finish end = world.run("cutegen", settings(4, {.chains = 1}));
  EXPECT_EQ(end.reason, "budget: evaluations");
  EXPECT_EQ(end.best, "c4");
  EXPECT_THAT(world.roles(), ElementsAre("planner plan", "coder first", "coder improve",
                                         "coder improve", "coder improve"));
  EXPECT_EQ(world.asked[1].context["approach"], "rows");
  EXPECT_EQ(world.asked[2].context["parent"], "c1");
  EXPECT_EQ(world.asked[2].context["stage"], "structure");
}

TEST(CutegenAgents, ContinuesFromTheBestAndNeverFromARegression) {
  std::vector<double> times{100, 80, 300, 90, 79.9, 60};
  AgentWorld world{.judge = [&](int n, const Asked&) { return timed(times[size_t(n) - 1]); }};
  Finish end = world.run(
      "cutegen", settings(6, {.profiling = ProfilingMode::never, .chains = 1, .planner = false}));
  EXPECT_EQ(end.best, "c6");
  std::vector<std::string> parents;
  for (const Asked& a : world.asked)
    if (a.context.contains("parent")) parents.push_back(a.context["parent"].get<std::string>());
  EXPECT_THAT(parents, ElementsAre("c1", "c2", "c2", "c2", "c2"));
  EXPECT_THAT(world.decisions, ElementsAre("accepted c1", "accepted c2", "rejected c3",
                                           "rejected c4", "rejected c5", "accepted c6"));
  EXPECT_EQ(world.asked.back().context["stage"], "detail") << "no structure changed for a while";
}

TEST(CutegenAgents, RepairsWithADiagnosisAndGoesBackWhenThatFails) {
  // c1 is correct. Its change c2 is wrong, and three repairs do not help.
  AgentWorld world{
      .judge = [](int n, const Asked&) { return n >= 2 && n <= 5 ? wrong() : timed(100.0 - n); }};
  Finish end = world.run(
      "cutegen",
      settings(6, {.profiling = ProfilingMode::never, .chains = 1, .planner = false, .fixes = 3}));
  EXPECT_EQ(end.best, "c6");
  EXPECT_THAT(world.roles(),
              ElementsAre("coder first", "coder improve", "debugger repair", "judge repair",
                          "debugger repair", "debugger repair", "coder improve"));
  EXPECT_EQ(world.asked[2].context["parent"], "c2");
  EXPECT_EQ(world.asked[4].context["parent"], "c3");
  EXPECT_EQ(world.asked[4].context["advice"], "look at the tail");
  EXPECT_EQ(world.asked[4].context["repair"], 2);
  EXPECT_FALSE(world.asked[5].context.contains("advice"));
  EXPECT_EQ(world.asked.back().context["parent"], "c1");
}

TEST(CutegenAgents, SeveralLinesThenTheBestGoesOn) {
  // Line 2 is faster than line 1. Line 3 never becomes correct.
  AgentWorld world{.judge = [](int n, const Asked& by) {
    int line = by.context["line"].get<int>();
    if (line == 3) return wrong();
    return timed((line == 1 ? 200.0 : 100.0) - n);
  }};
  Finish end = world.run("cutegen", settings(40, {.chains = 3, .chain_evaluations = 4}));
  EXPECT_EQ(world.asked[1].context["approach"], "rows");
  std::vector<int> lines;
  for (const Asked& a : world.asked)
    if (a.context.contains("line") &&
        (lines.empty() || lines.back() != a.context["line"].get<int>()))
      lines.push_back(a.context["line"].get<int>());
  EXPECT_THAT(lines, ElementsAre(1, 2, 3, 2));
  EXPECT_EQ(world.makers[end.best].context["line"], 2);
}

TEST(CutegenAgents, ALineThatIsSlowerThanTheBestIsKeptInItsLineOnly) {
  AgentWorld world{.judge = [](int n, const Asked& by) {
    return timed(by.context["line"] == 1 ? 100.0 : 200.0 - 5 * n);
  }};
  world.run("cutegen", settings(8, {.chains = 2, .chain_evaluations = 3}));
  EXPECT_THAT(world.decisions, testing::Contains("accepted c1"));
  std::string reason;
  for (const Event& e : world.events)
    if (e.type == EventType::rejected && e.data["candidate"] == "c4")
      reason = e.data["reason"].get<std::string>();
  EXPECT_THAT(reason, StartsWith("best of line 2, but "));
}

TEST(CutegenAgents, StopsAtTheFloorAndOnAPlateau) {
  AgentWorld low{.judge = [](int, const Asked&) { return timed(9.9); }, .floor_ns = 10};
  EXPECT_EQ(low.run("cutegen", settings(40, {})).reason, "at the floor");
  EXPECT_EQ(low.evaluations, 1);
  AgentWorld flat{.judge = [](int, const Asked&) { return timed(50); }};
  EXPECT_EQ(
      flat.run("cutegen", settings(40, {.profiling = ProfilingMode::never, .chains = 1})).reason,
      "plateau");
  EXPECT_EQ(flat.evaluations, 5);
}

TEST(CutegenAgents, GivesUpWhenNothingBecomesCorrect) {
  AgentWorld world{.judge = [](int, const Asked&) { return wrong("does not compile"); }};
  StrategySettings s = settings(100, {.chains = 1});
  s.repairs = 2;
  Finish end = world.run("cutegen", s);
  EXPECT_THAT(end.reason, HasSubstr("nothing correct after 6 candidates: does not compile"));
  EXPECT_EQ(end.best, "");
}

TEST(CutegenAgents, UnusableAnswersCostAStepAndOnlyManyEndTheRun) {
  AgentWorld once{
      .judge = [](int n, const Asked&) { return timed(100.0 - 10 * n); },
      .outcome = [](const Asked&, int n) { return n == 2 || n == 4 ? "unusable" : ""; }};
  EXPECT_EQ(once.run("cutegen", settings(3, {.chains = 1, .planner = false})).best, "c3");
  AgentWorld always{.judge = [](int, const Asked&) { return timed(1); },
                    .outcome = [](const Asked&, int) { return "unusable"; }};
  EXPECT_THAT(always.run("cutegen", settings(9, {})).reason,
              StartsWith("the model's answers cannot be used: no block"));
  EXPECT_EQ(always.asked.size(), 3u);
  AgentWorld broke{.judge = [](int, const Asked&) { return timed(1); },
                   .outcome = [](const Asked&, int n) { return n == 3 ? "nothing" : ""; }};
  Finish end = broke.run("cutegen", settings(9, {.chains = 1}));
  EXPECT_EQ(end.reason, "no block");
  EXPECT_EQ(end.best, "c1");
}

TEST(CutegenAgents, ProfilesTheBestWhenProfilingOpens) {
  AgentWorld flat{.judge = [](int n, const Asked&) { return timed(n == 1 ? 100 : 100.5); }};
  StrategySettings s = settings(9, {.chains = 1, .planner = false});
  s.plateau = 5;
  flat.run("cutegen", s);
  std::vector<std::string> profiled;
  for (const Event& e : flat.events)
    if (e.type == EventType::evaluation_started && e.data["profile"] == true)
      profiled.push_back(e.data["candidate"].get<std::string>());
  EXPECT_THAT(profiled, testing::Contains("c1")) << "the best one again, for its profile";
  bool shown = false;
  for (const Asked& a : flat.asked) shown = shown || a.context.value("profile", false);
  EXPECT_TRUE(shown);
  AgentWorld never{.judge = [](int, const Asked&) { return timed(100); }};
  s.agents->profiling = ProfilingMode::never;
  never.run("cutegen", s);
  for (const Event& e : never.events) {
    if (e.type == EventType::evaluation_started) {
      EXPECT_FALSE(e.data["profile"].get<bool>());
    }
  }
}

// With ten evaluations and two lines, a question shows a profile before the fourth evaluation.
TEST(CutegenAgents, TenEvaluationsShowAProfileInTime) {
  for (int failing : {0, 1, 2}) {
    AgentWorld world{.judge = [&](int n, const Asked&) {
      return n <= failing % 2 ? wrong() : timed(failing == 2 ? 100.0 : 100.0 - 2 * n);
    }};
    world.run("cutegen", settings(10, {.chains = 2}));
    int before = 0;
    for (const Event& e : world.events) {
      if (e.type == EventType::asked && e.data["context"].value("profile", false)) break;
      before += e.type == EventType::evaluated;
    }
    EXPECT_LE(before, 3) << failing;
  }
}

const char* const kSixTies = "plateau: 6 correct programs in a row within 1% of the best time";
const char* const kOldTies = "3 ties within 1% near the reachable bound";

// A longer search would probably only use up evaluations, but ties prove no bound.
TEST(CutegenAgents, OnlyManyTiesEndTheRunNearTheReachableBound) {
  auto run = [](double reachable_ns, const std::function<double(int)>& ns, int end_rules = 2) {
    AgentWorld world{.judge = [&](int n, const Asked&) { return timed(ns(n)); },
                     .reachable_ns = reachable_ns};
    StrategySettings s = settings(20, {.profiling = ProfilingMode::never, .chains = 1});
    s.plateau = 6, s.end_rules = end_rules;
    return world.run("cutegen", s).reason;
  };
  const auto ties = [](int) { return 100.0; };
  EXPECT_EQ(run(94, ties), kSixTies);
  EXPECT_EQ(run(94, [](int n) { return n <= 5 ? 100 : 96; }), "within 3% of the reachable bound")
      << "four ties do not end the search";
  EXPECT_EQ(run(94, ties, 1), kOldTies) << "an old journal keeps its rule";
  EXPECT_EQ(run(50, ties), "plateau") << "far from the bound";
  EXPECT_EQ(run(94, [](int n) { return 100 + 2 * n % 5; }), "plateau") << "slower ones are no ties";
  AgentWorld same{.judge = [](int, const Asked&) { return timed(100); }};
  same.run("cutegen", settings(3, {.profiling = ProfilingMode::never, .chains = 1}));
  std::string why;
  for (const Event& e : same.events)
    if (e.type == EventType::rejected) why = e.data["reason"].get<std::string>();
  EXPECT_EQ(why, "a tie: the same time as the best");
}

// The published forms stop at their budget only, as in the papers.
TEST(Agents, ManyTiesNearTheReachableBoundEndEachStrategyThatImproves) {
  for (const char* name : {"cudaforge", "astra", "astra-single", "stark"})
    for (const bool published : {false, true}) {
      auto run = [&](double reachable_ns, int end_rules = 2) {
        AgentWorld world{.judge = [](int, const Asked&) { return timed(100); },
                         .reachable_ns = reachable_ns};
        StrategySettings s = settings(20, {.rounds = 12, .published = published});
        s.plateau = 6, s.end_rules = end_rules;
        return world.run(name, s).reason;
      };
      EXPECT_EQ(run(94) == kSixTies, !published) << name << ": " << run(94);
      EXPECT_EQ(run(94, 1) == kOldTies, !published) << name << ": " << run(94, 1);
      EXPECT_NE(run(50), kSixTies) << name;
    }
}

TEST(CutegenAgents, OneFailedStepDoesNotTurnToDetails) {
  AgentWorld world{
      .judge = [](int n, const Asked&) { return n == 2 || n == 3 ? wrong() : timed(100); }};
  world.run("cutegen", settings(20, {.chains = 1, .planner = false, .fixes = 1}));
  std::vector<std::string> stages;
  for (const Asked& a : world.asked)
    if (a.context.contains("stage")) stages.push_back(a.context["stage"].get<std::string>());
  ASSERT_GE(stages.size(), 2u);
  EXPECT_EQ(stages[0], "structure");
  EXPECT_EQ(stages[1], "structure");
}

TEST(CutegenAgents, ARecipeMayBegin) {
  AgentWorld world{.judge = [](int n, const Asked&) { return timed(100.0 - n); }};
  world.run("cutegen", settings(2, {.start = Start::recipe}));
  EXPECT_THAT(world.roles(), ElementsAre("recipe first", "coder improve"));
  AgentWorld none{
      .judge = [](int n, const Asked&) { return timed(100.0 - n); },
      .outcome = [](const Asked& a, int) { return a.role == Role::recipe ? "unusable" : ""; }};
  none.run("cutegen", settings(2, {.start = Start::recipe}));
  EXPECT_THAT(none.roles(), ElementsAre("recipe first", "coder first", "coder improve"));
}

TEST(Cudaforge, JudgeAndCoderTakeTurns) {
  std::vector<double> times{0, 100, 150, 80};
  AgentWorld world{
      .judge = [&](int n, const Asked&) { return n == 1 ? wrong() : timed(times[size_t(n) - 1]); }};
  Finish end = world.run("cudaforge", settings(40, {.rounds = 4}));
  EXPECT_EQ(end.reason, "all rounds are done");
  EXPECT_EQ(end.best, "c4");
  EXPECT_THAT(world.roles(),
              ElementsAre("coder first", "judge repair", "coder repair", "judge improve",
                          "coder improve", "judge improve", "coder improve"));
  EXPECT_EQ(world.asked[2].context["advice"], "look at the tail");
  EXPECT_EQ(world.asked[5].context["parent"], "c2") << "the slower c3 is dropped";
  EXPECT_EQ(world.asked[5].context["memory"], true);

  AgentWorld published{.judge = world.judge};
  published.run("cudaforge", settings(40, {.rounds = 4, .published = true}));
  EXPECT_EQ(published.asked[5].context["parent"], "c3") << "as published: the newest goes on";
  EXPECT_EQ(published.asked[5].context["memory"], false);
}

TEST(Astra, TesterThenPlannerAndCoderInTurns) {
  std::vector<double> times{0, 100, 150, 80};
  AgentWorld world{
      .judge = [&](int n, const Asked&) { return n == 1 ? wrong() : timed(times[size_t(n) - 1]); }};
  Finish end = world.run("astra", settings(40, {.astra_rounds = 3}));
  EXPECT_EQ(end.reason, "all rounds are done");
  EXPECT_EQ(end.best, "c4");
  EXPECT_THAT(world.roles(), ElementsAre("tester plan", "coder first", "planner repair",
                                         "coder repair", "profiler improve", "planner improve",
                                         "coder improve", "planner improve", "coder improve"));
  EXPECT_EQ(world.asked[3].context["advice"], "rows");
  EXPECT_EQ(world.asked[5].context["reading"], "bound by the loads");
  EXPECT_EQ(world.asked[5].context["profile"], true);
  EXPECT_EQ(world.asked[7].context["parent"], "c2") << "the slower c3 is dropped";
  EXPECT_EQ(world.asked[7].context["reading"], "bound by the loads") << "c2 is read once";
  EXPECT_EQ(world.asked[7].context["memory"], true);
  EXPECT_EQ(world.asked[2].context["tests"], Json({"one row: rows = 1; a single block"}));
  for (const Event& e : world.events) {
    if (e.type != EventType::evaluation_started) continue;
    EXPECT_EQ(e.data["tests"], write_json(proposed_tests()));
    EXPECT_EQ(e.data["profile"], true) << "the profiler sees every program";
  }
}

TEST(Astra, TheProfilerIsSwitchedOffAndSavesItsLastQuestion) {
  AgentWorld world{.judge = [](int n, const Asked&) { return timed(100.0 - 10 * n); }};
  world.source = true;
  world.run("astra", settings(3, {}));
  EXPECT_THAT(world.roles(),
              ElementsAre("tester plan", "source first", "profiler improve", "planner improve",
                          "coder improve", "planner improve", "coder improve"));
  EXPECT_FALSE(world.asked[5].context.contains("reading")) << "one evaluation is left";
  AgentWorld off{.judge = world.judge};
  off.source = true;
  off.run("astra", settings(3, {.profiler = false}));
  EXPECT_THAT(off.roles(), ElementsAre("tester plan", "source first", "planner improve",
                                       "coder improve", "planner improve", "coder improve"));
}

TEST(Astra, AnUnusableReadingCostsNoRound) {
  AgentWorld world{
      .judge = [](int n, const Asked&) { return timed(100.0 - n); },
      .outcome = [](const Asked& a, int) { return a.role == Role::profiler ? "unusable" : ""; }};
  Finish end = world.run("astra", settings(4, {}));
  EXPECT_EQ(end.best, "c4");
  EXPECT_EQ(world.evaluations, 4);
  for (const Asked& a : world.asked) EXPECT_FALSE(a.context.contains("reading"));
}

TEST(Astra, AsPublishedFiveRoundsGoOnFromTheNewestProgram) {
  AgentWorld world{.judge = [](int n, const Asked&) { return timed(n == 3 ? 50 : 100 + n); }};
  world.source = true;
  Finish end = world.run("astra", settings(40, {.published = true}));
  EXPECT_EQ(end.best, "c3");
  EXPECT_EQ(world.evaluations, 6) << "the source kernel and five rounds";
  std::vector<std::string> parents;
  for (const Asked& a : world.asked)
    if (a.role == Role::coder) parents.push_back(a.context["parent"].get<std::string>());
  EXPECT_THAT(parents, ElementsAre("c1", "c2", "c3", "c4", "c5"));
  EXPECT_EQ(world.asked.back().context["memory"], false);
  int read = 0;
  for (const Asked& a : world.asked) {
    read += a.role == Role::profiler;
    if (a.role != Role::planner) continue;
    EXPECT_EQ(a.context["reading"], "bound by the loads");
    EXPECT_EQ(a.context["profile"], false) << "only the profiler sees the profile";
  }
  EXPECT_EQ(read, 5);
  AgentWorld more = world;
  more.asked.clear(), more.events.clear(), more.evaluations = more.proposed = 0;
  more.run("astra", settings(40, {.astra_rounds = 2, .published = true}));
  EXPECT_EQ(more.evaluations, 3);
}

TEST(Astra, AProgramThatRepairsDoNotMendIsDropped) {
  AgentWorld world{.judge = [](int n, const Asked&) { return n == 1 ? timed(100) : wrong(); }};
  world.source = true;
  world.run("astra", settings(40, {.fixes = 2, .astra_rounds = 7}));
  std::vector<std::string> parents;
  for (const Asked& a : world.asked)
    if (a.role == Role::coder) parents.push_back(a.context["parent"].get<std::string>());
  EXPECT_THAT(parents, ElementsAre("c1", "c2", "c3", "c1", "c5", "c6", "c1"));
}

// Proposed tests only add: a source kernel that fails only on them is still the first program.
TEST(Astra, TestsThatTheSourceKernelFailsAreDropped) {
  int judged = 0;
  AgentWorld world{.judge = [&](int n, const Asked&) {
    return ++judged == 1 ? wrong_values() : timed(100.0 - n);
  }};
  world.source = true;
  Finish end = world.run("astra", settings(5, {.astra_rounds = 2}));
  EXPECT_THAT(world.decisions, ElementsAre("accepted c1", "accepted c2", "accepted c3"));
  EXPECT_EQ(end.best, "c3");
  std::vector<bool> with;
  std::string why;
  for (const Event& e : world.events) {
    if (e.type == EventType::evaluation_started) with.push_back(e.data.contains("tests"));
    if (e.type == EventType::accepted && why.empty()) why = e.data["reason"].get<std::string>();
  }
  EXPECT_THAT(with, ElementsAre(true, false, false, false)) << "one evaluation is lost";
  EXPECT_THAT(why, HasSubstr("the proposed tests are not used"));
  EXPECT_THAT(why, HasSubstr("wrong values"));
  AgentWorld never{.judge = [](int, const Asked&) { return wrong_values(); }};
  never.source = true;
  EXPECT_THAT(never.run("astra", settings(5, {})).reason, HasSubstr("does not agree"));
}

TEST(Astra, AnUnusableTesterCostsNoEvaluation) {
  AgentWorld world{
      .judge = [](int n, const Asked&) { return timed(100.0 - n); },
      .outcome = [](const Asked& a, int) { return a.role == Role::tester ? "unusable" : ""; }};
  EXPECT_EQ(world.run("astra", settings(3, {})).best, "c3");
  EXPECT_EQ(world.evaluations, 3);
  AgentWorld broke = world;
  broke.asked.clear(), broke.events.clear(), broke.proposed = 0;
  broke.outcome = [](const Asked&, int) { return "nothing"; };
  EXPECT_EQ(broke.run("astra", settings(3, {})).reason, "no block") << "the budget is spent";
}

TEST(Astra, OneAgentAsksOneQuestionARound) {
  AgentWorld world{.judge = [](int n, const Asked&) { return timed(100.0 - n); }};
  world.run("astra-single", settings(3, {}));
  EXPECT_THAT(world.roles(), ElementsAre("coder first", "coder improve", "coder improve"));
}

TEST(BestOfN, DrawsIndependentSamples) {
  AgentWorld world{.judge = [](int n, const Asked&) { return n == 2 ? wrong() : timed(100.0 - n); },
                   .outcome = [](const Asked&, int n) { return n == 4 ? "unusable" : ""; }};
  Finish end = world.run("best-of-n", settings(5, {}));
  EXPECT_EQ(end.reason, "all samples are drawn");
  EXPECT_EQ(end.best, "c4");
  EXPECT_EQ(world.asked.size(), 5u);
  for (const Asked& a : world.asked) EXPECT_EQ(a.context["memory"], false);
}

// For every k: a fresh strategy that gets the first k events takes the recorded next action.
TEST(Agents, EveryPrefixOfARunLeadsToTheSameNextAction) {
  for (const char* name : {"cutegen", "cudaforge", "stark", "astra", "astra-single", "best-of-n"}) {
    AgentWorld world{
        .judge = [](int n,
                    const Asked&) { return n % 3 == 2 ? wrong() : timed(100.0 - 4.0 * (n % 7)); },
        .outcome = [](const Asked&, int n) { return n == 6 ? "unusable" : ""; }};
    StrategySettings s = settings(18, {.chains = 2});
    world.run(name, s);
    for (size_t k = 2; k + 1 < world.events.size(); ++k) {
      auto strategy = std::move(*make_strategy(*strategy_from(name), s));
      for (size_t i = 0; i < k; ++i) {
        (void)strategy->next();
        strategy->apply(world.events[i]);
      }
      strategy->apply({.seq = 0, .type = EventType::resumed, .version = 1, .data = Json::object()});
      const Event& last = world.events[k - 1];
      bool unfinished = last.type == EventType::asked || last.type == EventType::evaluation_started;
      const Event& expected = unfinished ? last : world.events[k];
      auto actions = strategy->next();
      ASSERT_EQ(actions.size(), 1u) << name << " " << k;
      Json data = expected.data;
      data.erase("clock_ms");
      EXPECT_EQ(event_type(actions[0]), expected.type) << name << " " << k;
      EXPECT_EQ(event_data(actions[0]), data) << name << " " << k;
    }
  }
}

TEST(Agents, SettingsRoundTripAndAreChecked) {
  StrategySettings s =
      settings(7, {.dialect = Dialect::cuda, .profiling = ProfilingMode::delayed, .chains = 3});
  auto back = read_json<StrategySettings>(to_json(s));
  ASSERT_TRUE(back);
  EXPECT_EQ(to_json(*back), to_json(s));
  EXPECT_THAT(parse_profiling("sometimes", "--profiling").error().text(),
              HasSubstr("one of delayed, adaptive, from-start, never"));
  s.agents->profiling = ProfilingMode::never;
  s.agents->chains = 0;
  EXPECT_FALSE(make_strategy(StrategyKind::cutegen, s));
  s.agents = AgentSettings{.dialect = Dialect::cuda, .start = Start::recipe};
  EXPECT_THAT(make_strategy(StrategyKind::cutegen, s).error().text(), HasSubstr("--start scratch"));
  EXPECT_THAT(make_strategy(StrategyKind::cudaforge, {}).error().text(),
              HasSubstr("needs a model"));
}

// A draft that a tool evaluated while the question was open counts, and is not evaluated again.
TEST(Drafts, AreChargedAndKnownWhenTheyAreTheAnswer) {
  StrategySettings settings{.budget = {.evaluations = 3},
                            .agents = AgentSettings{.chains = 1, .planner = false}};
  for (const char* name : {"cutegen", "cudaforge", "best-of-n"}) {
    SCOPED_TRACE(name);
    AgentWorld world;
    auto s = std::move(*make_strategy(*strategy_from(name), settings));
    world.feed(*s, EventType::opened, Json::object());
    world.feed(*s, EventType::task, {{"floor_ns", 0}, {"task", {{"workload", "softmax"}}}});
    world.feed(*s, EventType::asked, event_data(s->next().at(0)));
    auto evaluated = [&](const char* id, const Verdict& verdict) {
      world.feed(*s, EventType::drafted, {{"candidate", {{"id", id}}}});
      world.feed(*s, EventType::evaluated,
                 {{"candidate", id}, {"verdict", to_json(verdict)}, {"elapsed_ms", 1}});
    };
    Verdict aborted;
    evaluated("c1", wrong());
    evaluated("c2", aborted);
    evaluated("c3", timed(200));
    evaluated("c4", timed(100));
    EXPECT_TRUE(s->next().empty()) << "the question is still open";
    world.feed(*s, EventType::answered, {{"outcome", "proposed"}, {"candidate", {{"id", "c4"}}}});
    auto todo = s->next();
    ASSERT_EQ(todo.size(), 1u);
    ASSERT_TRUE(std::holds_alternative<Accept>(todo[0])) << describe(todo[0]);
    EXPECT_EQ(std::get<Accept>(todo[0]).candidate, "c4");
    world.feed(*s, EventType::accepted, event_data(todo[0]));
    todo = s->next();
    ASSERT_TRUE(std::holds_alternative<Finish>(todo.at(0))) << describe(todo[0]);
    EXPECT_EQ(std::get<Finish>(todo[0]).reason, "budget: evaluations");
  }
}

// The evaluator failed for the tool, so the strategy evaluates the candidate itself.
TEST(Drafts, WithoutAVerdictAreEvaluated) {
  AgentWorld world;
  auto s = std::move(*make_strategy(StrategyKind::cutegen,
                                    {.agents = AgentSettings{.chains = 1, .planner = false}}));
  world.feed(*s, EventType::opened, Json::object());
  world.feed(*s, EventType::task, {{"floor_ns", 0}, {"task", {{"workload", "softmax"}}}});
  world.feed(*s, EventType::asked, event_data(s->next().at(0)));
  world.feed(*s, EventType::drafted, {{"candidate", {{"id", "c1"}}}});
  world.feed(*s, EventType::evaluated,
             {{"candidate", "c1"}, {"verdict", to_json(Verdict{})}, {"elapsed_ms", 1}});
  world.feed(*s, EventType::answered, {{"outcome", "proposed"}, {"candidate", {{"id", "c1"}}}});
  auto todo = s->next();
  ASSERT_TRUE(std::holds_alternative<Evaluate>(todo.at(0)));
}

// Every strategy continues from the source kernel, which is its incumbent.
TEST(Source, EveryStrategyStartsFromTheSourceKernel) {
  for (const char* name : {"cutegen", "cudaforge", "stark", "astra-single", "best-of-n"}) {
    SCOPED_TRACE(name);
    AgentSettings agents{.chains = 1, .rounds = 3};
    AgentWorld world{.judge = [](int number, const Asked&) { return timed(100.0 / number); }};
    world.source = true;
    Finish end = world.run(name, settings(4, agents));
    EXPECT_EQ(world.roles().at(0), "source first");
    EXPECT_EQ(world.decisions.at(0), "accepted c1");
    // The first question after the kernel's verdict is about the kernel.
    const Json& next = world.asked.at(1).context;
    EXPECT_EQ(next.value("parent", ""), "c1");
    EXPECT_EQ(next.value("purpose", ""), "improve");
    EXPECT_EQ(world.decisions.at(1), "accepted c2");
    EXPECT_EQ(end.best, "c4");
  }
}

TEST(Source, AKernelThatIsNotCorrectEndsTheRun) {
  AgentWorld world{.judge = [](int, const Asked&) { return wrong("7 of 64 values are wrong"); }};
  world.source = true;
  Finish end = world.run("cutegen", settings(8, {}));
  EXPECT_EQ(end.reason,
            "the source kernel does not agree with its reference: 7 of 64 values are wrong");
  EXPECT_EQ(end.best, "");
  EXPECT_THAT(world.decisions, ElementsAre("rejected c1"));
  EXPECT_EQ(world.asked.size(), 1U);
}

TEST(Source, AKernelThatDoesNotCompileEndsTheRunWithItsLine) {
  AgentWorld world{.judge = [](int, const Asked&) {
    Verdict v = wrong("norm.cu:7:3: error: expected a \";\"");
    v.rungs = {{.rung = Rung::compile,
                .result = RungResult::failed,
                .elapsed = Nanoseconds(0),
                .detail = ""}};
    return v;
  }};
  world.source = true;
  EXPECT_EQ(world.run("astra", settings(8, {})).reason,
            "the source kernel does not compile or load: norm.cu:7:3: error: expected a \";\"");
  EXPECT_EQ(world.evaluations, 1);
}

TEST(Source, AnAbortedEvaluationIsTriedAgain) {
  int tries = 0;
  AgentWorld world{.judge = [&](int number, const Asked&) {
    Verdict aborted;
    aborted.status = Status::aborted;
    return ++tries < 3 ? aborted : timed(100.0 / number);
  }};
  world.source = true;
  EXPECT_EQ(world.run("cudaforge", settings(2, {})).best, "c2");
  tries = -100;
  AgentWorld never = world;
  never.asked.clear(), never.events.clear(), never.decisions.clear(), never.proposed = 0;
  EXPECT_THAT(never.run("cudaforge", settings(2, {})).reason,
              HasSubstr("the source kernel does not agree"));
}

}  // namespace
}  // namespace cutegen::search
