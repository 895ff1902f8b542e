// SPDX-License-Identifier: Apache-2.0
// The proposer that asks a language model: it sends the question, runs tool calls, applies the
// reply, and asks again if needed.
//
// Contract: the question depends only on the run's events and on what the strategy asks for, so
// replaying a recorded run asks the same questions. If a reply cannot be applied, the proposer
// tells the model why and asks again, at most `reasks` times. After that the answer is `unusable`,
// which costs the strategy a step but does not end the run. If the budget forbids a call, the
// answer is "nothing" with the budget's reason. Programs are checked against task, signatures and
// device before they are proposed. With tools, the model may call them before it replies
// (agent/tool_desk.h). The answer is then the fastest correct program among the reply and the
// evaluated drafts. A draft keeps its id.
//
// Example: CG_TRY(auto p, make_agent_proposer(run_model, run_tools, settings, *view.task));
#pragma once

#include "engine/propose/proposer.h"
#include "engine/propose/run_tools.h"
#include "llm/run_model.h"

namespace cutegen::engine {

bool asks_model(const OptimizeSettings& settings);
// Resolves `automatic` to on or off for this model and strategy.
ToolsMode settle_tools(const OptimizeSettings& settings, const llm::ChatModel& model);
Result<std::unique_ptr<Proposer>> make_agent_proposer(llm::RunModel& model, RunTools& tools,
                                                      const OptimizeSettings& settings,
                                                      const eval::OpenedTask& task);

}  // namespace cutegen::engine
