// SPDX-License-Identifier: Apache-2.0
// The OpenAI responses API without state on the server: every output item is sent back unchanged.
#include "llm/api_json.h"

namespace cutegen::llm {
namespace {

constexpr const char* kOpenAiResponses = "openai-responses";

Json text_item(const char* role, const char* type, const std::string& text) {
  return {{"type", "message"},
          {"role", role},
          {"content", Json::array({{{"type", type}, {"text", text}}})}};
}

void append_assistant(Json& out, const Message& message) {
  if (const Json& items = opaque_of(message, kOpenAiResponses, "items"); items.is_array()) {
    for (const Json& item : items) out.push_back(item);
    return;
  }
  if (!message.text.empty()) out.push_back(text_item("assistant", "output_text", message.text));
  for (const ToolCall& call : message.calls)
    out.push_back(
        {{"type", "function_call"},
         {"call_id", call.id},
         {"name", call.name},
         {"arguments", call.malformed.empty() ? dump_json(call.arguments) : call.malformed}});
}

void append_response_user(Json& out, const Message& message) {
  for (const ToolResult& result : message.results)
    out.push_back({{"type", "function_call_output"},
                   {"call_id", result.call_id},
                   {"output", (result.is_error ? "Error: " : "") + result.text}});
  if (!message.text.empty() || message.results.empty())
    out.push_back(text_item("user", "input_text", message.text));
}

Json input_json(const ChatRequest& request) {
  Json out = Json::array();
  for (const Message& message : request.messages) {
    if (message.speaker == Speaker::user)
      append_response_user(out, message);
    else
      append_assistant(out, message);
  }
  return out;
}

Json response_tools(const ChatRequest& request) {
  Json out = Json::array();
  for (const ToolSpec& tool : request.tools)
    out.push_back({{"type", "function"},
                   {"name", tool.name},
                   {"description", tool.description},
                   {"parameters", tool.parameters},
                   {"strict", is_closed_schema(tool.parameters)}});
  return out;
}

Usage response_usage(const Json& usage) {
  Usage out;
  const Json& input = at(usage, "input_tokens_details");
  out.cached = tokens_at(input, "cached_tokens");
  out.cache_written = tokens_at(input, "cache_write_tokens");
  out.input =
      std::max<int64_t>(0, tokens_at(usage, "input_tokens") - out.cached - out.cache_written);
  out.output = tokens_at(usage, "output_tokens");
  out.reasoning =
      std::min(out.output, tokens_at(at(usage, "output_tokens_details"), "reasoning_tokens"));
  return out;
}

void read_message(const Json& item, ChatReply& reply) {
  const Json& content = at(item, "content");
  if (!content.is_array()) return;
  for (const Json& part : content) {
    reply.message.text += text_at(part, "text");
    if (text_at(part, "type") != "refusal") continue;
    reply.stop = Stop::refusal;
    reply.detail += text_at(part, "refusal");
  }
}

class ResponsesAssembler final : public Assembler {
 public:
  Result<void> take(const SseEvent& event) override {
    if (event.data == "[DONE]") return {};
    CG_TRY(Json data, event_object(event));
    std::string type = text_at(data, "type");
    if (type.empty()) type = event.name;
    if (type == "error" || type == "response.failed") {
      const Json& inner = type == "error" ? data : at(data, "response");
      error_ = at(inner, "error").is_null() ? data : at(inner, "error");
    } else if (type == "response.completed" || type == "response.incomplete") {
      whole_ = at(data, "response");
    } else if (type == "response.created") {
      model_ = text_at(at(data, "response"), "model");
    } else if (type == "response.output_item.done") {
      CG_TRY(Json * item, part_at(items_, at(data, "output_index")));
      *item = at(data, "item");
      partial_.clear();
    } else if (type == "response.output_text.delta") {
      partial_ += text_at(data, "delta");
    }
    return {};
  }
  bool complete() const override { return whole_.is_object(); }
  bool ended() const override { return complete() || !error_.is_null(); }
  Json error() const override { return error_; }
  Json response() const override {
    Json out = whole_.is_object() ? whole_ : Json{{"model", model_}};
    Json output = at(out, "output");
    if (!output.is_array() || output.empty()) output = items_;
    if (!complete() && !partial_.empty())
      output.push_back(text_item("assistant", "output_text", partial_));
    out["output"] = output;
    return out;
  }

 private:
  Json whole_, items_ = Json::array(), error_;
  std::string model_, partial_;
};

class OpenAiResponses final : public Api {
 public:
  std::string path() const override { return "/responses"; }

  std::vector<std::string> headers(const std::string& key) const override {
    if (key.empty()) return {};
    return {"Authorization: Bearer " + key};
  }

  Json encode(const ChatRequest& request, const Shape& shape) const override {
    Json out{{"model", shape.model}};
    if (std::string system = system_text(request, shape, true); !system.empty())
      out["instructions"] = system;
    if (!request.tools.empty()) out["tools"] = response_tools(request);
    if (forbids_calls(request, shape)) out["tool_choice"] = "none";
    out["input"] = input_json(request);
    out["max_output_tokens"] = output_limit(request, shape);
    if (request.temperature && shape.temperature && shape.takes("temperature"))
      out["temperature"] = *request.temperature;
    if (!request.effort.empty() && shape.takes("effort"))
      out["reasoning"] = {{"effort", request.effort}};
    if (!request.output_schema.is_null() && shape.takes("schema"))
      out["text"] = {{"format",
                      {{"type", "json_schema"},
                       {"name", "answer"},
                       {"schema", request.output_schema},
                       {"strict", is_closed_schema(request.output_schema)}}}};
    if (shape.provider.cache_key && shape.takes("prompt_cache_key"))
      out["prompt_cache_key"] = prefix_key(request);
    out["store"] = false;
    if (shape.takes("include")) out["include"] = Json::array({"reasoning.encrypted_content"});
    out["stream"] = true;
    return out;
  }

  std::unique_ptr<Assembler> assembler() const override {
    return std::make_unique<ResponsesAssembler>();
  }

  Result<ChatReply> decode(const Json& response) const override {
    const Json& output = at(response, "output");
    if (!output.is_array()) return world_error("the server's answer has no output");
    ChatReply reply;
    reply.model = text_at(response, "model");
    reply.message.speaker = Speaker::assistant;
    for (const Json& item : output) {
      if (text_at(item, "type") == "message") read_message(item, reply);
      if (text_at(item, "type") != "function_call") continue;
      reply.message.calls.push_back(
          tool_call(text_at(item, "call_id"), text_at(item, "name"), text_at(item, "arguments")));
    }
    if (!output.empty()) reply.message.opaque = {{"api", kOpenAiResponses}, {"items", output}};
    if (reply.stop != Stop::refusal && !reply.message.calls.empty()) reply.stop = Stop::tool;
    if (text_at(response, "status") == "incomplete") {
      std::string reason = text_at(at(response, "incomplete_details"), "reason");
      reply.stop = reason == "content_filter" ? Stop::refusal : Stop::length;
    }
    reply.usage = response_usage(at(response, "usage"));
    return reply;
  }
};

}  // namespace

const Api& openai_responses_api() {
  static const OpenAiResponses api;
  return api;
}

}  // namespace cutegen::llm
