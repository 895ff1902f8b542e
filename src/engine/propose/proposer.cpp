// SPDX-License-Identifier: Apache-2.0
#include "engine/propose/proposer.h"

#include "core/device_name.h"
#include "engine/propose/builtin_proposer.h"
#include "engine/propose/command_proposer.h"
#include "engine/record/step_data.h"
#include "gpu/spec.h"
#include "llm/models.h"

namespace cutegen::engine {

ProposerKind proposer_kind(const std::string& model) {
  if (model == kBuiltinModel) return ProposerKind::builtin;
  return model.starts_with(kCommandModel) ? ProposerKind::command : ProposerKind::model;
}

Result<void> check_model(const std::string& model) {
  if (proposer_kind(model) != ProposerKind::model) return {};
  CG_CHECK(llm::parse_model(model));
  return {};
}

Result<std::unique_ptr<Proposer>> make_proposer(const std::string& model,
                                                const eval::OpenedTask& task,
                                                const std::string& rewrites) {
  const ProposerKind kind = proposer_kind(model);
  if (kind == ProposerKind::command)
    return make_command_proposer(model.substr(std::string(kCommandModel).size()), task.task);
  if (kind != ProposerKind::builtin)
    return user_error("'" + model + "' does not propose programs", "--model", "give builtin");
  // A run on the simulator records only the device, "sim:h200". An unknown GPU gets programs that
  // run on any GPU.
  const auto device = DeviceName::parse(task.device);
  const bool modelled = task.gpu.empty() && device && !device->is_gpu();
  auto gpu = find_gpu(modelled ? device->model : task.gpu);
  CG_TRY(auto chosen, recipes::parse_rewrites(rewrites, "--rewrites"));
  return make_builtin_proposer(task.task, gpu ? gpu->arch : "", chosen);
}

// The outcome says which of the fields count.
Json answer_data(const Answer& answer) {
  using search::Outcome;
  Answered out{.reasks = answer.reasks};
  if (answer.candidate) {
    out.outcome = Outcome::proposed;
    out.candidate = answer.candidate;
  } else if (!answer.tests.empty()) {
    out.outcome = Outcome::advised;
    out.tests = answer.tests;
  } else if (!answer.advice.empty()) {
    out.outcome = Outcome::advised;
    out.advice = answer.advice;
  } else {
    out.outcome = answer.unusable ? Outcome::unusable : Outcome::nothing;
    out.reason = answer.reason;
  }
  return to_json(out);
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
