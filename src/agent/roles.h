// SPDX-License-Identifier: Apache-2.0
// Roles: writes the question to a planner, coder, debugger, judge or tester as a model request, and
// reads the advice of planners and judges.
//
// Contract: the request is a pure function of brief and question. Its most stable parts come first,
// so that providers cache them:
// - `system` and the first message (device, task, guidance), the same in all questions of a run;
// - an earlier program in full (the base), to which later programs are shown as changes;
// - the history without its last lines;
// - the program in question, as changes to the base, with its verdict;
// - the last lines of the history, and the question.
// If there is no base, a long program takes its place, and a short program follows the history. If
// the part that all questions share is larger than wanted_prefix_tokens, it omits pages and
// guidance. If it is larger than prefix_tokens, graph and reference also become shorter, step by
// step. If the whole request is too long, history and verdict become shorter.
//
// Example: llm::ChatRequest r = make_request(brief, question, {});
#pragma once

#include "agent/brief.h"
#include "agent/reply.h"
#include "llm/chat.h"

namespace cutegen::agent {

struct PromptLimits {
  // Above this size, the shared part omits pages and the advice for minor classes.
  int64_t wanted_prefix_tokens = 6500;
  int64_t prefix_tokens = 15000;  // limit of the part that all questions share
  int64_t tokens = 24000;         // limit of the whole request, estimated
  int64_t answer_tokens = 16384;
  // Tools that the model may call before it answers. Their descriptions count as tokens.
  std::vector<llm::ToolSpec> tools;
  int tool_calls = 0;  // most per question
};

llm::ChatRequest make_request(const TaskBrief& brief, const Question& question,
                              const PromptLimits& limits);
// The message that asks again; with `whole`, for the whole program instead of edits.
std::string reask_text(const Reask& reask, bool whole);
// Reads the answer of a planner (its approaches) or a judge (one piece of advice).
tl::expected<std::vector<std::string>, Reask> parse_advice(const std::string& text,
                                                           const Question& question);

}  // namespace cutegen::agent
