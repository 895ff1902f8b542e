// SPDX-License-Identifier: Apache-2.0
// Providers: a table of the supported model services and local servers.
//
// Contract: a row contains everything that the encoders of requests need to know about a provider.
// No other code depends on a provider's name. Example:
//   const Provider* p = find_provider("ollama"); p->url;  // "http://localhost:11434/v1"
#pragma once

#include <string>
#include <vector>

namespace cutegen::llm {

enum class ApiKind { openai_chat, openai_responses, anthropic };

// Whether the provider's `response_format` accepts a schema (`full`), or only demands any JSON
// object. In the second case, cutegen writes the schema into the prompt.
enum class SchemaSupport { full, any_object };

// Whether requests return the model's earlier reasoning to the provider. `in_tool_loop` returns
// only the reasoning since the user's last message, as some providers require.
enum class ReasoningBack { never, in_tool_loop, always };

// How a request controls reasoning. With `adaptive`, the model decides how much it reasons; with
// `budget`, the request sets a number of tokens.
enum class Thinking { unknown, adaptive, budget };

struct Provider {
  const char* name;
  ApiKind api;
  const char* url;
  const char* key_variable;
  bool needs_key;                // whether the default URL requires a key
  bool is_free;                  // true if the server runs on the user's machine, at no cost
  const char* max_tokens_field;  // for the API openai_chat, the field that limits output tokens
  SchemaSupport schema;
  ReasoningBack reasoning_back;  // only for the API openai_chat; the other APIs have fixed rules
  bool cache_key;                // whether requests may contain prompt_cache_key
  // True if the models can call tools. False if the user must first configure the server for it.
  bool tools;
  bool asks_for_cost;     // true if the provider reports dollars when a request sets usage.include
  const char* priced_as;  // the provider's name in price files
};

const std::vector<Provider>& providers();
const Provider* find_provider(const std::string& name);

}  // namespace cutegen::llm
