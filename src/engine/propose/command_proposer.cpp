// SPDX-License-Identifier: Apache-2.0
#include "engine/propose/command_proposer.h"

#include "base/text.h"
#include "llm/command.h"

namespace cutegen::engine {
namespace {

constexpr const char* kSchema = "cutegen.proposer.v1";
constexpr size_t kMaxSummary = 400;
constexpr size_t kMaxRationale = 4000;

Json step_json(const RunStep& step) {
  Json out{{"id", step.candidate.id}, {"summary", step.candidate.edit.summary}};
  if (step.candidate.parent) out["parent"] = *step.candidate.parent;
  if (step.verdict) out["status"] = to_string(step.verdict->status);
  if (auto time = step.time_ns()) out["time_ns"] = *time;
  out["decision"] = to_string(step.decision);
  if (!step.reason.empty()) out["reason"] = step.reason;
  if (step.verdict) out["headline"] = step.verdict->feedback.headline;
  return out;
}

// A candidate with its sources and its complete verdict.
Json full_json(const RunStep& step) {
  Json out = to_json(step.candidate);
  if (step.verdict) out["verdict"] = to_json(*step.verdict);
  return out;
}

Json task_message(const Task& task, const RunView& run) {
  Json out{{"schema", kSchema}, {"type", "task"}, {"task", to_json(task)}};
  out["device"] = run.settings.evaluator.device.text();
  if (run.task) {
    out["floor_ns"] = run.task->floor_ns;
    if (run.task->reachable_ns > 0) out["reachable_ns"] = run.task->reachable_ns;
    if (run.task->roofline_ns > 0) out["roofline_ns"] = run.task->roofline_ns;
  }
  return out;
}

class CommandProposer final : public Proposer {
 public:
  CommandProposer(std::string line, Task task) : line_(std::move(line)), task_(std::move(task)) {}

  Result<Answer> answer(const Context& ctx, const search::Ask& ask, const RunView& run) override {
    if (!command_) CG_CHECK(start(ctx, run));
    Json question = proposer_question(ask, run);
    CG_TRY(Json reply, command_->call(ctx, question));
    auto answer = answer_from_json(reply, run);
    if (answer) return answer;
    question["problem"] = answer.error().text();
    CG_TRY(Json better, command_->call(ctx, question));
    return answer_from_json(better, run);
  }

 private:
  Result<void> start(const Context& ctx, const RunView& run) {
    CG_TRY(command_, llm::Command::start(line_));
    CG_TRY(Json ready, command_->call(ctx, task_message(task_, run)));
    if (ready.value("type", Json()) == "ready") return {};
    command_.reset();
    return user_error("the command did not answer the task with {\"type\": \"ready\"}",
                      "--proposer", "docs/proposer.md describes the protocol");
  }

  std::string line_;
  Task task_;
  std::unique_ptr<llm::Command> command_;
};

}  // namespace

Json proposer_question(const search::Ask& ask, const RunView& run) {
  Json out{{"schema", kSchema},
           {"type", "ask"},
           {"role", to_string(ask.role)},
           {"context", ask.context}};
  Json candidates = Json::array();
  for (const RunStep& step : run.steps) candidates.push_back(step_json(step));
  out["candidates"] = candidates;
  if (const RunStep* best = run.incumbent()) out["best"] = full_json(*best);
  if (!run.steps.empty()) out["last"] = full_json(run.steps.back());
  out["evaluations"] = run.evaluations;
  out["clock_ms"] = run.clock_ms;
  return out;
}

Result<Answer> answer_from_json(const Json& json, const RunView& run) {
  ObjectReader r(json, "the command's answer");
  CG_TRY(std::string type, r.string("type"));
  if (type == "nothing") {
    CG_TRY(std::string reason, r.string_or("reason", "the command has nothing to propose"));
    CG_CHECK(r.finish());
    return Answer{.candidate = {}, .reason = sanitize(reason, kMaxSummary)};
  }
  if (type != "candidate")
    return user_error("unknown type '" + sanitize(type, 40) + "'", r.place("type"),
                      "give candidate or nothing");
  Candidate c;
  CG_TRY(Json program, r.object("program"));
  if (!program.contains("schema")) program["schema"] = "cutegen.program.v1";
  CG_TRY(c.program, read_json<KernelProgram>(program));
  CG_TRY(std::string summary, r.string_or("summary", "the command's proposal"));
  CG_TRY(std::string rationale, r.string_or("rationale", ""));
  CG_TRY(std::string parent, r.string_or("parent", ""));
  CG_CHECK(r.finish());
  if (!parent.empty()) {
    if (!run.find(parent))
      return user_error("no candidate '" + sanitize(parent, 40) + "' in this run",
                        r.place("parent"), "give one of `candidates`, or none");
    c.parent = parent;
  }
  c.edit = {.summary = sanitize(summary, kMaxSummary),
            .rationale = sanitize(rationale, kMaxRationale),
            .origin = "command"};
  return Answer{.candidate = std::move(c), .reason = {}};
}

std::unique_ptr<Proposer> make_command_proposer(const std::string& line, const Task& task) {
  return std::make_unique<CommandProposer>(line, task);
}

}  // namespace cutegen::engine
