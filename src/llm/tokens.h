// SPDX-License-Identifier: Apache-2.0
// Counts tokens without the provider's tokenizer: an estimate, and an upper bound for reservations.
//
// Contract: estimate_tokens() suits prompts of English and code. most_tokens() is well above the
// true number. Both depend only on the text.
//
// Example: if (estimate_tokens(prompt) > 24'000) shorten(prompt);
#pragma once

#include <string_view>

#include "llm/chat.h"

namespace cutegen::llm {

int64_t estimate_tokens(std::string_view text);
int64_t most_tokens(std::string_view text);
// Covers the whole request: system, tools, schema, messages and their frames.
int64_t estimate_tokens(const ChatRequest& request);
int64_t most_tokens(const ChatRequest& request);
int64_t estimate_tokens(const Message& message);

}  // namespace cutegen::llm
