// SPDX-License-Identifier: Apache-2.0
#include "engine/propose/proposer.h"

namespace cutegen::engine {

Json answer_data(const Answer& answer) {
  Json out;
  if (answer.candidate)
    out = {{"outcome", to_string(search::Outcome::proposed)},
           {"candidate", to_json(*answer.candidate)}};
  else if (!answer.tests.empty())
    out = {{"outcome", to_string(search::Outcome::advised)}, {"tests", write_json(answer.tests)}};
  else if (!answer.advice.empty())
    out = {{"outcome", to_string(search::Outcome::advised)}, {"advice", answer.advice}};
  else
    out = {{"outcome",
            to_string(answer.unusable ? search::Outcome::unusable : search::Outcome::nothing)},
           {"reason", answer.reason}};
  if (!answer.reasks.empty()) out["reasks"] = answer.reasks;
  return out;
}

Result<Answer> answer_to(Proposer& proposer, const Context& ctx, const search::Ask& ask,
                         const RunView& run) {
  if (ask.role != Role::source) return proposer.answer(ctx, ask, run);
  Answer answer;
  if (!run.task || !run.task->start) {
    answer.reason = "the task has no source kernel";
    return answer;
  }
  Candidate candidate;
  const std::string& kernel = run.task->start->plan.steps.front().kernel;
  candidate.edit = {.summary = "the source kernel '" + kernel + "'",
                    .rationale = {},
                    .origin = "source",
                    .params = Json::object()};
  candidate.program = *run.task->start;
  answer.candidate = std::move(candidate);
  return answer;
}

}  // namespace cutegen::engine
