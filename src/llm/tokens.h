// SPDX-License-Identifier: Apache-2.0
// Counting tokens without the provider's tokenizer: an estimate, and a bound for reservations.
//
// Contract: estimate_tokens is meant for sizes of prompts in English and code; most_tokens is above
// the truth by a wide margin. Both depend on the text alone.
//
// Example: if (estimate_tokens(prompt) > 24'000) shorten(prompt);
#pragma once

#include <string_view>

#include "llm/chat.h"

namespace cutegen::llm {

[[nodiscard]] int64_t estimate_tokens(std::string_view text);
[[nodiscard]] int64_t most_tokens(std::string_view text);
// Of everything that is sent: system, tools, schema, messages and what surrounds them.
[[nodiscard]] int64_t estimate_tokens(const ChatRequest& request);
[[nodiscard]] int64_t most_tokens(const ChatRequest& request);
[[nodiscard]] int64_t estimate_tokens(const Message& message);

}  // namespace cutegen::llm
