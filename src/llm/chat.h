// SPDX-License-Identifier: Apache-2.0
// Chat: questions to a language model and its answers, independent of the provider.
//
// Contract: plain values. Put the constant part first (system, tools, early messages): the text up
// to a message with `cache_end` costs the full price only once. Return a reply's `message`
// unchanged as the next assistant message, because `opaque` holds data that the provider needs back
// (its reasoning). Several threads may call chat(). It blocks until the reply is complete, or ends
// early with its Context. A refusal is a reply (`stop`), not an error. Errors: `user` (key, quota,
// budget, unknown model) and `world` (after all retries).
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
  // If the model sent no JSON object: the text that it sent; `arguments` is then {}.
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
  std::vector<ToolCall> calls;      // assistant only
  std::vector<ToolResult> results;  // user only; they precede the text
  Json opaque;                      // assistant only: the provider's own form, to return unchanged
  // User only: later requests will repeat everything up to this message.
  bool cache_end = false;
};

struct ChatRequest {
  std::string system;  // always part of the cached prefix
  std::vector<Message> messages;
  std::vector<ToolSpec> tools;
  // false: `tools` only explains earlier calls, and the model must answer now.
  bool may_call = true;
  // null: free text. Otherwise the reply's text is JSON that should fit this schema.
  Json output_schema;
  int64_t max_output_tokens = 16384;
  std::optional<double> temperature;  // omitted if the model refuses it
  // Reasoning effort: "", "low", "medium", "high", "xhigh" or "max". Text, because the provider
  // names its levels.
  std::string effort;
  // Names the question: "coder ask 12 try 1". It keeps its label when the run is resumed. For
  // people, relays and recordings; never sent to a model.
  std::string label;
  // The program to change, as complete files. For relays; never sent to a model or recorded.
  std::map<std::string, std::string> files;
};

struct Usage {
  int64_t input = 0;          // tokens read at full price
  int64_t cached = 0;         // read from the provider's cache
  int64_t cache_written = 0;  // read and put into the cache
  int64_t output = 0;         // written, including reasoning
  int64_t reasoning = 0;      // the hidden part of `output`
  // Whether the counts are estimates (llm/tokens.h) instead of the provider's.
  bool estimated = false;
  int64_t all_input() const { return input + cached + cache_written; }
  int64_t total() const { return all_input() + output; }
  Usage& operator+=(const Usage& o);
};

// `cut`: the stream broke off, and the received part was charged. MeteredModel then asks again, so
// only direct users of a client see this value.
enum class Stop { end, tool, length, refusal, cut };

struct ChatReply {
  Message message;
  Stop stop = Stop::end;
  std::string detail;  // the reason of a refusal or a cut, for people
  Usage usage;
  std::optional<double> cost_usd;  // empty: the model has no known price
  std::string model;               // the provider's name for the model
};

class ChatModel {
 public:
  virtual ~ChatModel() = default;
  virtual Result<ChatReply> chat(const Context& ctx, const ChatRequest& request) = 0;
  // "anthropic:NAME", as the user named it.
  virtual const std::string& name() const = 0;
  // Whether the model can call tools without further setup. A relay can; a local server must be
  // configured.
  virtual bool has_tools() const = 0;
  // The highest possible cost of the call. Empty if the price is unknown, zero if the model is
  // free.
  virtual std::optional<double> most_usd(const ChatRequest& request) const = 0;
};

}  // namespace cutegen::llm
