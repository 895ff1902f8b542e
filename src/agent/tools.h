// SPDX-License-Identifier: Apache-2.0
// Declares the tools that a model may call before it answers, and reads tool calls.
//
// Contract: questions with an equal Offer declare the same tools, so that the provider can cache
// the declarations. For an invalid call, read_tool_call() returns an error with a text for the
// model. The page docs/agents.md explains the tools.
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
  // The name ("d2") of the draft that the tool uses or that the edits change; may be empty.
  std::string draft;
  std::string kernel, plan, edits;  // the changes: whole files, or blocks as in an answer
  std::string summary;
  bool changes() const { return !kernel.empty() || !plan.empty() || !edits.empty(); }
};

// The tools that one question offers; every question also offers `read_docs`.
struct Offer {
  bool compile = false, evaluate = false, profile = false, diff_best = false;
  bool has(Tool tool) const;
};
std::vector<llm::ToolSpec> tool_specs(const Offer& offer);
Result<ToolUse> read_tool_call(const llm::ToolCall& call);
// Returns the changes in a tool call as a Reply. `base` is the program to change, or null.
tl::expected<Reply, Reask> changes_of(const ToolUse& use, const KernelProgram* base);

}  // namespace cutegen::agent
