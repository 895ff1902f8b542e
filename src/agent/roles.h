// SPDX-License-Identifier: Apache-2.0
// Converts a Question to a request to a language model, which answers in one role (planner, coder,
// debugger, judge, ...). Also reads the answers of planners and judges.
//
// Contract: the request depends only on the arguments. The parts of a request that change least
// come first, so that providers can cache these parts:
// - `system` and the first message (device, task, advice), which are the same for all questions of
//   a run;
// - an earlier program in full (the base);
// - the history of attempts without its newest entries;
// - the subject (the program that the question is about) as changes to the base, with its verdict;
// - the newest entries of the history, and the instruction for the model.
//
// Without a base, the request shows the subject in full: at the base's place if the subject is
// long, otherwise after the history. If the part that all questions share exceeds
// wanted_prefix_tokens, make_request() removes component pages (agent/library.h) and advice. If the
// shared part still exceeds prefix_tokens, make_request() also shortens the graph and the
// reference. If the whole request is too long, make_request() shortens the history and the verdict.
//
// Example: llm::ChatRequest r = make_request(brief, question, {});
#pragma once

#include "agent/brief.h"
#include "agent/reply.h"
#include "llm/chat.h"

namespace cutegen::agent {

struct PromptLimits {
  // If the part that all questions share exceeds wanted_prefix_tokens, make_request() removes the
  // component pages and the advice that fit the task least.
  int64_t wanted_prefix_tokens = 6500;
  int64_t prefix_tokens = 15000;  // limit for the part that all questions share
  int64_t tokens = 24000;         // limit for the whole request; token counts are estimates
  int64_t answer_tokens = 16384;
  // Tools that the model may call; the token limits include the tools' descriptions.
  std::vector<llm::ToolSpec> tools;
  int tool_calls = 0;  // largest number of tool calls for one question
};

llm::ChatRequest make_request(const TaskBrief& brief, const Question& question,
                              const PromptLimits& limits);
// Returns the message that tells the model why its answer is unusable and asks for another answer.
// With `whole`, the message asks for the whole program instead of edits.
std::string reask_text(const Reask& reask, bool whole);
// Reads the approaches from the answer of a planner, or the advice from the answer of a judge.
tl::expected<std::vector<std::string>, Reask> parse_advice(const std::string& text,
                                                           const Question& question);

}  // namespace cutegen::agent
