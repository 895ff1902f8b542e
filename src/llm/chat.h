// SPDX-License-Identifier: Apache-2.0
// Chat: what a language model is asked and what it answers, whoever the provider is.
//
// Contract: plain values; every client reads and writes these alone. Put what stays the same first
// (system, tools, early messages): a prefix that ends in `cache_end` is paid once and cheap later.
// Give a reply's `message` back unchanged as the next assistant message: `opaque` holds what the
// provider wants to see again (its reasoning). chat() may be called from several threads; it blocks
// until the reply is whole, and ends early with its Context. A refusal is a reply (`stop`), no
// error. Errors: `user` (key, quota, budget, unknown model), `world` (after all retries).
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
  std::string malformed;  // what came instead of a JSON object; `arguments` is {} then
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
  std::vector<ToolResult> results;  // user only; they stand before the text
  Json opaque;                      // assistant only: the provider's own form, given back unchanged
  bool cache_end = false;           // user only: the prefix up to here will be sent again
};

struct ChatRequest {
  std::string system;  // always part of the cached prefix
  std::vector<Message> messages;
  std::vector<ToolSpec> tools;
  bool may_call = true;  // false: the tools stand for what was called before; now comes the answer
  Json output_schema;    // null: free text; else the reply's text is JSON that should fit it
  int64_t max_output_tokens = 16384;
  std::optional<double> temperature;  // left out where the model refuses it
  std::string effort;                 // of reasoning: "", "low", "medium", "high", "xhigh" or "max"
  // Who asks and when, "coder ask 12 try 1": the same question of a run has the same label after a
  // resume. For people, relays and recordings; never sent.
  std::string label;
  // The program that is asked about, file by file and whole. For relays; never sent nor recorded.
  std::map<std::string, std::string> files;
};

struct Usage {
  int64_t input = 0;          // tokens read at full price
  int64_t cached = 0;         // read from the provider's cache
  int64_t cache_written = 0;  // read and put into the cache
  int64_t output = 0;         // written, reasoning included
  int64_t reasoning = 0;      // the part of `output` that nobody sees
  bool estimated = false;     // the provider did not say; counted by llm/tokens.h
  [[nodiscard]] int64_t all_input() const { return input + cached + cache_written; }
  [[nodiscard]] int64_t total() const { return all_input() + output; }
  Usage& operator+=(const Usage& o);
};

// `cut`: the stream broke after it began, and what had come was paid for. MeteredModel asks again;
// only those who call a client directly see it.
enum class Stop { end, tool, length, refusal, cut };

struct ChatReply {
  Message message;
  Stop stop = Stop::end;
  std::string detail;  // of a refusal or a cut: the reason, for people
  Usage usage;
  std::optional<double> cost_usd;  // empty: no price is known for the model
  std::string model;               // as the provider names it
};

class ChatModel {
 public:
  virtual ~ChatModel() = default;
  [[nodiscard]] virtual Result<ChatReply> chat(const Context& ctx, const ChatRequest& request) = 0;
  // "anthropic:NAME": how the user named it.
  [[nodiscard]] virtual const std::string& name() const = 0;
  // Whether it can call tools without more ado (a relay can; local servers must be set up for it).
  [[nodiscard]] virtual bool has_tools() const = 0;
  // The most that a call can cost; empty when no price is known, zero for what is free.
  [[nodiscard]] virtual std::optional<double> most_usd(const ChatRequest& request) const = 0;
};

}  // namespace cutegen::llm
