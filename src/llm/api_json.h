// SPDX-License-Identifier: Apache-2.0
// Contains functions with which all implementations of Api (llm/api.h) read untrusted JSON and
// encode requests.
//
// Contract: the functions whose names end in _at return an empty value if the field is missing or
// has another type.
//
// Example: int64_t n = tokens_at(usage, "prompt_tokens");
#pragma once

#include <string>

#include "llm/api.h"

namespace cutegen::llm {

std::string text_at(const Json& json, const std::string& key);
int64_t tokens_at(const Json& json, const std::string& key);  // the result is never negative
const Json& at(const Json& json, const std::string& key);     // null if the field is missing
// Returns the array's entry at an index that the server sent. If the array is too short, part_at()
// extends it, to at most kMaxParts entries.
inline constexpr size_t kMaxParts = 1024;
Result<Json*> part_at(Json& array, const Json& index);

// Parses the data of an event as a JSON object.
Result<Json> event_object(const SseEvent& event);
// Makes a tool call from arguments that the server sent as text.
ToolCall tool_call(std::string id, std::string name, const std::string& arguments);

// Returns the system text of a request, with the output schema if the request has no field for the
// schema or if the server refused this field.
std::string system_text(const ChatRequest& request, const Shape& shape, bool schema_as_field);
// Returns whether all objects of a schema forbid additional properties and require all their
// properties, as OpenAI's strict mode demands.
bool is_closed_schema(const Json& schema);
// Returns whether the request must tell the server to forbid further tool calls.
bool forbids_calls(const ChatRequest& request, const Shape& shape);
int64_t output_limit(const ChatRequest& request, const Shape& shape);
// Returns a key that is the same for all requests with the same system text and tools, so that the
// provider routes them to the same cache.
std::string prefix_key(const ChatRequest& request);
// Returns a field of the message's opaque data if the API named `api` wrote the data, else null.
const Json& opaque_of(const Message& message, const char* api, const std::string& field);

}  // namespace cutegen::llm
