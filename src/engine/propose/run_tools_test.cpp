// SPDX-License-Identifier: Apache-2.0
// Runs whose model calls tools: drafts, budgets, invalid calls, a crash after every event, replay.
#include "engine/propose/run_tools.h"

#include <gmock/gmock.h>

#include "engine/run/replay_run.h"
#include "engine/testing/agent_world.h"

namespace cutegen::engine {
namespace {

using agent_test::AgentRun;
using agent_test::call;
using agent_test::calls;
using agent_test::Crash;
using agent_test::first_program;
using agent_test::next_program;
using agent_test::Said;
using agent_test::whole_files;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;
using testing::StartsWith;

class ToolRun : public AgentRun {
 protected:
  ToolRun() {
    script_.tools = true;
    world_.judge = [](int n, int) { return toy::timed(100.0 - n); };
    world_.compile = [](int n) {
      return n == 1 ? toy::untimed(Status::failed, "expected a ';'")
                    : toy::untimed(Status::correct, "");
    };
  }
  OptimizeSettings wanted(int64_t evaluations) const {
    OptimizeSettings s = settings(evaluations);
    s.model_settings.tools = ToolsMode::automatic;
    return s;
  }
  // The result of the last tool call, as the model's n-th request shows it.
  const llm::ToolResult& told(size_t question) const {
    return script_.asked.at(question).messages.back().results.at(0);
  }
  // The model reads a page, compiles a broken draft, repairs and evaluates it, and answers with it;
  // then it improves it.
  static std::deque<Said> mending() {
    return {calls({call("read_docs", {{"name", "vec"}})}),
            calls({call("compile", whole_files(1))}),
            calls({call("compile", {{"draft", "d1"}, {"edits", next_program(1, 2)}})}),
            calls({call("evaluate", {{"draft", "d2"}})}),
            "SUMMARY: the mended one\nWHY: it compiles\nDRAFT: d2\n",
            calls({call("evaluate", {{"edits", next_program(2, 9)}}), call("diff_best")}),
            next_program(2, 3),
            next_program(9, 10)};
  }
  // A run's programs with times and decisions. Crashes must not change them.
  static std::vector<std::string> steps_of(const RunView& view) {
    std::vector<std::string> out;
    for (const RunStep& s : view.steps)
      out.push_back(s.candidate.id + " " + s.candidate.edit.summary + " " +
                    std::to_string(s.time_ns().value_or(0)) + " " + to_string(s.decision));
    return out;
  }
};

TEST_F(ToolRun, ADraftIsMendedEvaluatedAndBecomesTheAnswer) {
  script_.answers = mending();
  auto s = store();
  auto outcome = run(*s, wanted(4));
  ASSERT_TRUE(outcome) << outcome.error().text();
  auto view = view_run(*s->read(outcome->run_id));
  EXPECT_EQ(view->settings.model_settings.tools, ToolsMode::on);
  EXPECT_EQ(view->tool_calls, 6);
  EXPECT_EQ(view->evaluations, 4);
  ASSERT_THAT(view->steps, SizeIs(4));
  EXPECT_EQ(view->steps[0].candidate.edit.summary, "the mended one");
  EXPECT_EQ(view->steps[0].decision, Decision::accepted);
  EXPECT_EQ(world_.evaluations[2], 1) << "the answer is the draft: nothing is evaluated again";
  EXPECT_EQ(world_.compiled, 2);
  EXPECT_THAT(told(1).text, AllOf(HasSubstr("Compiled for"), HasSubstr("7 more calls")));
  EXPECT_THAT(told(2).text, AllOf(HasSubstr("d1 does not compile"), HasSubstr("expected a ';'")));
  EXPECT_FALSE(told(2).is_error);
  EXPECT_THAT(told(3).text, HasSubstr("d2 compiles and loads"));
  EXPECT_THAT(told(4).text, AllOf(HasSubstr("kept as c1"), HasSubstr("98 ns")));
}

TEST_F(ToolRun, ADraftThatProvedBetterThanTheAnswerIsKept) {
  script_.answers = mending();
  auto s = store();
  auto outcome = run(*s, wanted(4));
  ASSERT_TRUE(outcome);
  auto view = view_run(*s->read(outcome->run_id));
  // c2: the draft (program 9); c3: the answer (program 3), also evaluated; c4: the next one.
  EXPECT_EQ(view->steps[1].decision, Decision::accepted);
  EXPECT_THAT(view->steps[1].candidate.edit.rationale, HasSubstr("no better"));
  EXPECT_EQ(view->steps[2].candidate.edit.summary, "from 2 to 3");
  EXPECT_EQ(view->steps[2].decision, Decision::open);
  EXPECT_EQ(outcome->best->id, "c4");
  EXPECT_EQ(outcome->best->parent, "c2");
  EXPECT_THAT(script_.asked[6].messages.back().results.at(1).text,
              AllOf(HasSubstr("-// 2"), HasSubstr("+// 9")));
  EXPECT_THAT(script_.asked.back().messages[3].text,
              AllOf(HasSubstr("c3 (from c1): from 2 to 3"), HasSubstr("91 ns, kept")));
}

// Crashes after each event in turn and resumes: the result is the same, and nothing happens twice.
TEST_F(ToolRun, ACrashAfterAnyEventLosesAndRepeatsNothing) {
  script_.answers = mending();
  auto s = store();
  auto calm = run(*s, wanted(3));
  ASSERT_TRUE(calm);
  auto events = s->read(calm->run_id);
  auto before = view_run(*events);
  struct Dying final : RunObserver {
    explicit Dying(size_t after) : left(after) {}
    void on_event(const Event&) override {
      if (left-- == 1) throw Crash{};
    }
    void on_progress(const std::string&) override {}
    size_t left;
  };
  for (size_t after = 1; after < events->size(); ++after) {
    SCOPED_TRACE("after event " + std::to_string(after) + ", " +
                 to_string((*events)[after - 1].type));
    world_.evaluations.clear();
    world_.compiled = 0;
    script_.answers = mending();
    Dying dying(after);
    EXPECT_THROW((void)optimize_with(parts(), {}, *s, wanted(3), dying), Crash);
    auto resumed = resume_with(parts(), {}, *s, "last", recorder_);
    ASSERT_TRUE(resumed) << resumed.error().text();
    auto view = view_run(*s->read("last"));
    EXPECT_EQ(steps_of(*view), steps_of(*before));
    EXPECT_EQ(view->evaluations, before->evaluations);
    EXPECT_EQ(view->tool_calls, before->tool_calls);
    EXPECT_NEAR(view->models.usd, before->models.usd, 1e-9);
    EXPECT_EQ(view->models.calls, before->models.calls);
    for (int n : {2, 3, 9}) EXPECT_EQ(world_.evaluations[n], 1) << n;
    if (after % 5) continue;  // each crash costs a whole run
    auto replay = replay_with(parts(), {}, *s, "last", recorder_);
    EXPECT_TRUE(replay) << replay.error().text();
  }
}

TEST_F(ToolRun, ACrashWhileADraftIsEvaluatedEvaluatesItOnceMore) {
  script_.answers = mending();
  bool died = false;
  world_.during_evaluation = [&](int n) {
    if (n == 9 && !std::exchange(died, true)) throw Crash{};
  };
  auto s = store();
  EXPECT_THROW((void)run(*s, wanted(4)), Crash);
  auto outcome = resume_with(parts(), {}, *s, "last", recorder_);
  ASSERT_TRUE(outcome) << outcome.error().text();
  EXPECT_EQ(outcome->best->id, "c4");
  EXPECT_EQ(view_run(*s->read("last"))->evaluations, 4);
}

TEST_F(ToolRun, ARunThatIsStoppedWhileADraftIsEvaluatedGoesOn) {
  script_.answers = mending();
  std::stop_source stop;
  world_.during_evaluation = [&](int n) {
    if (n == 9) stop.request_stop();
  };
  auto s = store();
  auto stopped = optimize_with(parts(), Context(stop.get_token()), *s, wanted(4), recorder_);
  ASSERT_TRUE(stopped) << stopped.error().text();
  EXPECT_TRUE(stopped->interrupted);
  EXPECT_EQ(stopped->evaluations, 1);
  world_.during_evaluation = [](int) {};
  auto outcome = resume_with(parts(), {}, *s, "last", recorder_);
  ASSERT_TRUE(outcome) << outcome.error().text();
  EXPECT_EQ(outcome->best->id, "c4");
  EXPECT_EQ(outcome->evaluations, 4);
  EXPECT_TRUE(replay_with(parts(), {}, *s, "last", recorder_));
}

TEST_F(ToolRun, MinutesEndATurnToo) {
  script_.answers = {calls({call("evaluate", whole_files(2))}), first_program(5)};
  world_.during_evaluation = [&](int) { world_.clock_ms += 120'000; };
  OptimizeSettings wants = wanted(9);
  wants.search.budget.minutes = 1;
  auto s = store();
  auto outcome = run(*s, wants);
  ASSERT_TRUE(outcome) << outcome.error().text();
  EXPECT_EQ(outcome->best->id, "c1") << "the draft that was evaluated in time";
  EXPECT_THAT(outcome->reason, StartsWith("budget: minutes"));
  EXPECT_EQ(script_.asked.size(), 1u);
  EXPECT_TRUE(replay_with(parts(), {}, *s, "last", recorder_));
}

TEST_F(ToolRun, ReplayAsksTheSameQuestionsAndChecksEveryAnswer) {
  script_.answers = mending();
  auto s = store();
  auto outcome = run(*s, wanted(4));
  ASSERT_TRUE(outcome);
  size_t asked = script_.asked.size();
  world_.evaluations.clear();
  auto replay = replay_with(parts(), {}, *s, "last", recorder_);
  ASSERT_TRUE(replay) << replay.error().text();
  EXPECT_EQ(replay->best->id, "c4");
  EXPECT_EQ(script_.asked.size(), asked);
  EXPECT_TRUE(world_.evaluations.empty());
  auto again = re_evaluate_with(parts(), {}, *s, "last", {}, recorder_);
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_FALSE(again->divergence) << to_text(*again->divergence);
  EXPECT_EQ(again->evaluations, 4) << "drafts that a tool evaluated are judged again, too";
}

TEST_F(ToolRun, OddCallsGetErrorsAsResults) {
  llm::ToolCall broken{
      .id = "id-b", .name = "compile", .arguments = Json::object(), .malformed = "{\"kernel\": "};
  script_.answers = {calls({call("rm", {{"path", "/"}}), broken, call("compile", {{"kernel", 5}}),
                            call("compile", Json::object()), call("evaluate", {{"draft", "d7"}}),
                            call("read_docs", {{"nmae", "vec"}})}),
                     first_program(2)};
  auto s = store();
  ASSERT_TRUE(run(*s, wanted(1)));
  const auto& results = script_.asked[1].messages.back().results;
  ASSERT_THAT(results, SizeIs(6));
  const char* says[] = {"no tool 'rm'", "not a JSON object", "'kernel' is not a string",
                        "no program",   "no draft 'd7'",     "'nmae' is not an argument"};
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_TRUE(results[i].is_error);
    EXPECT_THAT(results[i].text, HasSubstr(says[i]));
  }
  EXPECT_EQ(results[1].call_id, "id-b");
}

TEST_F(ToolRun, CallsHaveAnEnd) {
  OptimizeSettings s = wanted(1);
  s.model_settings.tool_calls = 2;
  script_.answers = {calls({call("read_docs"), call("read_docs"), call("read_docs")}),
                     calls({call("read_docs")}, "thinking"), first_program(2)};
  auto runs = store();
  ASSERT_TRUE(run(*runs, s));
  EXPECT_THAT(script_.asked[1].messages.back().results.at(2).text, HasSubstr("no calls are left"));
  EXPECT_FALSE(script_.asked[1].may_call);
  // The model calls tools although no calls are left: they are not run, and its text is the answer.
  EXPECT_THAT(script_.asked[2].messages.back().results.at(0).text, HasSubstr("not done"));
  EXPECT_THAT(script_.asked[2].messages.back().text, HasSubstr("no block"));
  EXPECT_EQ(view_run(*runs->read("last"))->tool_calls, 2);
}

TEST_F(ToolRun, TheRunHasALimitOfCallsToo) {
  OptimizeSettings s = wanted(2);
  s.model_settings.run_tool_calls = 1;
  script_.answers = {calls({call("read_docs")}), first_program(2), next_program(2, 3)};
  auto runs = store();
  ASSERT_TRUE(run(*runs, s));
  EXPECT_FALSE(script_.asked[1].may_call);
  EXPECT_FALSE(script_.asked[2].may_call);
}

TEST_F(ToolRun, TheBudgetOfEvaluationsHoldsForDrafts) {
  script_.answers = {calls({call("evaluate", whole_files(2)), call("evaluate", whole_files(3)),
                            call("evaluate", whole_files(2))}),
                     first_program(5)};
  auto s = store();
  auto outcome = run(*s, wanted(1));
  ASSERT_TRUE(outcome) << outcome.error().text();
  const auto& results = script_.asked[1].messages.back().results;
  EXPECT_THAT(results[1].text, HasSubstr("budget of evaluations is used up"));
  EXPECT_THAT(results[2].text, HasSubstr("kept as c1")) << "what is known costs nothing";
  EXPECT_EQ(outcome->evaluations, 1);
  EXPECT_EQ(outcome->best->id, "c1") << "the answer could not be evaluated any more";
  EXPECT_EQ(outcome->reason, "budget: evaluations");
}

TEST_F(ToolRun, AQuestionHasThreeEvaluations) {
  std::vector<llm::ToolCall> all;
  for (int n = 2; n < 6; ++n) all.push_back(call("evaluate", whole_files(n)));
  script_.answers = {calls(all), "DRAFT: d3\n"};
  auto s = store();
  auto outcome = run(*s, wanted(3));
  ASSERT_TRUE(outcome) << outcome.error().text();
  EXPECT_THAT(script_.asked[1].messages.back().results.at(3).text,
              HasSubstr("had its 3 evaluations"));
  EXPECT_EQ(outcome->best_verdict->timing->time_ns, 96);
}

TEST_F(ToolRun, DollarsEndATurnAndItsBestDraftStays) {
  script_.answers = {calls({call("evaluate", whole_files(2))}), first_program(5)};
  OptimizeSettings wants = wanted(9);
  wants.model_settings.usd = 0.015;
  auto s = store();
  auto outcome = run(*s, wants);
  ASSERT_TRUE(outcome) << outcome.error().text();
  EXPECT_EQ(outcome->best->id, "c1");
  EXPECT_THAT(outcome->reason, StartsWith("budget: dollars"));
  EXPECT_EQ(script_.asked.size(), 1u);
  EXPECT_TRUE(replay_with(parts(), {}, *s, "last", recorder_));
}

TEST_F(ToolRun, AnUnusableAnswerDoesNotLoseACorrectDraft) {
  script_.answers = {calls({call("evaluate", whole_files(2))}), "no", "no", "no"};
  auto s = store();
  auto outcome = run(*s, wanted(1));
  ASSERT_TRUE(outcome) << outcome.error().text();
  EXPECT_EQ(outcome->best->id, "c1");
}

TEST_F(ToolRun, AWrongDraftIsHistoryForTheNextQuestion) {
  world_.judge = [](int n, int) {
    return n == 2 ? toy::untimed(Status::failed, "out: wrong") : toy::timed(100.0 - n);
  };
  script_.answers = {calls({call("evaluate", whole_files(2))}), first_program(3),
                     next_program(3, 2), next_program(3, 4)};
  auto s = store();
  auto outcome = run(*s, wanted(3));
  ASSERT_TRUE(outcome) << outcome.error().text();
  EXPECT_EQ(outcome->best->id, "c3");
  EXPECT_THAT(script_.asked[2].messages[3].text, HasSubstr("- c1: draft d1 of the coder"));
  EXPECT_THAT(script_.asked[3].messages.back().text, HasSubstr("the same as c1"));
}

TEST_F(ToolRun, AnEvaluatorThatFailsSaysNothingAboutTheDraft) {
  world_.judge = [](int n, int attempt) {
    if (n == 2 && attempt < 3) return toy::untimed(Status::aborted, "out of memory");
    return toy::timed(100.0 - n);
  };
  script_.answers = {calls({call("evaluate", whole_files(2))}), "DRAFT: d1\n"};
  auto s = store();
  auto outcome = run(*s, wanted(1));
  ASSERT_TRUE(outcome) << outcome.error().text();
  EXPECT_TRUE(told(1).is_error);
  EXPECT_THAT(told(1).text, HasSubstr("out of memory"));
  EXPECT_EQ(world_.evaluations[2], 4) << "three attempts for the tool, then the strategy's";
  EXPECT_EQ(outcome->best->id, "c1");
}

TEST_F(ToolRun, PlannersReadAndDoNotEvaluate) {
  OptimizeSettings s = wanted(1);
  s.search.agents->planner = true;
  script_.answers = {calls({call("evaluate", whole_files(2)), call("profile")}),
                     "APPROACH 1: rows\nA warp for each row.", first_program(2)};
  auto runs = store();
  ASSERT_TRUE(run(*runs, s));
  const auto& results = script_.asked[1].messages.back().results;
  EXPECT_THAT(results[0].text, HasSubstr("does not offer 'evaluate'"));
  EXPECT_THAT(results[1].text, HasSubstr("does not offer 'profile'"));
  EXPECT_THAT(script_.asked[0].tools, SizeIs(1)) << "a planner reads pages only";
  EXPECT_EQ(script_.asked[0].tools[0].name, "read_docs");
  EXPECT_EQ(world_.evaluations[2], 1);
}

TEST_F(ToolRun, AutoLeavesMeasuresAndModelsWithoutToolsAlone) {
  OptimizeSettings s = wanted(1);
  script_.answers = {first_program(2)};
  s.strategy = search::StrategyKind::best_of_n;
  auto runs = store();
  ASSERT_TRUE(run(*runs, s));
  EXPECT_TRUE(script_.asked[0].tools.empty());
  script_.tools = false;
  script_.answers = {first_program(2)};
  s.strategy = search::StrategyKind::cutegen;
  ASSERT_TRUE(run(*runs, s));
  EXPECT_TRUE(script_.asked[1].tools.empty());
  s.model_settings.tools = ToolsMode::on;
  script_.answers = {first_program(2)};
  ASSERT_TRUE(run(*runs, s));
  EXPECT_THAT(script_.asked[2].tools, SizeIs(3)) << "nothing to compare or to profile yet";
}

// cudaforge counts evaluations as rounds, so a tool may compile but not evaluate.
TEST_F(ToolRun, CudaforgeMayCompile) {
  OptimizeSettings s = wanted(1);
  s.strategy = search::StrategyKind::cudaforge;
  script_.tools = true;
  s.model_settings.tools = ToolsMode::automatic;
  script_.answers = {calls({call("evaluate", whole_files(2)), call("compile", whole_files(2))}),
                     "DRAFT: d1\n"};
  auto runs = store();
  auto outcome = run(*runs, s);
  ASSERT_TRUE(outcome) << outcome.error().text();
  const auto& results = script_.asked[1].messages.back().results;
  EXPECT_THAT(results[0].text, HasSubstr("does not offer 'evaluate'"));
  EXPECT_THAT(results[1].text, HasSubstr("compiles and loads"));
  EXPECT_EQ(outcome->best->id, "c1");
  s.search.agents->published = true;
  script_.answers = {first_program(2)};
  ASSERT_TRUE(run(*runs, s));
  EXPECT_TRUE(script_.asked.back().tools.empty()) << "as published";
}

// Questions of a strategy without memory show no earlier attempts.
TEST_F(ToolRun, IndependentSamplesStayIndependent) {
  OptimizeSettings s = wanted(2);
  s.strategy = search::StrategyKind::best_of_n;
  s.model_settings.tools = ToolsMode::on;
  script_.answers = {first_program(2),
                     calls({call("evaluate", whole_files(3)), call("diff_best"), call("profile")}),
                     "DRAFT: d1\n"};
  auto runs = store();
  auto outcome = run(*runs, s);
  ASSERT_TRUE(outcome) << outcome.error().text();
  for (const llm::ToolResult& result : script_.asked[2].messages.back().results)
    EXPECT_THAT(result.text, AllOf(Not(HasSubstr("c1")), Not(HasSubstr("// 2"))));
}

}  // namespace
}  // namespace cutegen::engine
