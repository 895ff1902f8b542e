// SPDX-License-Identifier: Apache-2.0
// Providers: lists the supported model services and local servers.
//
// Contract: a Provider contains everything that the encoders of requests need to know about a
// provider. No code outside the list of providers depends on a provider's name.
//
// Example: const Provider* p = find_provider("ollama"); p->url;  // "http://localhost:11434/v1"
#pragma once

#include <string>
#include <vector>

namespace cutegen::llm {

enum class ApiKind { openai_chat, openai_responses, anthropic };

// Says whether the provider's `response_format` accepts a schema (`full`), or only demands any JSON
// object. For `any_object`, cutegen writes the schema into the prompt.
enum class SchemaSupport { full, any_object };

// Says whether requests return the model's earlier reasoning to the provider. With `in_tool_loop`,
// requests return only the reasoning since the user's last message, as some providers require.
enum class ReasoningBack { never, in_tool_loop, always };

// Says how a request controls the model's reasoning. With `adaptive`, the model decides how much it
// reasons; with `budget`, the request sets a number of tokens for reasoning.
enum class Thinking { unknown, adaptive, budget };

struct Provider {
  const char* name;
  ApiKind api;
  const char* url;
  const char* key_variable;
  bool needs_key;                // whether the default URL requires a key
  bool is_free;                  // true if the server runs on the user's machine, at no cost
  const char* max_tokens_field;  // with API openai_chat, the field that limits output tokens
  SchemaSupport schema;
  ReasoningBack reasoning_back;  // only for the API openai_chat; other APIs have fixed rules
  bool cache_key;                // whether requests may contain prompt_cache_key
  // True if models can call tools, false if the user must first configure the server for tools.
  bool tools;
  bool asks_for_cost;     // true if usage.include makes the provider report dollars
  const char* priced_as;  // the provider's name in price files
};

const std::vector<Provider>& providers();
const Provider* find_provider(const std::string& name);

}  // namespace cutegen::llm
