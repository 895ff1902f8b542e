// SPDX-License-Identifier: Apache-2.0
// RunTools: the tools of one run, as its events have them: done once, recorded, counted.
//
// Contract: fold() takes every event of the run, recorded and live ones alike, before the view
// does. begin_ask() gives the host for the question that is open; it knows what was recorded since
// the last `answered` and does only what is new, so that a resumed run neither loses nor repeats an
// evaluation. A draft's evaluation is the events `drafted` and `evaluated`, a call `tool_called`.
// Without an evaluator (a replay) it knows records only.
//
// Example: RunTools tools(evaluate, sink); auto host = tools.begin_ask(view, true);
#pragma once

#include <deque>

#include "agent/tool_desk.h"
#include "engine/record/view.h"
#include "llm/metered.h"

namespace cutegen::engine {

struct Judged {
  Verdict verdict;  // `aborted` where the evaluator could not answer
  int64_t elapsed_ms = 0;
};

class RunTools {
 public:
  // `label`: what a person who waits is told.
  using Judge = std::function<Result<Judged>(
      const Context& ctx, const eval::EvaluateRequest& request, const std::string& label)>;
  RunTools(Judge judge, llm::CallSink& sink) : judge_(std::move(judge)), sink_(sink) {}

  Result<void> fold(EventType type, const Json& data);
  // `memory`: whether the question may know of other candidates. `view` outlives the host.
  std::unique_ptr<agent::ToolHost> begin_ask(const RunView& view, const agent::Question& question,
                                             bool memory);
  agent::ToolLimits limits(const RunView& view) const;

 private:
  class Host;
  Judge judge_;
  llm::CallSink& sink_;
  std::vector<agent::ToolRecord> open_;  // of the open question
  int64_t closed_calls_ = 0;             // of all questions before it
};

}  // namespace cutegen::engine
