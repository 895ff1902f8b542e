// SPDX-License-Identifier: Apache-2.0
#include "llm/chat_json.h"

#include <algorithm>

#include "base/hash.h"
#include "base/text.h"

namespace cutegen::llm {
namespace {

constexpr size_t kShown = 60;

Json to_json(const ToolCall& call) {
  Json out{{"id", call.id}, {"name", call.name}, {"arguments", call.arguments}};
  if (!call.malformed.empty()) out["malformed"] = call.malformed;
  return out;
}

Result<ToolCall> tool_call_from_json(const Json& json, const std::string& where) {
  ObjectReader r(json, where);
  ToolCall out;
  CG_TRY(out.id, r.string("id"));
  CG_TRY(out.name, r.string("name"));
  CG_TRY(out.arguments, r.object("arguments"));
  CG_TRY(out.malformed, r.string_or("malformed", ""));
  CG_CHECK(r.finish());
  return out;
}

Json to_json(const ToolResult& result) {
  Json out{{"call_id", result.call_id}, {"text", result.text}};
  if (result.is_error) out["is_error"] = true;
  return out;
}

Result<ToolResult> tool_result_from_json(const Json& json, const std::string& where) {
  ObjectReader r(json, where);
  ToolResult out;
  CG_TRY(out.call_id, r.string("call_id"));
  CG_TRY(out.text, r.string("text"));
  CG_TRY(out.is_error, r.boolean_or("is_error", false));
  CG_CHECK(r.finish());
  return out;
}

Json to_json(const ToolSpec& tool) {
  return {{"name", tool.name}, {"description", tool.description}, {"parameters", tool.parameters}};
}

Result<ToolSpec> tool_spec_from_json(const Json& json, const std::string& where) {
  ObjectReader r(json, where);
  ToolSpec out;
  CG_TRY(out.name, r.string("name"));
  CG_TRY(out.description, r.string("description"));
  CG_TRY(out.parameters, r.object("parameters"));
  CG_CHECK(r.finish());
  return out;
}

template <class T, class F>
Result<std::vector<T>> list(ObjectReader& r, const std::string& key, F&& read) {
  CG_TRY(Json items, r.array_or_empty(key));
  std::vector<T> out;
  for (const Json& item : items) {
    CG_TRY(T value, read(item, r.place(key) + "/" + std::to_string(out.size())));
    out.push_back(std::move(value));
  }
  return out;
}

template <class T>
Json list_json(const std::vector<T>& values) {
  Json out = Json::array();
  for (const T& value : values) out.push_back(to_json(value));
  return out;
}

Result<Message> message_from_json(const Json& json, const std::string& where) {
  ObjectReader r(json, where);
  Message out;
  CG_TRY(std::string speaker, r.string("speaker"));
  if (speaker != "user" && speaker != "assistant")
    return user_error("unknown speaker '" + sanitize(speaker, kShown) + "'", r.place("speaker"),
                      "give user or assistant");
  out.speaker = speaker == "user" ? Speaker::user : Speaker::assistant;
  CG_TRY(out.text, r.string_or("text", ""));
  CG_TRY(out.calls, list<ToolCall>(r, "calls", tool_call_from_json));
  CG_TRY(out.results, list<ToolResult>(r, "results", tool_result_from_json));
  if (r.has("opaque")) {
    CG_TRY(out.opaque, r.any("opaque"));
  }
  CG_TRY(out.cache_end, r.boolean_or("cache_end", false));
  CG_CHECK(r.finish());
  return out;
}

std::string shortened(const Json& value) {
  std::string text = dump_json(value);
  return text.size() <= kShown ? text : sanitize(text.substr(0, kShown), kShown) + "...";
}

// Shows both texts around the first byte that differs.
Difference text_difference(const std::string& a, const std::string& b, const std::string& at) {
  size_t byte =
      static_cast<size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
  size_t from = byte < 20 ? 0 : byte - 20;
  auto part = [&](const std::string& s) {
    return shortened(Json(s.substr(std::min(from, s.size()), kShown)));
  };
  return {at + ": byte " + std::to_string(byte), part(a), part(b)};
}

std::optional<Difference> difference(const Json& a, const Json& b, const std::string& at);

std::optional<Difference> object_difference(const Json& a, const Json& b, const std::string& at) {
  for (const auto& [key, value] : a.items()) {
    if (!b.contains(key)) return Difference{at + "/" + key, shortened(value), "missing"};
    if (auto inner = difference(value, b[key], at + "/" + key)) return inner;
  }
  for (const auto& [key, value] : b.items())
    if (!a.contains(key)) return Difference{at + "/" + key, "missing", shortened(value)};
  return std::nullopt;
}

std::optional<Difference> difference(const Json& a, const Json& b, const std::string& at) {
  if (a == b) return std::nullopt;
  const std::string here = at.empty() ? "/" : at;
  if (a.is_string() && b.is_string())
    return text_difference(a.get<std::string>(), b.get<std::string>(), here);
  if (a.is_object() && b.is_object()) return object_difference(a, b, at);
  if (!a.is_array() || !b.is_array()) return Difference{here, shortened(a), shortened(b)};
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    if (auto inner = difference(a[i], b[i], at + "/" + std::to_string(i))) return inner;
  return Difference{here, std::to_string(a.size()) + " entries",
                    std::to_string(b.size()) + " entries"};
}

Result<Stop> stop_from(const std::string& text, const std::string& where) {
  for (Stop stop : {Stop::end, Stop::tool, Stop::length, Stop::refusal, Stop::cut})
    if (text == to_string(stop)) return stop;
  return user_error("unknown stop '" + sanitize(text, kShown) + "'", where,
                    "give end, tool, length, refusal or cut");
}

}  // namespace

Usage& Usage::operator+=(const Usage& o) {
  input += o.input;
  cached += o.cached;
  cache_written += o.cache_written;
  output += o.output;
  reasoning += o.reasoning;
  estimated |= o.estimated;
  return *this;
}

const char* to_string(Stop stop) {
  switch (stop) {
    case Stop::end:
      return "end";
    case Stop::tool:
      return "tool";
    case Stop::length:
      return "length";
    case Stop::refusal:
      return "refusal";
    case Stop::cut:
      return "cut";
  }
  return "end";
}

Json to_json(const Message& message) {
  Json out{{"speaker", message.speaker == Speaker::user ? "user" : "assistant"}};
  if (!message.text.empty()) out["text"] = message.text;
  if (!message.calls.empty()) out["calls"] = list_json(message.calls);
  if (!message.results.empty()) out["results"] = list_json(message.results);
  if (!message.opaque.is_null()) out["opaque"] = message.opaque;
  if (message.cache_end) out["cache_end"] = true;
  return out;
}

Json to_json(const ChatRequest& request) {
  Json out{{"label", request.label}, {"system", request.system}};
  out["messages"] = list_json(request.messages);
  if (!request.tools.empty()) out["tools"] = list_json(request.tools);
  if (!request.may_call) out["may_call"] = false;
  if (!request.output_schema.is_null()) out["output_schema"] = request.output_schema;
  out["max_output_tokens"] = request.max_output_tokens;
  if (request.temperature) out["temperature"] = *request.temperature;
  if (!request.effort.empty()) out["effort"] = request.effort;
  return out;
}

Result<ChatRequest> chat_request_from_json(const Json& json, const std::string& where) {
  ObjectReader r(json, where);
  ChatRequest out;
  CG_TRY(out.label, r.string_or("label", ""));
  CG_TRY(out.system, r.string_or("system", ""));
  CG_TRY(out.messages, list<Message>(r, "messages", message_from_json));
  CG_TRY(out.tools, list<ToolSpec>(r, "tools", tool_spec_from_json));
  CG_TRY(out.may_call, r.boolean_or("may_call", true));
  CG_TRY(out.output_schema, r.object_or_null("output_schema"));
  CG_TRY(out.max_output_tokens, r.integer_or("max_output_tokens", out.max_output_tokens));
  if (r.has("temperature")) {
    CG_TRY(out.temperature, r.number("temperature"));
  }
  CG_TRY(out.effort, r.string_or("effort", ""));
  CG_CHECK(r.finish());
  return out;
}

Json to_json(const Usage& usage) {
  Json out{{"input", usage.input},
           {"cached", usage.cached},
           {"cache_written", usage.cache_written},
           {"output", usage.output},
           {"reasoning", usage.reasoning}};
  if (usage.estimated) out["estimated"] = true;
  return out;
}

Result<Usage> usage_from_json(const Json& json, const std::string& where) {
  ObjectReader r(json, where);
  Usage out;
  CG_TRY(out.input, r.integer("input"));
  CG_TRY(out.cached, r.integer("cached"));
  CG_TRY(out.cache_written, r.integer("cache_written"));
  CG_TRY(out.output, r.integer("output"));
  CG_TRY(out.reasoning, r.integer("reasoning"));
  CG_TRY(out.estimated, r.boolean_or("estimated", false));
  CG_CHECK(r.finish());
  return out;
}

Json to_json(const ChatReply& reply) {
  Json out{{"message", to_json(reply.message)}, {"stop", to_string(reply.stop)}};
  if (!reply.detail.empty()) out["detail"] = reply.detail;
  out["usage"] = to_json(reply.usage);
  if (reply.cost_usd) out["cost_usd"] = *reply.cost_usd;
  out["model"] = reply.model;
  return out;
}

Result<ChatReply> chat_reply_from_json(const Json& json, const std::string& where) {
  ObjectReader r(json, where);
  ChatReply out;
  CG_TRY(Json message, r.object("message"));
  CG_TRY(out.message, message_from_json(message, r.place("message")));
  CG_TRY(std::string stop, r.string("stop"));
  CG_TRY(out.stop, stop_from(stop, r.place("stop")));
  CG_TRY(out.detail, r.string_or("detail", ""));
  CG_TRY(Json usage, r.object("usage"));
  CG_TRY(out.usage, usage_from_json(usage, r.place("usage")));
  if (r.has("cost_usd")) {
    CG_TRY(out.cost_usd, r.number("cost_usd"));
  }
  CG_TRY(out.model, r.string_or("model", ""));
  CG_CHECK(r.finish());
  return out;
}

std::string request_hash(const ChatRequest& request) {
  Json json = to_json(request);
  json.erase("label");
  return sha256(canonical_json(json));
}

std::optional<Difference> find_difference(const Json& recorded, const Json& now) {
  return difference(recorded, now, "");
}

std::string first_difference(const Json& recorded, const Json& now) {
  auto found = find_difference(recorded, now);
  return found ? found->place + ": recorded " + found->recorded + ", now " + found->now : "";
}

}  // namespace cutegen::llm
