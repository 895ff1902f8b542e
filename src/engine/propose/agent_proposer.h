// SPDX-License-Identifier: Apache-2.0
// The proposer that asks a language model. It sends the question, executes the model's tool calls,
// and applies the reply to a program.
//
// Contract: a question depends only on the run's events and on the strategy's request, so a replay
// of a recorded run asks the same questions. If a reply cannot be applied, the proposer sends the
// reason to the model and asks again, at most `reasks` times. If all replies fail, the answer is
// `unusable`: the strategy loses a step, but the run does not end. If the budget is too small for a
// call of the model, the answer is `nothing`, with the limit as its reason. Before the proposer
// returns a program, it checks the program against the task, the kernels' signatures and the
// device. If a question offers tools, the model may call these tools before it replies
// (agent/tool_desk.h). The proposer then returns the fastest correct program among the reply and
// the evaluated drafts (programs that the model passed to tools). A returned draft keeps its id.
//
// Example: CG_TRY(auto p, make_agent_proposer(run_model, run_tools, settings, *view.task));
#pragma once

#include "engine/propose/proposer.h"
#include "engine/propose/run_tools.h"
#include "llm/run_model.h"

namespace cutegen::engine {

bool asks_model(const OptimizeSettings& settings);
// Returns the setting `tools`, but replaces `automatic` by the mode that suits this model and
// strategy.
ToolsMode settle_tools(const OptimizeSettings& settings, const llm::ChatModel& model);
Result<std::unique_ptr<Proposer>> make_agent_proposer(llm::RunModel& model, RunTools& tools,
                                                      const OptimizeSettings& settings,
                                                      const eval::OpenedTask& task);

}  // namespace cutegen::engine
