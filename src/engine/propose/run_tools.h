// SPDX-License-Identifier: Apache-2.0
// RunTools: executes the tool calls of one run, records them and counts them.
//
// Contract: call fold() with every event of the run, recorded or new, before you pass the event to
// RunView::apply(). For each question, begin_ask() returns the ToolHost that executes the
// question's tool calls. If the journal already has the result of a call (after the last event
// `answered`), the ToolHost returns this result and does not execute the call, so a resumed run
// neither loses nor repeats an evaluation. The event `tool_called` records a call, and `drafted`
// and `evaluated` record a draft's evaluation. A replay has no evaluator, so its ToolHost returns
// only recorded results.
//
// Example: RunTools tools(evaluate, sink); auto host = tools.begin_ask(view, true);
#pragma once

#include <deque>

#include "agent/tool_desk.h"
#include "engine/record/view.h"
#include "llm/metered.h"

namespace cutegen::engine {

struct Judged {
  Verdict verdict;  // `aborted` if the evaluator could not answer
  int64_t elapsed_ms = 0;
};

class RunTools {
 public:
  // Evaluates a program. `label` is the text that the user sees during the evaluation.
  using Judge = std::function<Result<Judged>(
      const Context& ctx, const eval::EvaluateRequest& request, const std::string& label)>;
  RunTools(Judge judge, llm::CallSink& sink) : judge_(std::move(judge)), sink_(sink) {}

  Result<void> fold(EventType type, const Json& data);
  // `memory`: whether the question may show other candidates. `view` must outlive the ToolHost.
  std::unique_ptr<agent::ToolHost> begin_ask(const RunView& view, const agent::Question& question,
                                             bool memory);
  agent::ToolLimits limits(const RunView& view) const;

 private:
  class Host;
  Judge judge_;
  llm::CallSink& sink_;
  std::vector<agent::ToolRecord> open_;  // tool calls of the open question
  int64_t closed_calls_ = 0;             // number of tool calls of all earlier questions
};

}  // namespace cutegen::engine
