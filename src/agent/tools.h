// SPDX-License-Identifier: Apache-2.0
// The tools that a model may call before it answers: what they are called and what they take.
//
// Contract: tool_specs() is the same for all questions of a run (providers cache it).
// read_tool_call() accepts any call, however odd; what is wrong with it is an error whose text is
// meant for the model. docs/agents.md tells users.
//
// Example: request.tools = tool_specs(true); auto use = read_tool_call(call); if (!use) tell(...);
#pragma once

#include "agent/reply.h"
#include "llm/chat.h"

namespace cutegen {

enum class Tool { read_docs, compile, evaluate, profile, diff_best };
[[nodiscard]] const char* to_string(Tool tool);

struct ToolUse {
  Tool tool = Tool::read_docs;
  std::string page;                 // of read_docs
  std::string draft;                // "d2": what is meant, or what the changes start from; or empty
  std::string kernel, plan, edits;  // changes: whole files, or the blocks of an answer
  std::string summary;
  [[nodiscard]] bool changes() const { return !kernel.empty() || !plan.empty() || !edits.empty(); }
};

// Without `profiles`: for runs that never show a profile.
[[nodiscard]] std::vector<llm::ToolSpec> tool_specs(bool profiles);
[[nodiscard]] Result<ToolUse> read_tool_call(const llm::ToolCall& call);
// What the changes of a call come to as a reply; `base`: the program that they start from, if any.
[[nodiscard]] tl::expected<Reply, Reask> changes_of(const ToolUse& use, const KernelProgram* base);

}  // namespace cutegen
