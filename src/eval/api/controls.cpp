// SPDX-License-Identifier: Apache-2.0
#include "eval/api/controls.h"

#include "base/file.h"
#include "base/text.h"

namespace cutegen::eval {
namespace {

constexpr const char* kControls[] = {"stream", "multiply"};

Result<ControlTime> time_one(const Context& ctx, EvaluatorClient& evaluator,
                             const std::string& name) {
  CG_TRY(auto share, share_dir());
  const auto folder = share / "tasks" / "control";
  CG_TRY(KernelProgram program, load_program(folder / name));
  CG_TRY(OpenedTask opened, evaluator.open_task(ctx, folder / (name + ".py")));
  ControlTime out{.name = name, .program_id = program_id(program)};
  EvaluateRequest request{.program = std::move(program)};
  request.task = opened.task.id;
  auto verdict = evaluator.evaluate(ctx, request);
  evaluator.close_task(ctx, opened.task.id);
  if (!verdict) return fail(verdict.error());
  if (verdict->status != Status::correct || !verdict->timing)
    return world_error("the control kernel '" + name + "' cannot be timed on this machine: " +
                       sanitize(verdict->feedback.headline, 300));
  out.time_ns = verdict->timing->time_ns;
  return out;
}

}  // namespace

Result<std::vector<ControlTime>> time_controls(const Context& ctx, EvaluatorClient& evaluator) {
  std::vector<ControlTime> out;
  for (const char* name : kControls) {
    CG_TRY(ControlTime one, time_one(ctx, evaluator, name));
    out.push_back(std::move(one));
  }
  return out;
}

}  // namespace cutegen::eval
