// SPDX-License-Identifier: Apache-2.0
// The OpenAI chat completions API, and the servers that speak it with small differences.
#include "base/text.h"
#include "llm/api_json.h"

namespace cutegen::llm {
namespace {

constexpr const char* kOpenAiChat = "openai-chat";
// Servers use different names for the field with the reasoning.
constexpr const char* kReasoningFields[] = {"reasoning_content", "reasoning", "reasoning_details"};

Json tool_calls_json(const Message& message) {
  Json out = Json::array();
  for (const ToolCall& call : message.calls)
    out.push_back(
        {{"id", call.id},
         {"type", "function"},
         {"function",
          {{"name", call.name},
           {"arguments", call.malformed.empty() ? dump_json(call.arguments) : call.malformed}}}});
  return out;
}

Json assistant_json(const Message& message, bool with_reasoning) {
  Json out{{"role", "assistant"}};
  out["content"] = message.text.empty() && !message.calls.empty() ? Json() : Json(message.text);
  if (!message.calls.empty()) out["tool_calls"] = tool_calls_json(message);
  if (!with_reasoning) return out;
  for (const char* field : kReasoningFields)
    if (const Json& value = opaque_of(message, kOpenAiChat, field); !value.is_null())
      out[field] = value;
  return out;
}

void append_chat_user(Json& out, const Message& message) {
  for (const ToolResult& result : message.results)
    out.push_back({{"role", "tool"},
                   {"tool_call_id", result.call_id},
                   {"content", (result.is_error ? "Error: " : "") + result.text}});
  if (!message.text.empty() || message.results.empty())
    out.push_back({{"role", "user"}, {"content", message.text}});
}

Json chat_messages(const ChatRequest& request, const Shape& shape) {
  Json out = Json::array();
  bool as_field = shape.provider.schema == SchemaSupport::full;
  if (std::string system = system_text(request, shape, as_field); !system.empty())
    out.push_back({{"role", "system"}, {"content", system}});
  size_t loop_begin = 0;  // index of the user's last message
  for (size_t i = 0; i < request.messages.size(); ++i)
    if (request.messages[i].speaker == Speaker::user && request.messages[i].results.empty())
      loop_begin = i;
  ReasoningBack back = shape.provider.reasoning_back;
  for (size_t i = 0; i < request.messages.size(); ++i) {
    const Message& message = request.messages[i];
    bool in_loop = i > loop_begin && !message.calls.empty();
    if (message.speaker == Speaker::user)
      append_chat_user(out, message);
    else
      out.push_back(assistant_json(message, back == ReasoningBack::always ||
                                                (back == ReasoningBack::in_tool_loop && in_loop)));
  }
  return out;
}

Json chat_tools(const ChatRequest& request) {
  Json out = Json::array();
  for (const ToolSpec& tool : request.tools)
    out.push_back({{"type", "function"},
                   {"function",
                    {{"name", tool.name},
                     {"description", tool.description},
                     {"parameters", tool.parameters}}}});
  return out;
}

Json response_format(const ChatRequest& request, const Shape& shape) {
  if (shape.provider.schema == SchemaSupport::any_object) return {{"type", "json_object"}};
  Json schema{{"name", "answer"}, {"schema", request.output_schema}};
  schema["strict"] = is_closed_schema(request.output_schema);
  return {{"type", "json_schema"}, {"json_schema", schema}};
}

// The token limit has two names, OpenAI's newer one and the common one. Uses the other name if the
// server refuses one.
std::string limit_field(const Shape& shape) {
  std::string field = shape.provider.max_tokens_field;
  if (shape.takes("max_tokens_field")) return field;
  return field == "max_tokens" ? "max_completion_tokens" : "max_tokens";
}

Usage chat_usage(const Json& usage) {
  Usage out;
  const Json& prompt = at(usage, "prompt_tokens_details");
  out.cached = std::max(tokens_at(prompt, "cached_tokens"),
                        tokens_at(usage, "prompt_cache_hit_tokens"));  // DeepSeek's name
  out.cache_written = tokens_at(prompt, "cache_write_tokens");
  out.input =
      std::max<int64_t>(0, tokens_at(usage, "prompt_tokens") - out.cached - out.cache_written);
  out.output = tokens_at(usage, "completion_tokens");
  out.reasoning =
      std::min(out.output, tokens_at(at(usage, "completion_tokens_details"), "reasoning_tokens"));
  return out;
}

Stop chat_stop(const std::string& reason, const ChatReply& reply) {
  if (reason == "content_filter") return Stop::refusal;
  if (reason == "length") return Stop::length;
  return reply.message.calls.empty() ? Stop::end : Stop::tool;
}

// Returns the text. Some servers send it as a list of parts.
std::string content_of(const Json& message) {
  const Json& content = at(message, "content");
  if (!content.is_array()) return text_at(message, "content");
  std::string out;
  for (const Json& part : content) out += text_at(part, "text");
  return out;
}

// Removes the reasoning that local servers may leave in the text, between <think> marks.
void cut_out_thoughts(std::string& text) {
  constexpr std::string_view kOpen = "<think>", kClose = "</think>";
  if (!trim(text).starts_with(kOpen)) return;
  if (size_t end = text.find(kClose); end != std::string::npos)
    text = std::string(trim(std::string_view(text).substr(end + kClose.size())));
}

class ChatAssembler final : public Assembler {
 public:
  Result<void> take(const SseEvent& event) override {
    if (trim(event.data) == "[DONE]") {
      done_ = true;
      return {};
    }
    CG_TRY(Json chunk, event_object(event));
    if (const Json& error = at(chunk, "error"); !error.is_null()) {
      error_ = error;
      return {};
    }
    for (const char* key : {"id", "model"})
      if (!text_at(chunk, key).empty()) response_[key] = text_at(chunk, key);
    if (at(chunk, "usage").is_object()) response_["usage"] = chunk["usage"];
    const Json& choices = at(chunk, "choices");
    if (choices.is_array() && !choices.empty()) return take_choice(choices[0]);
    return {};
  }
  bool complete() const override { return !reason_.empty(); }
  bool ended() const override { return done_; }
  Json error() const override { return error_; }
  Json response() const override {
    Json out = response_;
    Json message = message_;
    message["tool_calls"] = calls_;
    out["choices"] = Json::array({{{"message", message}, {"finish_reason", reason_}}});
    return out;
  }

 private:
  Result<void> take_choice(const Json& choice) {
    if (std::string reason = text_at(choice, "finish_reason"); !reason.empty()) reason_ = reason;
    const Json& delta = at(choice, "delta");
    if (std::string more = content_of(delta); !more.empty())
      message_["content"] = text_at(message_, "content") + more;
    for (const char* key : {"refusal", "reasoning_content", "reasoning"})
      if (std::string more = text_at(delta, key); !more.empty())
        message_[key] = text_at(message_, key) + more;
    if (const Json& details = at(delta, "reasoning_details"); details.is_array())
      for (const Json& detail : details) message_["reasoning_details"].push_back(detail);
    if (const Json& calls = at(delta, "tool_calls"); calls.is_array())
      for (const Json& call : calls) CG_CHECK(take_call(call));
    return {};
  }

  Result<void> take_call(const Json& delta) {
    const Json& index = at(delta, "index");
    CG_TRY(Json * call, part_at(calls_, index.is_null() ? Json(calls_.size()) : index));
    if (std::string id = text_at(delta, "id"); !id.empty()) (*call)["id"] = id;
    const Json& function = at(delta, "function");
    Json& whole = (*call)["function"];
    if (std::string name = text_at(function, "name"); !name.empty()) whole["name"] = name;
    whole["arguments"] = text_at(whole, "arguments") + text_at(function, "arguments");
    return {};
  }

  Json response_ = Json::object(), message_ = Json::object(), calls_ = Json::array(), error_;
  std::string reason_;
  bool done_ = false;
};

class OpenAiChat final : public Api {
 public:
  std::string path() const override { return "/chat/completions"; }

  std::vector<std::string> headers(const std::string& key) const override {
    if (key.empty()) return {};
    return {"Authorization: Bearer " + key};
  }

  Json encode(const ChatRequest& request, const Shape& shape) const override {
    Json out{{"model", shape.model}};
    if (!request.tools.empty()) out["tools"] = chat_tools(request);
    if (forbids_calls(request, shape)) out["tool_choice"] = "none";
    out["messages"] = chat_messages(request, shape);
    out[limit_field(shape)] = output_limit(request, shape);
    if (request.temperature && shape.temperature && shape.takes("temperature"))
      out["temperature"] = *request.temperature;
    if (!request.effort.empty() && shape.takes("effort")) out["reasoning_effort"] = request.effort;
    if (!request.output_schema.is_null() && shape.takes("schema"))
      out["response_format"] = response_format(request, shape);
    if (shape.provider.cache_key && shape.takes("prompt_cache_key"))
      out["prompt_cache_key"] = prefix_key(request);
    if (shape.provider.asks_for_cost) out["usage"] = {{"include", true}};
    out["stream"] = true;
    if (shape.takes("stream_options")) out["stream_options"] = {{"include_usage", true}};
    return out;
  }

  std::unique_ptr<Assembler> assembler() const override {
    return std::make_unique<ChatAssembler>();
  }

  Result<ChatReply> decode(const Json& response) const override {
    const Json& choices = at(response, "choices");
    if (!choices.is_array() || choices.empty())
      return world_error("the server's answer has no choices");
    const Json& message = at(choices[0], "message");
    ChatReply reply;
    reply.model = text_at(response, "model");
    reply.message.speaker = Speaker::assistant;
    reply.message.text = content_of(message);
    cut_out_thoughts(reply.message.text);
    if (const Json& calls = at(message, "tool_calls"); calls.is_array())
      for (const Json& call : calls) {
        const Json& function = at(call, "function");
        reply.message.calls.push_back(tool_call(text_at(call, "id"), text_at(function, "name"),
                                                text_at(function, "arguments")));
      }
    reply.stop = chat_stop(text_at(choices[0], "finish_reason"), reply);
    if (std::string refusal = text_at(message, "refusal"); !refusal.empty()) {
      reply.stop = Stop::refusal;
      reply.detail = refusal;
    }
    for (const char* field : kReasoningFields)
      if (const Json& value = at(message, field); !value.is_null() && !value.empty())
        reply.message.opaque[field] = value;
    if (reply.message.opaque.is_object()) reply.message.opaque["api"] = kOpenAiChat;
    reply.usage = chat_usage(at(response, "usage"));
    if (const Json& cost = at(at(response, "usage"), "cost"); cost.is_number() && cost >= 0)
      reply.cost_usd = cost.get<double>();
    return reply;
  }
};

}  // namespace

const Api& openai_chat_api() {
  static const OpenAiChat api;
  return api;
}

}  // namespace cutegen::llm
