// SPDX-License-Identifier: Apache-2.0
// Chat: requests to a language model and its replies, independent of the provider.
//
// Contract: requests and replies are plain values. Put constant text first (system, tools, early
// messages), because the text up to a message with `cache_end` costs the full price only once. In
// the next request, repeat a reply's `message` unchanged, because `opaque` holds data that the
// provider needs (the model's reasoning). Several threads may call chat(), which blocks until the
// reply is complete or the Context ends. If the model refuses to answer, chat() returns a reply
// with Stop::refusal, not an error. Errors of chat() have the kind `user` (key, quota, budget,
// unknown model) or `world` (all retries failed).
//
// Example:
//   CG_TRY(auto model, llm::open_model("anthropic:NAME", config));       // llm/models.h
//   CG_TRY(llm::ChatReply r, model->chat(ctx, {.system = rules, .messages = {{.text = "Hi"}}}));
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/context.h"
#include "base/json.h"

namespace cutegen::llm {

struct ToolSpec {
  std::string name, description;
  Json parameters = Json::object();  // JSON schema of an object
};

struct ToolCall {
  std::string id, name;
  Json arguments = Json::object();
  // The text of the model's arguments if this text is not a JSON object; `arguments` is then {}.
  std::string malformed;
};

struct ToolResult {
  std::string call_id, text;
  bool is_error = false;
};

enum class Speaker { user, assistant };

struct Message {
  Speaker speaker = Speaker::user;
  std::string text;
  std::vector<ToolCall> calls;      // only in messages of the assistant
  std::vector<ToolResult> results;  // only in messages of the user, before the text
  // Only in messages of the assistant: data that later requests must return to the provider
  // unchanged.
  Json opaque;
  // Only in messages of the user: true if later requests will repeat everything up to this message.
  bool cache_end = false;
};

struct ChatRequest {
  std::string system;  // the system prompt, which the provider always caches
  std::vector<Message> messages;
  std::vector<ToolSpec> tools;
  // If false, the model must answer without calling tools, and `tools` only explains earlier calls.
  bool may_call = true;
  // If null, the reply is free text. With a schema, the reply's text is JSON that should fit the
  // schema.
  Json output_schema;
  int64_t max_output_tokens = 16384;
  std::optional<double> temperature;  // cutegen omits `temperature` if the model refuses it
  // The reasoning effort: "", "low", "medium", "high", "xhigh" or "max". The effort is a text,
  // because each provider names its own levels.
  std::string effort;
  // Names the request for people, relays and recordings: "coder ask 12 try 1". A resumed run uses
  // the label of a request again. A model never sees the label of a request.
  std::string label;
  // The files of the program that the request is about, only for relays. The run's journal does not
  // contain these files.
  std::map<std::string, std::string> files;
};

struct Usage {
  int64_t input = 0;          // input tokens at full price
  int64_t cached = 0;         // input tokens that the provider read from its cache
  int64_t cache_written = 0;  // input tokens that the provider wrote to its cache
  int64_t output = 0;         // output tokens, including reasoning
  int64_t reasoning = 0;      // the reasoning tokens in `output`
  // True if cutegen estimated the counts (llm/tokens.h), because the provider did not report them.
  bool estimated = false;
  int64_t all_input() const { return input + cached + cache_written; }
  int64_t total() const { return all_input() + output; }
  Usage& operator+=(const Usage& o);
};

// Says why the model stopped. `cut` means that the answer broke off; the received part still has a
// cost. MeteredModel never returns `cut`: it asks again, and returns an error if too many answers
// broke off.
enum class Stop { end, tool, length, refusal, cut };

struct ChatReply {
  Message message;
  Stop stop = Stop::end;
  std::string detail;  // if `stop` is refusal or cut, the reason in words
  Usage usage;
  std::optional<double> cost_usd;  // empty if the model's price is unknown
  std::string model;               // the provider's name of the model
};

class ChatModel {
 public:
  virtual ~ChatModel() = default;
  virtual Result<ChatReply> chat(const Context& ctx, const ChatRequest& request) = 0;
  // Returns the model's name as the user gave it, such as "anthropic:NAME".
  virtual const std::string& name() const = 0;
  // Returns whether the model can call tools without further setup: true for a relay, false for a
  // local server, which the user must configure first.
  virtual bool has_tools() const = 0;
  // Returns the highest possible cost of the call: empty if the price is unknown, and zero if the
  // model is free.
  virtual std::optional<double> most_usd(const ChatRequest& request) const = 0;
};

}  // namespace cutegen::llm
