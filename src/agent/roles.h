// SPDX-License-Identifier: Apache-2.0
// Roles: the question of a planner, coder, debugger or judge as a request to a model, and what
// becomes of the advice that planners and judges give.
//
// Contract: the request is a pure function of brief and question. What stays the same longest
// stands first, so that providers bill it once: `system` and the first message (device, task,
// guidance), the same for all questions of a run; an earlier program whole, which the programs made
// from it share; the history but for its last lines; the program in question as changes to the
// earlier one, with its verdict; the last lines; the last message asks. A long program without
// such a base stands whole in the base's place, a short one behind the history. Texts are shortened
// by rule until prefix and whole fit their limits: history, graph, pages, profile, reference, in
// this order.
//
// Example: llm::ChatRequest r = make_request(brief, question, {});
#pragma once

#include "agent/brief.h"
#include "agent/reply.h"
#include "llm/chat.h"

namespace cutegen {

struct PromptLimits {
  int64_t prefix_tokens = 15000;  // of what is the same in all questions
  int64_t tokens = 24000;         // of everything, estimated
  int64_t answer_tokens = 16384;
  std::vector<llm::ToolSpec> tools;  // that may be called before the answer; their room counts
  int tool_calls = 0;                // of one question
};

[[nodiscard]] llm::ChatRequest make_request(const TaskBrief& brief, const Question& question,
                                            const PromptLimits& limits);
// The message that asks again; `whole`: for the whole program instead of edits.
[[nodiscard]] std::string reask_text(const Reask& reask, bool whole);
// What planners and judges answered: the approaches, or one advice.
[[nodiscard]] tl::expected<std::vector<std::string>, Reask> parse_advice(const std::string& text,
                                                                         const Question& question);

}  // namespace cutegen
