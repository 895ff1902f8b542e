// SPDX-License-Identifier: Apache-2.0
// The names and arguments of the tools that a model may call before it answers.
//
// Contract: a question offers only tools that can succeed for it. All questions of one kind offer
// the same tools, so that the provider's cache applies. read_tool_call() accepts any call. A fault
// in it is an error whose text addresses the model. docs/agents.md explains the tools to users.
//
// Example: request.tools = tool_specs({.compile = true});
//          auto use = read_tool_call(call); if (!use) tell(...);
#pragma once

#include "agent/reply.h"
#include "llm/chat.h"

namespace cutegen::agent {

enum class Tool { read_docs, compile, evaluate, profile, diff_best };
const char* to_string(Tool tool);

struct ToolUse {
  Tool tool = Tool::read_docs;
  std::string page;  // for read_docs
  // "d2": the draft to use, or the one that the changes start from. May be empty.
  std::string draft;
  std::string kernel, plan, edits;  // the changes: whole files, or the blocks of an answer
  std::string summary;
  bool changes() const { return !kernel.empty() || !plan.empty() || !edits.empty(); }
};

// The tools of one question; read_docs is always among them.
struct Offer {
  bool compile = false, evaluate = false, profile = false, diff_best = false;
  bool has(Tool tool) const;
};
std::vector<llm::ToolSpec> tool_specs(const Offer& offer);
Result<ToolUse> read_tool_call(const llm::ToolCall& call);
// The edits of a call, in the form of a reply. base: the program to which they apply, or null.
tl::expected<Reply, Reask> changes_of(const ToolUse& use, const KernelProgram* base);

}  // namespace cutegen::agent
