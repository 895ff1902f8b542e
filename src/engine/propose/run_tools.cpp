// SPDX-License-Identifier: Apache-2.0
#include "engine/propose/run_tools.h"

#include "base/text.h"
#include "engine/record/program_diff.h"
#include "engine/record/step_data.h"

namespace cutegen::engine {
namespace {

constexpr size_t kMostDiff = size_t{64} << 10;

void tool_form(Fields& v, agent::ToolRecord& t) {
  v.document("tool_called");
  v.ignore_unknown();
  v("tool", t.tool);
  v("arguments_hash", t.arguments_hash);
  v("text", t.text);
  v("is_error", t.is_error);
}

}  // namespace

class RunTools::Host final : public agent::ToolHost {
 public:
  Host(RunTools& run, const RunView& view, const agent::Question& question, bool memory)
      : run_(run), view_(view), profile_(question.profile), memory_(memory) {
    if (question.subject) subject_ = question.subject->id;
    past_ = {run.open_.begin(), run.open_.end()};
  }

  Result<std::optional<agent::ToolRecord>> recorded(const agent::ToolRecord& call) override {
    if (past_.empty()) return std::optional<agent::ToolRecord>();
    agent::ToolRecord next = std::move(past_.front());
    past_.pop_front();
    if (next.tool != call.tool || next.arguments_hash != call.arguments_hash)
      return user_error(
          "the run diverges: the tool '" + next.tool + "' was called, now '" + call.tool + "' is",
          {}, "it was written by another version of cutegen");
    return std::optional(std::move(next));
  }

  Result<void> record(const agent::ToolRecord& call) override {
    return run_.sink_.record(EventType::tool_called, to_json_as(call, tool_form));
  }

  Result<Verdict> compile(const Context& ctx, const KernelProgram& program) override {
    CG_TRY(Judged judged,
           run_.judge_(ctx, {.program = program, .up_to = Rung::load, .profile = false},
                       "compiling a draft: "));
    return std::move(judged.verdict);
  }

  // Retries an aborted evaluation as often as the run does. Never repeats a finished one.
  Result<agent::Evaluated> evaluate(const Context& ctx, const Candidate& draft) override {
    CG_TRY(std::string id, drafted(draft));
    for (;;) {
      const RunStep* step = view_.find(id);
      CG_ASSERT(step);
      bool settled = step->verdict && (step->verdict->status != Status::aborted ||
                                       step->attempts > view_.settings.search.retries);
      if (settled) return agent::Evaluated{.candidate = id, .verdict = *step->verdict};
      eval::EvaluateRequest request{.program = draft.program,
                                    .up_to = Rung::timing,
                                    .profile = profile_ || profile_is_free()};
      CG_TRY(Judged judged, run_.judge_(ctx, request, id + " " + draft.edit.summary + ": "));
      const Evaluated evaluated{
          .candidate = id, .verdict = std::move(judged.verdict), .elapsed_ms = judged.elapsed_ms};
      CG_CHECK(run_.sink_.record(EventType::evaluated, to_json(evaluated)));
    }
  }

  std::string diff_best(const KernelProgram& draft) const override {
    const RunStep* best = memory_ ? view_.incumbent() : nullptr;
    if (!best) best = view_.find(subject_);
    if (!best) return {};
    return sanitize(program_diff(best->candidate.program, draft), kMostDiff);
  }

 private:
  // A simulator profiles whenever it times.
  bool profile_is_free() const { return !view_.settings.evaluator.device.is_gpu(); }

  // Returns the id of a draft for this question. Records a new draft first.
  Result<std::string> drafted(const Candidate& draft) {
    const std::string program = program_id(draft.program);
    for (const RunStep& step : view_.steps)
      if (view_.is_open_draft(step) && program_id(step.candidate.program) == program)
        return step.candidate.id;
    Candidate candidate = draft;
    candidate.id = view_.next_id();
    CG_CHECK(run_.sink_.record(EventType::drafted, to_json(Drafted{candidate})));
    return candidate.id;
  }

  RunTools& run_;
  const RunView& view_;
  bool profile_, memory_;
  std::string subject_;
  std::deque<agent::ToolRecord> past_;
};

Result<void> RunTools::fold(EventType type, const Json& data) {
  if (type == EventType::answered) {
    closed_calls_ += int64_t(open_.size());
    open_.clear();
  } else if (type == EventType::tool_called) {
    CG_TRY(agent::ToolRecord record, read_json_as<agent::ToolRecord>(data, tool_form));
    open_.push_back(std::move(record));
  }
  return {};
}

std::unique_ptr<agent::ToolHost> RunTools::begin_ask(const RunView& view,
                                                     const agent::Question& question, bool memory) {
  return std::make_unique<Host>(*this, view, question, memory);
}

// Returns the limits that applied when the question was asked, even if the journal already has tool
// calls for this question.
agent::ToolLimits RunTools::limits(const RunView& view) const {
  agent::ToolLimits out;
  out.calls = view.settings.model_settings.tool_calls;
  out.run_calls = std::max<int64_t>(0, view.settings.model_settings.run_tool_calls - closed_calls_);
  int64_t done = view.evaluations;
  for (const RunStep& step : view.steps)
    if (view.is_open_draft(step) && step.verdict && step.verdict->status != Status::aborted) --done;
  out.run_evaluations = view.settings.search.budget.evaluations - done;
  return out;
}

}  // namespace cutegen::engine
