// SPDX-License-Identifier: Apache-2.0
// Estimates numbers of tokens without the provider's tokenizer.
//
// Contract: estimate_tokens() returns a typical number for prompts of English text and code. For
// reservations of the budget, most_tokens() returns a number well above the true number. Both
// estimates depend only on the text.
//
// Example: if (estimate_tokens(prompt) > 24'000) shorten(prompt);
#pragma once

#include <string_view>

#include "llm/chat.h"

namespace cutegen::llm {

int64_t estimate_tokens(std::string_view text);
int64_t most_tokens(std::string_view text);
// For a request, estimate_tokens() and most_tokens() count system text, tools, schema, and messages
// with the tokens that the API adds around each message.
int64_t estimate_tokens(const ChatRequest& request);
int64_t most_tokens(const ChatRequest& request);
int64_t estimate_tokens(const Message& message);

}  // namespace cutegen::llm
