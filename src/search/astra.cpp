// SPDX-License-Identifier: Apache-2.0
#include "search/astra.h"

namespace cutegen::search {
namespace {

constexpr int kPublishedRounds = 5;  // as in the paper
constexpr int kAstraRounds = 10;

int astra_rounds(const AgentSettings& agents) {
  return agents.astra_rounds.value_or(agents.published ? kPublishedRounds : kAstraRounds);
}

}  // namespace

AstraStrategy::AstraStrategy(const StrategySettings& settings, bool team)
    : CudaforgeStrategy(
          settings,
          {.rounds = astra_rounds(*settings.agents),
           .adviser = team ? std::optional(Role::planner) : std::nullopt,
           .reader =
               team && settings.agents->profiler ? std::optional(Role::profiler) : std::nullopt,
           .repairs =
               settings.agents->published ? std::nullopt : std::optional(settings.agents->fixes)}),
      team_(team) {}

bool AstraStrategy::asks_before(const Json&) {
  if (!team_) return false;
  testing_ = true;
  open(Ask{.role = Role::tester,
           .context = {{"purpose", to_string(Purpose::plan)}, {"memory", !agents().published}}});
  return true;
}

// Without a source kernel, the model also writes a first program. This program counts as one more
// round.
void AstraStrategy::on_task(const Json& task) {
  ++form().rounds;
  CudaforgeStrategy::on_task(task);
}

void AstraStrategy::on_answer(const Proposed& answer) {
  if (!testing_) return CudaforgeStrategy::on_answer(answer);
  testing_ = false;
  if (answer.outcome == Outcome::nothing) return open(Finish{.reason = answer.reason, .best = ""});
  begin(answer.tests);
}

void AstraStrategy::add_context(Json& context) const {
  if (tests_.empty()) return;
  Json tests = Json::array();
  for (const TestCase& test : tests_) tests.push_back(describe(test));
  context["tests"] = std::move(tests);
}

}  // namespace cutegen::search
