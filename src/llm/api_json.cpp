// SPDX-License-Identifier: Apache-2.0
#include "llm/api_json.h"

#include <algorithm>
#include <cmath>

#include "base/hash.h"

namespace cutegen::llm {
namespace {

constexpr int64_t kMostTokens = 1'000'000'000;
const Json kNull;

}  // namespace

const Json& at(const Json& json, const std::string& key) {
  if (!json.is_object()) return kNull;
  auto it = json.find(key);
  return it == json.end() ? kNull : *it;
}

std::string text_at(const Json& json, const std::string& key) {
  const Json& value = at(json, key);
  return value.is_string() ? value.get<std::string>() : std::string();
}

int64_t tokens_at(const Json& json, const std::string& key) {
  const Json& value = at(json, key);
  if (!value.is_number()) return 0;
  double number = value.get<double>();
  if (!(number > 0)) return 0;
  return int64_t(std::min(number, double(kMostTokens)));
}

Result<Json*> part_at(Json& array, const Json& index) {
  if (!index.is_number_unsigned() || index.get<uint64_t>() >= kMaxParts)
    return world_error("the server gave a part of its answer an impossible number");
  size_t i = index.get<size_t>();
  while (array.size() <= i) array.push_back(Json::object());
  return &array[i];
}

Result<Json> event_object(const SseEvent& event) {
  auto json = parse_json(event.data, "the server's stream");
  if (!json) return world_error("the server sent text that is not JSON: " + json.error().message);
  if (!json->is_object()) return world_error("the server sent an event that is not a JSON object");
  return std::move(*json);
}

ToolCall tool_call(std::string id, std::string name, const std::string& arguments) {
  ToolCall call{.id = std::move(id), .name = std::move(name)};
  if (arguments.empty()) return call;  // a tool without parameters
  auto json = parse_json(arguments, "arguments");
  if (json && json->is_object())
    call.arguments = std::move(*json);
  else
    call.malformed = arguments;
  return call;
}

std::string system_text(const ChatRequest& request, const Shape& shape, bool schema_as_field) {
  if (request.output_schema.is_null() || (schema_as_field && shape.takes("schema")))
    return request.system;
  std::string out = request.system;
  if (!out.empty()) out += "\n\n";
  return out +
         "Answer with one JSON object and nothing else, no code fence around it. It must fit this "
         "JSON schema:\n" +
         dump_json(request.output_schema);
}

bool is_closed_schema(const Json& schema) {
  if (schema.is_array())
    return std::all_of(schema.begin(), schema.end(),
                       [](const Json& s) { return !s.is_structured() || is_closed_schema(s); });
  if (!schema.is_object()) return true;
  const Json& properties = at(schema, "properties");
  if (text_at(schema, "type") == "object" || properties.is_object()) {
    const Json& additional = at(schema, "additionalProperties");
    if (!additional.is_boolean() || additional.get<bool>()) return false;
    const Json& required = at(schema, "required");
    for (const auto& [name, value] : properties.items())
      if (std::find(required.begin(), required.end(), Json(name)) == required.end()) return false;
  }
  for (const auto& [key, value] : schema.items())
    if (key != "enum" && key != "const" && value.is_structured() && !is_closed_schema(value))
      return false;
  return true;
}

bool forbids_calls(const ChatRequest& request, const Shape& shape) {
  return !request.tools.empty() && !request.may_call && shape.takes("tool_choice");
}

int64_t output_limit(const ChatRequest& request, const Shape& shape) {
  int64_t limit = std::max<int64_t>(request.max_output_tokens, 1);
  return shape.max_output_tokens ? std::min(limit, *shape.max_output_tokens) : limit;
}

std::string prefix_key(const ChatRequest& request) {
  Hasher hasher;
  hasher.field(request.system);
  for (const ToolSpec& tool : request.tools)
    hasher.field(tool.name).field(dump_json(tool.parameters));
  return "cutegen-" + hasher.hex().substr(0, 32);
}

const Json& opaque_of(const Message& message, const char* api, const std::string& field) {
  return text_at(message.opaque, "api") == api ? at(message.opaque, field) : kNull;
}

const Api& api_of(ApiKind kind) {
  switch (kind) {
    case ApiKind::openai_chat:
      return openai_chat_api();
    case ApiKind::openai_responses:
      return openai_responses_api();
    case ApiKind::anthropic:
      return anthropic_api();
  }
  return openai_chat_api();
}

}  // namespace cutegen::llm
