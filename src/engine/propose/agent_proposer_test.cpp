// SPDX-License-Identifier: Apache-2.0
// Runs that ask a scripted model: edits, repeated questions, budgets, crashes, replay.
#include "engine/propose/agent_proposer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "engine/run/replay_run.h"
#include "engine/testing/agent_world.h"

namespace cutegen::engine {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

using agent_test::AgentRun;
using agent_test::Crash;
using agent_test::first_program;
using agent_test::next_program;
using agent_test::source;

TEST_F(AgentRun, WritesImprovesAndRepairs) {
  script_.answers = {first_program(1), next_program(1, 2), next_program(2, 3)};
  auto s = store();
  auto outcome = run(*s, settings(3));
  ASSERT_TRUE(outcome) << outcome.error().text();
  EXPECT_EQ(outcome->best->id, "c3");
  EXPECT_EQ(outcome->best->parent, "c2");
  EXPECT_EQ(outcome->best->edit.summary, "from 2 to 3");
  EXPECT_THAT(outcome->best->edit.origin, AllOf(StartsWith("relay:/"), HasSubstr("script")));
  EXPECT_EQ(script_.asked[0].label, "coder ask 1 try 1");
  // The question has task, program, verdict, history and request.
  EXPECT_THAT(script_.asked[1].messages[1].text, HasSubstr("// 1\n"));
  EXPECT_THAT(script_.asked[1].files.at("kernel.cu"), HasSubstr("// 1\n"));
  EXPECT_THAT(script_.asked[1].messages[2].text, HasSubstr("99 ns"));
  EXPECT_THAT(script_.asked[2].messages[2].text, HasSubstr("out: wrong"));
  EXPECT_THAT(script_.asked[2].messages[3].text, HasSubstr("- c2 (from c1)"));
  EXPECT_THAT(script_.asked[2].messages[4].text, HasSubstr("repair it"));
  auto view = view_run(*s->read(outcome->run_id));
  EXPECT_EQ(view->models.calls, 3);
  EXPECT_NEAR(view->models.usd, 0.03, 1e-9);
}

TEST_F(AgentRun, ALongProgramStandsWholeOnceAndItsChangesAfterIt) {
  std::string lines;
  for (int i = 0; i < 150; ++i)
    lines += "__device__ float f" + std::to_string(i) + "() { return 0; }\n";
  std::string first = first_program(1);
  first.insert(first.find("extern"), lines);
  std::string anew = first_program(5);
  anew.insert(anew.find("extern"), replace_all(lines, "return 0", "return 1"));
  script_.answers = {first, next_program(1, 3), next_program(3, 4), anew, next_program(5, 20)};
  auto s = store();
  auto outcome = run(*s, settings(5));
  ASSERT_TRUE(outcome) << outcome.error().text();
  EXPECT_EQ(outcome->best->id, "c5");
  ASSERT_EQ(script_.asked.size(), 5U);
  EXPECT_THAT(script_.asked[1].messages[2].text, HasSubstr("shown in full above"));
  for (size_t i : {2U, 3U}) {
    EXPECT_EQ(script_.asked[i].messages[1].text, script_.asked[1].messages[1].text);
    auto now = "c" + std::to_string(i) + ", 9";
    EXPECT_THAT(script_.asked[i].messages[2].text,
                AllOf(HasSubstr(now), HasSubstr("it is c1 above"), HasSubstr("SEARCH\n// 1\n")));
    EXPECT_THAT(script_.asked[i].files.at("kernel.cu"), StartsWith("// " + std::to_string(i + 1)));
  }
  EXPECT_THAT(script_.asked[4].messages[1].text,
              AllOf(HasSubstr("# Program c4"), HasSubstr("// 5")));
  EXPECT_THAT(script_.asked[4].messages[3].text, HasSubstr("shown in full above"));
}

TEST_F(AgentRun, AReplyThatDoesNotApplyIsAskedForAgainInTheSameDialogue) {
  script_.answers = {first_program(1), "I would use shared memory.", next_program(7, 8),
                     next_program(1, 3)};
  auto s = store();
  auto outcome = run(*s, settings(2));
  ASSERT_TRUE(outcome) << outcome.error().text();
  EXPECT_EQ(outcome->best->id, "c2");
  ASSERT_EQ(script_.asked.size(), 4u);
  EXPECT_EQ(script_.asked[3].label, "coder ask 2 try 3");
  ASSERT_EQ(script_.asked[3].messages.size(), 9u);
  EXPECT_EQ(script_.asked[3].messages[5].text, "I would use shared memory.");
  EXPECT_THAT(script_.asked[3].messages[6].text, HasSubstr("no block"));
  EXPECT_THAT(script_.asked[3].messages[8].text,
              AllOf(HasSubstr("// 7"), HasSubstr("whole program")));
  auto view = view_run(*s->read(outcome->run_id));
  EXPECT_EQ(view->reasks, 2);
}

TEST_F(AgentRun, AnUnusableAnswerCostsAStepNotTheRun) {
  script_.answers = {first_program(1), "no", "no", "no", next_program(1, 3)};
  auto s = store();
  auto outcome = run(*s, settings(2));
  ASSERT_TRUE(outcome) << outcome.error().text();
  EXPECT_EQ(outcome->best->id, "c2");
}

TEST_F(AgentRun, TheSameProgramAgainIsNotEvaluated) {
  script_.answers = {first_program(1), next_program(1, 2),
                     "```file kernel.cu\n" + source(1) + "```\n", next_program(2, 3)};
  auto s = store();
  auto outcome = run(*s, settings(3));
  ASSERT_TRUE(outcome) << outcome.error().text();
  EXPECT_EQ(world_.evaluations[1], 1);
  EXPECT_THAT(script_.asked[3].messages.back().text, HasSubstr("the same as c1"));
}

TEST_F(AgentRun, FaultsOfThePlanAreFoundBeforeEvaluating) {
  std::string bad = first_program(1);
  bad.replace(bad.find("{\"i32\": \"n\"}"), 12, "{\"tensor\": \"y\"}");
  script_.answers = {bad, first_program(1)};
  auto s = store();
  ASSERT_TRUE(run(*s, settings(1)));
  EXPECT_THAT(script_.asked[1].messages.back().text, HasSubstr("'y'"));
}

TEST_F(AgentRun, ABudgetOfDollarsEndsWithThePartialResult) {
  script_.answers = {first_program(1), next_program(1, 3), next_program(3, 4)};
  auto s = store();
  OptimizeSettings wanted = settings(9);
  wanted.model_settings.usd = 0.025;
  auto outcome = run(*s, wanted);
  ASSERT_TRUE(outcome) << outcome.error().text();
  EXPECT_THAT(outcome->reason, StartsWith("budget: dollars"));
  EXPECT_EQ(outcome->best->id, "c2");
  EXPECT_EQ(script_.asked.size(), 2u);
}

TEST_F(AgentRun, ReplayGivesTheSameQuestionsAndActions) {
  script_.answers = {first_program(1), "no", next_program(1, 2), next_program(2, 3)};
  auto s = store();
  ASSERT_TRUE(run(*s, settings(3)));
  size_t asked = script_.asked.size();
  auto replay = replay_with(parts(), {}, *s, "last", recorder_);
  ASSERT_TRUE(replay) << replay.error().text();
  EXPECT_EQ(replay->best->id, "c3");
  EXPECT_EQ(script_.asked.size(), asked) << "nobody is asked";
}

TEST_F(AgentRun, AnotherQuestionIsTheDivergenceOfAReEvaluation) {
  script_.answers = {first_program(1), next_program(1, 3)};
  auto s = store();
  ASSERT_TRUE(run(*s, settings(2)));
  auto same = re_evaluate_with(parts(), {}, *s, "last", {}, recorder_);
  ASSERT_TRUE(same) << same.error().text();
  EXPECT_FALSE(same->divergence);
  EXPECT_EQ(same->evaluations, 2);
  auto events = *s->read("last");
  auto journal = s->create({.task_name = "altered", .device = "sim:h200"});
  for (Event& event : events) {
    if (event.type == EventType::call_started && event.data["call"] == 2)
      event.data["request"]["messages"][1]["text"] = "Write a poem.";
    ASSERT_TRUE((*journal)->append(event.type, event.data));
  }
  auto differs = re_evaluate_with(parts(), {}, *s, (*journal)->id(), {}, recorder_);
  ASSERT_TRUE(differs) << differs.error().text();
  ASSERT_TRUE(differs->divergence);
  EXPECT_THAT(differs->divergence->field, StartsWith("question/messages/1/text"));
  EXPECT_EQ(differs->divergence->step, "question 2");
  EXPECT_THAT(differs->divergence->recorded, HasSubstr("Write a poem."));
}

// After a crash during a model's answer, the run reuses the answers that were paid for.
TEST_F(AgentRun, ResumeAsksOnlyForWhatWasNotAnswered) {
  script_.answers = {first_program(1), "no", "crash"};
  auto s = store();
  EXPECT_THROW((void)run(*s, settings(2)), Crash);
  script_.answers = {next_program(1, 3)};
  size_t asked = script_.asked.size();
  auto outcome = resume_with(parts(), {}, *s, "last", recorder_);
  ASSERT_TRUE(outcome) << outcome.error().text();
  EXPECT_EQ(outcome->best->id, "c2");
  ASSERT_EQ(script_.asked.size(), asked + 1);
  EXPECT_EQ(script_.asked.back().label, "coder ask 2 try 2") << "the first try was answered";
  EXPECT_EQ(script_.asked.back().messages.back().text,
            script_.asked[asked - 1].messages.back().text);
  auto replay = replay_with(parts(), {}, *s, "last", recorder_);
  EXPECT_TRUE(replay) << replay.error().text();
}

TEST_F(AgentRun, PlannersAndJudgesAreAskedAndHeard) {
  script_.answers = {"APPROACH 1: rows\nA warp for each row.", first_program(2), next_program(2, 5),
                     "PROBLEM: the tail\nFIX: guard it", next_program(5, 6)};
  world_.judge = [](int n, int) {
    return n < 6 ? toy::untimed(Status::failed, "out: wrong") : toy::timed(50);
  };
  auto s = store();
  OptimizeSettings wanted = settings(3);
  wanted.search.agents->planner = true;
  auto outcome = run(*s, wanted);
  ASSERT_TRUE(outcome) << outcome.error().text();
  EXPECT_EQ(outcome->best->id, "c3");
  EXPECT_THAT(script_.asked[1].messages[1].text, HasSubstr("A warp for each row."));
  EXPECT_THAT(script_.asked[4].messages.back().text, HasSubstr("FIX: guard it"));
}

TEST_F(AgentRun, CuteIsNotReadAheadForAModelThatWritesPlainCuda) {
  std::vector<bool> ahead;
  Parts p = parts();
  p.start_evaluator =
      [&](const Context&,
          const eval::EvaluatorOptions& options) -> Result<std::unique_ptr<eval::EvaluatorClient>> {
    ahead.push_back(options.read_cute_ahead);
    return user_error("no evaluator");
  };
  auto s = store();
  OptimizeSettings wanted = settings(1);
  for (const char* model : {"relay:script", "builtin"})
    for (Dialect dialect : {Dialect::cuda, Dialect::cute}) {
      wanted.model = model;
      wanted.search.agents->dialect = dialect;
      EXPECT_FALSE(optimize_with(p, {}, *s, wanted, recorder_));
    }
  EXPECT_THAT(ahead, ElementsAre(false, true, true, true));
}

TEST_F(AgentRun, AModelThatCannotBeReachedEndsTheProcessNotTheRun) {
  script_.answers = {first_program(1)};
  auto s = store();
  auto outcome = run(*s, settings(3));
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().kind, ErrorKind::world);
  script_.answers = {next_program(1, 3), next_program(3, 4)};
  EXPECT_EQ(resume_with(parts(), {}, *s, "last", recorder_)->best->id, "c3");
}

}  // namespace
}  // namespace cutegen::engine
