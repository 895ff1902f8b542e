// SPDX-License-Identifier: Apache-2.0
// Providers: who serves models under which API, and in what each differs. One table.
//
// Contract: a row says all that the encoders need to know of a provider; none is named elsewhere.
// Example: const Provider* p = find_provider("ollama"); p->url;  // "http://localhost:11434/v1"
#pragma once

#include <string>
#include <vector>

namespace cutegen::llm {

enum class ApiKind { openai_chat, openai_responses, anthropic };

// How far `response_format` is understood; below it the schema is put into the prompt.
enum class SchemaSupport { full, any_object };

// Whether reasoning that came beside an answer is sent again. in_tool_loop: only since the user's
// last words, where the vendor demands it.
enum class ReasoningBack { never, in_tool_loop, always };

struct Provider {
  const char* name;
  ApiKind api;
  const char* url;
  const char* key_variable;
  bool needs_key;                // at its own address
  bool is_free;                  // on one's own machine: calls cost nothing
  const char* max_tokens_field;  // of openai_chat
  SchemaSupport schema;
  ReasoningBack reasoning_back;  // of openai_chat; the other APIs have rules of their own
  bool cache_key;                // takes prompt_cache_key
  bool tools;             // its models call tools; false: only if the server is set up for it
  bool asks_for_cost;     // reports dollars when asked by usage.include
  const char* priced_as;  // the provider of its entries in the price table
};

[[nodiscard]] const std::vector<Provider>& providers();
[[nodiscard]] const Provider* find_provider(const std::string& name);

}  // namespace cutegen::llm
