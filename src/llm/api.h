// SPDX-License-Identifier: Apache-2.0
// Api: one wire format: how a request is written, and how answers, whole or streamed, are read.
//
// Contract: encode() depends on its arguments alone, so that equal beginnings give equal bytes
// (what providers cache). An Assembler builds, from events, the JSON that the server would have
// sent whole; decode() reads that JSON. Everything read is hostile: of any type, any length, or
// missing.
//
// Example: Json body = api.encode(request, shape); auto reply = api.decode(response);
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "llm/chat.h"
#include "llm/providers.h"
#include "llm/sse.h"

namespace cutegen::llm {

// What is known of a model at a provider when a request is written.
struct Shape {
  std::string model;
  Provider provider{};
  bool temperature = true;
  std::string thinking;  // "adaptive", "budget" or ""
  std::optional<int64_t> max_output_tokens;
  // What the server has refused: temperature, effort, thinking, schema, stream_options,
  // max_tokens_field, prompt_cache_key, cache_control, include, tool_choice.
  std::set<std::string> refused;
  [[nodiscard]] bool takes(const std::string& what) const { return refused.count(what) == 0; }
};

class Assembler {
 public:
  virtual ~Assembler() = default;
  // Error: the event cannot be read.
  [[nodiscard]] virtual Result<void> take(const SseEvent& event) = 0;
  // The reason for the end of the answer has come.
  [[nodiscard]] virtual bool complete() const = 0;
  // Nothing more will come.
  [[nodiscard]] virtual bool ended() const = 0;
  // What has come so far, in the form of a whole answer.
  [[nodiscard]] virtual Json response() const = 0;
  // The error that the server put into the stream; null if none.
  [[nodiscard]] virtual Json error() const = 0;
};

class Api {
 public:
  virtual ~Api() = default;
  [[nodiscard]] virtual std::string path() const = 0;
  [[nodiscard]] virtual std::vector<std::string> headers(const std::string& key) const = 0;
  [[nodiscard]] virtual Json encode(const ChatRequest& request, const Shape& shape) const = 0;
  [[nodiscard]] virtual std::unique_ptr<Assembler> assembler() const = 0;
  // Usage is estimated() by the caller where the answer has none (all zero).
  [[nodiscard]] virtual Result<ChatReply> decode(const Json& response) const = 0;
};

[[nodiscard]] const Api& api_of(ApiKind kind);
[[nodiscard]] const Api& openai_chat_api();
[[nodiscard]] const Api& openai_responses_api();
[[nodiscard]] const Api& anthropic_api();

}  // namespace cutegen::llm
