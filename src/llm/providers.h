// SPDX-License-Identifier: Apache-2.0
// Providers: a table of model services and servers, their APIs and their differences.
//
// Contract: a row holds everything that the encoders need to know about a provider. No other code
// names a provider.
// Example:
//   const Provider* p = find_provider("ollama"); p->url;  // "http://localhost:11434/v1"
#pragma once

#include <string>
#include <vector>

namespace cutegen::llm {

enum class ApiKind { openai_chat, openai_responses, anthropic };

// How well the provider supports `response_format`. If not fully, the prompt includes the schema.
enum class SchemaSupport { full, any_object };

// Whether the next request returns earlier reasoning. in_tool_loop: only the reasoning since the
// user's last message, as some vendors require.
enum class ReasoningBack { never, in_tool_loop, always };

// How a request asks for reasoning: the model decides how much, or the request has a budget of
// tokens.
enum class Thinking { unknown, adaptive, budget };

struct Provider {
  const char* name;
  ApiKind api;
  const char* url;
  const char* key_variable;
  bool needs_key;                // whether its default address requires a key
  bool is_free;                  // whether it runs on the user's machine, at no cost
  const char* max_tokens_field;  // for openai_chat
  SchemaSupport schema;
  ReasoningBack reasoning_back;  // used by openai_chat; the other APIs have fixed rules
  bool cache_key;                // takes prompt_cache_key
  // Whether its models can call tools. false: only if the user configures the server for it.
  bool tools;
  bool asks_for_cost;     // reports dollars if the request sets usage.include
  const char* priced_as;  // the provider's name in the price table
};

const std::vector<Provider>& providers();
const Provider* find_provider(const std::string& name);

}  // namespace cutegen::llm
