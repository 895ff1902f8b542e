// SPDX-License-Identifier: Apache-2.0
// The Anthropic messages API: content in blocks, signed thinking that must be sent back unchanged,
// and explicit cache breakpoints.
#include <algorithm>

#include "base/text.h"
#include "llm/api_json.h"

namespace cutegen::llm {
namespace {

constexpr const char* kAnthropic = "anthropic";
// The API allows four cache breakpoints. The system text and the newest message take one each.
constexpr size_t kUserBreakpoints = 2;
constexpr int64_t kLeastThinking = 1024;

Json text_block(const std::string& text) {
  return {{"type", "text"}, {"text", text}};
}

Json ephemeral() {
  return {{"type", "ephemeral"}};
}

Json assistant_blocks(const Message& message) {
  if (const Json& content = opaque_of(message, kAnthropic, "content"); content.is_array())
    return content;
  Json out = Json::array();
  if (!message.text.empty()) out.push_back(text_block(message.text));
  for (const ToolCall& call : message.calls)
    out.push_back(
        {{"type", "tool_use"}, {"id", call.id}, {"name", call.name}, {"input", call.arguments}});
  return out;
}

Json user_blocks(const Message& message) {
  Json out = Json::array();
  for (const ToolResult& result : message.results) {
    Json block{{"type", "tool_result"}, {"tool_use_id", result.call_id}};
    block["content"] = result.text;
    if (result.is_error) block["is_error"] = true;
    out.push_back(block);
  }
  if (!message.text.empty()) out.push_back(text_block(message.text));
  return out;
}

// Finds the messages that end a cached prefix: the last marked ones, and the newest.
std::vector<size_t> breakpoints(const std::vector<Message>& messages) {
  std::vector<size_t> out;
  for (size_t i = messages.size(); i-- > 0 && out.size() < kUserBreakpoints;)
    if (messages[i].cache_end && messages[i].speaker == Speaker::user) out.push_back(i);
  if (!messages.empty() && messages.back().speaker == Speaker::user)
    out.push_back(messages.size() - 1);
  return out;
}

Json anthropic_messages(const ChatRequest& request, const Shape& shape) {
  std::vector<size_t> cached;
  if (shape.takes("cache_control")) cached = breakpoints(request.messages);
  Json out = Json::array();
  for (size_t i = 0; i < request.messages.size(); ++i) {
    const Message& message = request.messages[i];
    bool user = message.speaker == Speaker::user;
    Json blocks = user ? user_blocks(message) : assistant_blocks(message);
    if (blocks.empty()) continue;  // the API refuses empty text
    if (std::find(cached.begin(), cached.end(), i) != cached.end())
      blocks.back()["cache_control"] = ephemeral();
    out.push_back({{"role", user ? "user" : "assistant"}, {"content", blocks}});
  }
  return out;
}

Json anthropic_tools(const ChatRequest& request) {
  Json out = Json::array();
  for (const ToolSpec& tool : request.tools)
    out.push_back({{"name", tool.name},
                   {"description", tool.description},
                   {"input_schema", tool.parameters}});
  return out;
}

int64_t thinking_budget(const std::string& effort, int64_t limit) {
  int64_t wanted = effort == "low" ? 2048 : effort == "medium" ? 8192 : 16384;
  return std::min(wanted, limit / 2);
}

// Returns true if the model will think. A model that thinks accepts no temperature.
bool put_thinking(Json& out, const ChatRequest& request, const Shape& shape, int64_t limit) {
  if (request.effort.empty() || !shape.takes("thinking")) return false;
  if (shape.thinking != Thinking::budget) {
    out["thinking"] = {{"type", "adaptive"}};
    return true;
  }
  int64_t budget = thinking_budget(request.effort, limit);
  if (budget < kLeastThinking) return false;
  out["thinking"] = {{"type", "enabled"}, {"budget_tokens", budget}};
  return true;
}

Stop anthropic_stop(const std::string& reason, const ChatReply& reply) {
  if (reason == "refusal") return Stop::refusal;
  if (reason == "max_tokens" || reason == "model_context_window_exceeded") return Stop::length;
  return reply.message.calls.empty() ? Stop::end : Stop::tool;
}

Usage anthropic_usage(const Json& usage) {
  Usage out;
  out.input = tokens_at(usage, "input_tokens");
  out.cached = tokens_at(usage, "cache_read_input_tokens");
  out.cache_written = tokens_at(usage, "cache_creation_input_tokens");
  out.output = tokens_at(usage, "output_tokens");
  out.reasoning =
      std::min(out.output, tokens_at(at(usage, "output_tokens_details"), "thinking_tokens"));
  return out;
}

class MessageAssembler final : public Assembler {
 public:
  Result<void> take(const SseEvent& event) override {
    CG_TRY(Json data, event_object(event));
    std::string type = text_at(data, "type");
    if (type == "error") {
      error_ = at(data, "error").is_null() ? data : at(data, "error");
    } else if (type == "message_start") {
      if (const Json& message = at(data, "message"); message.is_object()) message_ = message;
    } else if (type == "content_block_start") {
      CG_TRY(Json * block, part_at(blocks_, at(data, "index")));
      *block = at(data, "content_block");
      if (!block->is_object()) *block = Json::object();
    } else if (type == "content_block_delta") {
      CG_TRY(Json * block, part_at(blocks_, at(data, "index")));
      take_delta(*block, at(data, "delta"));
    } else if (type == "message_delta") {
      if (std::string reason = text_at(at(data, "delta"), "stop_reason"); !reason.empty())
        message_["stop_reason"] = reason;
      if (const Json& usage = at(data, "usage"); usage.is_object()) take_usage(usage);
    } else if (type == "message_stop") {
      ended_ = true;
    }
    return {};
  }
  bool complete() const override { return !text_at(message_, "stop_reason").empty(); }
  bool ended() const override { return ended_ || !error_.is_null(); }
  Json error() const override { return error_; }
  Json response() const override {
    Json out = message_;
    Json blocks = blocks_;
    for (Json& block : blocks)
      if (block.contains("partial_json")) {  // the assembled input of a tool
        block["input"] = block["partial_json"];
        block.erase("partial_json");
      }
    out["content"] = blocks;
    return out;
  }

 private:
  static void take_delta(Json& block, const Json& delta) {
    if (text_at(delta, "type") == "input_json_delta") {
      block["partial_json"] = text_at(block, "partial_json") + text_at(delta, "partial_json");
      return;
    }
    for (const char* key : {"text", "thinking", "signature"})
      if (std::string more = text_at(delta, key); !more.empty())
        block[key] = text_at(block, key) + more;
  }

  // Counts are cumulative. If a later event omits a count, the earlier one stays.
  void take_usage(const Json& usage) {
    if (!at(message_, "usage").is_object()) message_["usage"] = Json::object();
    for (const auto& [key, value] : usage.items())
      if (!value.is_null()) message_["usage"][key] = value;
  }

  Json message_ = Json::object(), blocks_ = Json::array(), error_;
  bool ended_ = false;
};

// Reads a tool call from its block. Makes the block's input an object, because the API requires
// that when the block is sent back.
ToolCall read_tool_use(Json& block) {
  const Json& input = at(block, "input");
  ToolCall call = tool_call(text_at(block, "id"), text_at(block, "name"),
                            input.is_string() ? input.get<std::string>() : std::string());
  if (input.is_object()) call.arguments = input;
  block["input"] = call.arguments;
  return call;
}

class Anthropic final : public Api {
 public:
  std::string path() const override { return "/messages"; }

  std::vector<std::string> headers(const std::string& key) const override {
    std::vector<std::string> out{"anthropic-version: 2023-06-01"};
    if (!key.empty()) out.push_back("x-api-key: " + key);
    return out;
  }

  Json encode(const ChatRequest& request, const Shape& shape) const override {
    int64_t limit = output_limit(request, shape);
    bool cache = shape.takes("cache_control");
    Json out{{"model", shape.model}, {"max_tokens", limit}};
    if (!request.tools.empty()) out["tools"] = anthropic_tools(request);
    if (forbids_calls(request, shape)) out["tool_choice"] = {{"type", "none"}};
    if (std::string system = system_text(request, shape, true); !system.empty()) {
      Json block = text_block(system);
      if (cache) block["cache_control"] = ephemeral();
      out["system"] = Json::array({block});
    } else if (cache && !request.tools.empty()) {
      out["tools"].back()["cache_control"] = ephemeral();
    }
    out["messages"] = anthropic_messages(request, shape);
    bool thinks = put_thinking(out, request, shape, limit);
    if (request.temperature && shape.temperature && shape.takes("temperature") && !thinks)
      out["temperature"] = *request.temperature;
    Json config = Json::object();
    if (thinks && shape.thinking != Thinking::budget && shape.takes("effort"))
      config["effort"] = request.effort;
    if (!request.output_schema.is_null() && shape.takes("schema"))
      config["format"] = {{"type", "json_schema"}, {"schema", request.output_schema}};
    if (!config.empty()) out["output_config"] = config;
    out["stream"] = true;
    return out;
  }

  std::unique_ptr<Assembler> assembler() const override {
    return std::make_unique<MessageAssembler>();
  }

  Result<ChatReply> decode(const Json& response) const override {
    Json content = at(response, "content");
    if (!content.is_array()) return world_error("the server's answer has no content");
    ChatReply reply;
    reply.model = text_at(response, "model");
    reply.message.speaker = Speaker::assistant;
    bool thought = false;
    Json kept = Json::array();
    for (Json& block : content) {
      std::string type = text_at(block, "type");
      if (type == "tool_use") reply.message.calls.push_back(read_tool_use(block));
      if (type == "text") reply.message.text += text_at(block, "text");
      thought |= type == "thinking" || type == "redacted_thinking";
      if (type != "text" || !text_at(block, "text").empty()) kept.push_back(block);
    }
    if (thought) reply.message.opaque = {{"api", kAnthropic}, {"content", kept}};
    reply.stop = anthropic_stop(text_at(response, "stop_reason"), reply);
    if (reply.stop == Stop::refusal)
      reply.detail = text_at(at(response, "stop_details"), "explanation");
    reply.usage = anthropic_usage(at(response, "usage"));
    return reply;
  }
};

}  // namespace

const Api& anthropic_api() {
  static const Anthropic api;
  return api;
}

}  // namespace cutegen::llm
