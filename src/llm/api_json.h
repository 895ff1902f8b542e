// SPDX-License-Identifier: Apache-2.0
// Code that the three APIs share: reading untrusted JSON, schemas, tool arguments.
//
// Contract: the *_at functions return an empty value if the field is missing or has another type.
// Example:
//   int64_t n = tokens_at(usage, "prompt_tokens");
#pragma once

#include <string>

#include "llm/api.h"

namespace cutegen::llm {

std::string text_at(const Json& json, const std::string& key);
int64_t tokens_at(const Json& json, const std::string& key);  // never negative
const Json& at(const Json& json, const std::string& key);     // null if missing
// Returns the entry at an index that the server sent. Grows the array to at most kMaxParts entries.
inline constexpr size_t kMaxParts = 1024;
Result<Json*> part_at(Json& array, const Json& index);

// The data of an event as a JSON object.
Result<Json> event_object(const SseEvent& event);
// A tool call whose arguments arrived as text.
ToolCall tool_call(std::string id, std::string name, const std::string& arguments);

// The system text, with the schema as text if the server does not take it as a field.
std::string system_text(const ChatRequest& request, const Shape& shape, bool schema_as_field);
// Whether a schema is closed, as OpenAI's strict mode requires.
bool is_closed_schema(const Json& schema);
// Whether the request must forbid further tool calls.
bool forbids_calls(const ChatRequest& request, const Shape& shape);
int64_t output_limit(const ChatRequest& request, const Shape& shape);
// A key that all questions with the same prefix share, so that the provider routes them to the same
// cache.
std::string prefix_key(const ChatRequest& request);
// The opaque part of a message if `api` wrote it, else null.
const Json& opaque_of(const Message& message, const char* api, const std::string& field);

}  // namespace cutegen::llm
