// SPDX-License-Identifier: Apache-2.0
// The proposer that asks a language model: question, calls of tools, reply, edit, and asking again
// where needed.
//
// Contract: the question is a function of the run's events and the strategy's ask, so that a
// recorded run gives the same questions. A reply that does not apply is answered with the reason,
// at most `reasks` times; then the answer is `unusable`, which costs the strategy a step and never
// the run. A refused call for want of budget is the answer "nothing" with the budget's reason.
// Programs are checked against task, signatures and the device before they are proposed. With tools
// the model may call them before it replies (agent/tool_desk.h); the answer is then the best of the
// reply and the drafts that were evaluated meanwhile, with the id that such a draft has.
//
// Example: CG_TRY(auto p, make_agent_proposer(run_model, run_tools, settings, *view.task));
#pragma once

#include "engine/propose/proposer.h"
#include "engine/propose/run_tools.h"
#include "llm/run_model.h"

namespace cutegen::engine {

bool asks_model(const OptimizeSettings& settings);
// "on" or "off": what `auto` comes to for this model and strategy.
ToolsMode settle_tools(const OptimizeSettings& settings, const llm::ChatModel& model);
Result<std::unique_ptr<Proposer>> make_agent_proposer(llm::RunModel& model, RunTools& tools,
                                                      const OptimizeSettings& settings,
                                                      const eval::OpenedTask& task);

}  // namespace cutegen::engine
