// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "engine/testing/toy_world.h"

namespace cutegen::engine {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

search::Ask ask(const std::string& purpose, const std::string& parent = {}) {
  search::Ask a{.role = Role::coder, .context = {{"purpose", purpose}}};
  if (!parent.empty()) a.context["parent"] = parent;
  return a;
}

// Asks the proposer and adds the answer to the run, as the loop does.
Answer next(Proposer& proposer, RunView& run, const search::Ask& question) {
  auto answer = proposer.answer({}, question, run);
  EXPECT_TRUE(answer) << answer.error().text();
  if (answer->candidate) {
    RunStep step;
    step.candidate = *answer->candidate;
    step.candidate.id = "c" + std::to_string(run.steps.size() + 1);
    run.steps.push_back(step);
  }
  return *answer;
}

TEST(Builtin, BeginsWithTheSafeChoiceAndChangesOneThingAtATime) {
  auto proposer = std::move(*make_proposer("builtin", toy::relu_task()));
  RunView run;
  Answer first = next(*proposer, run, ask("first"));
  ASSERT_TRUE(first.candidate) << first.reason;
  EXPECT_FALSE(first.candidate->parent);
  EXPECT_THAT(first.candidate->edit.origin, StartsWith("recipe:"));
  std::set<std::string> programs{program_id(first.candidate->program)};
  Answer answer = next(*proposer, run, ask("improve", "c1"));
  for (; answer.candidate; answer = next(*proposer, run, ask("improve", "c1"))) {
    EXPECT_EQ(answer.candidate->parent, "c1");
    EXPECT_THAT(answer.candidate->edit.summary, HasSubstr(" -> "));
    int changed = 0;
    for (const auto& [name, value] : answer.candidate->edit.params.items())
      changed += value != first.candidate->edit.params[name];
    EXPECT_EQ(changed, 1) << answer.candidate->edit.summary;
    EXPECT_TRUE(programs.insert(program_id(answer.candidate->program)).second) << "asked twice";
    ASSERT_LT(run.steps.size(), 500u);
  }
  EXPECT_EQ(answer.reason, "nothing left to try");
  EXPECT_GT(run.steps.size(), 3u);
}

TEST(Builtin, RepairsBranchFromEveryChoiceMadeSoFar) {
  auto proposer = std::move(*make_proposer("builtin", toy::relu_task()));
  RunView improve, repair;
  next(*proposer, improve, ask("first"));
  while (next(*proposer, improve, ask("improve", "c1")).candidate) {
  }
  next(*proposer, repair, ask("first"));
  while (repair.steps.size() <= improve.steps.size() + 3 &&
         next(*proposer, repair, ask("repair")).candidate) {
  }
  EXPECT_GT(repair.steps.size(), improve.steps.size());
}

TEST(Builtin, TheSameRunGetsTheSameAnswer) {
  eval::OpenedTask task = toy::relu_task(), copy = task;
  copy.task = *read_json<Task>(to_json(task.task));
  RunView run;
  auto proposer = std::move(*make_proposer("builtin", task));
  next(*proposer, run, ask("first"));
  auto again = std::move(*make_proposer("builtin", copy));
  auto a = proposer->answer({}, ask("improve", "c1"), run);
  auto b = again->answer({}, ask("improve", "c1"), run);
  EXPECT_EQ(answer_data(*a), answer_data(*b));
}

TEST(Builtin, SaysWhyNoRecipeApplies) {
  eval::OpenedTask opened = toy::relu_task();
  opened.task.graph.nodes[0].op = "aten.convolution.default";
  auto proposer = std::move(*make_proposer("builtin", opened));
  auto answer = proposer->answer({}, ask("first"), {});
  ASSERT_TRUE(answer);
  EXPECT_FALSE(answer->candidate);
  EXPECT_THAT(answer->reason, StartsWith("no recipe: "));
  EXPECT_THAT(answer->reason, HasSubstr("convolution"));
}

TEST(Builtin, OtherRolesAndModelsAreRefused) {
  auto proposer = std::move(*make_proposer("builtin", toy::relu_task()));
  EXPECT_THAT(proposer->answer({}, search::Ask{Role::judge, Json::object()}, {}).error().message,
              HasSubstr("'judge'"));
  auto unknown = make_proposer("oracle", toy::relu_task());
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().kind, ErrorKind::user);
  EXPECT_THAT(unknown.error().text(), HasSubstr("builtin"));
}

}  // namespace
}  // namespace cutegen::engine
