// SPDX-License-Identifier: Apache-2.0
#include "llm/chat_json.h"

#include <algorithm>

#include "base/hash.h"
#include "base/text.h"

namespace cutegen::llm {
namespace {

constexpr size_t kShown = 60;

std::string shortened(const Json& value) {
  std::string text = dump_json(value);
  return text.size() <= kShown ? text : sanitize(text.substr(0, kShown), kShown) + "...";
}

// Shows both texts around the first byte that differs.
Difference text_difference(const std::string& a, const std::string& b, const std::string& at) {
  size_t byte = size_t(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
  size_t from = byte < 20 ? 0 : byte - 20;
  auto part = [&](const std::string& s) {
    return shortened(Json(s.substr(std::min(from, s.size()), kShown)));
  };
  return {.place = at + ": byte " + std::to_string(byte), .recorded = part(a), .now = part(b)};
}

std::optional<Difference> difference(const Json& a, const Json& b, const std::string& at);

std::optional<Difference> object_difference(const Json& a, const Json& b, const std::string& at) {
  for (const auto& [key, value] : a.items()) {
    if (!b.contains(key))
      return Difference{.place = at + "/" + key, .recorded = shortened(value), .now = "missing"};
    if (auto inner = difference(value, b[key], at + "/" + key)) return inner;
  }
  for (const auto& [key, value] : b.items())
    if (!a.contains(key))
      return Difference{.place = at + "/" + key, .recorded = "missing", .now = shortened(value)};
  return std::nullopt;
}

std::optional<Difference> difference(const Json& a, const Json& b, const std::string& at) {
  if (a == b) return std::nullopt;
  const std::string here = at.empty() ? "/" : at;
  if (a.is_string() && b.is_string())
    return text_difference(a.get<std::string>(), b.get<std::string>(), here);
  if (a.is_object() && b.is_object()) return object_difference(a, b, at);
  if (!a.is_array() || !b.is_array())
    return Difference{.place = here, .recorded = shortened(a), .now = shortened(b)};
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    if (auto inner = difference(a[i], b[i], at + "/" + std::to_string(i))) return inner;
  return Difference{.place = here,
                    .recorded = std::to_string(a.size()) + " entries",
                    .now = std::to_string(b.size()) + " entries"};
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

Names<Stop> enum_names(Stop) {
  static constexpr Name<Stop> names[] = {{Stop::end, "end"},
                                         {Stop::tool, "tool"},
                                         {Stop::length, "length"},
                                         {Stop::refusal, "refusal"},
                                         {Stop::cut, "cut"}};
  return names;
}

Names<Speaker> enum_names(Speaker) {
  static constexpr Name<Speaker> names[] = {{Speaker::user, "user"},
                                            {Speaker::assistant, "assistant"}};
  return names;
}

void fields(Fields& v, ToolCall& c) {
  v("id", c.id);
  v("name", c.name);
  v("arguments", c.arguments, field::object);
  v("malformed", c.malformed, field::if_set);
}

void fields(Fields& v, ToolResult& r) {
  v("call_id", r.call_id);
  v("text", r.text);
  v("is_error", r.is_error, field::if_set);
}

void fields(Fields& v, ToolSpec& t) {
  v("name", t.name);
  v("description", t.description);
  v("parameters", t.parameters, field::object);
}

void fields(Fields& v, Message& m) {
  v("speaker", m.speaker);
  v("text", m.text, field::if_set);
  v("calls", m.calls, field::if_set);
  v("results", m.results, field::if_set);
  v("opaque", m.opaque, field::written_if(!m.opaque.is_null()));
  v("cache_end", m.cache_end, field::if_set);
}

void fields(Fields& v, ChatRequest& q) {
  v("label", q.label, field::may_lack);
  v("system", q.system, field::may_lack);
  v("messages", q.messages, field::may_lack);
  v("tools", q.tools, field::if_set);
  v("may_call", q.may_call, field::written_if(!q.may_call));
  v("output_schema", q.output_schema,
    field::written_if(!q.output_schema.is_null()) + field::object);
  v("max_output_tokens", q.max_output_tokens, field::may_lack);
  v("temperature", q.temperature);
  v("effort", q.effort, field::if_set);
}

void fields(Fields& v, Usage& u) {
  v("input", u.input);
  v("cached", u.cached);
  v("cache_written", u.cache_written);
  v("output", u.output);
  v("reasoning", u.reasoning);
  v("estimated", u.estimated, field::if_set);
}

void fields(Fields& v, ChatReply& r) {
  v("message", r.message);
  v("stop", r.stop);
  v("detail", r.detail, field::if_set);
  v("usage", r.usage);
  v("cost_usd", r.cost_usd);
  v("model", r.model, field::may_lack);
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
