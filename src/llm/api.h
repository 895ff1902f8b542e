// SPDX-License-Identifier: Apache-2.0
// Api: one wire format. It writes requests and reads answers, whole or streamed.
//
// Contract: encode() depends only on its arguments, so equal prefixes give equal bytes, which
// providers cache. An Assembler builds, from the events of a stream, the JSON of the whole answer;
// decode() reads that JSON. All input is hostile: any field may be missing, or of any type or
// length.
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

// What a request must respect about the model and its provider.
struct Shape {
  std::string model;
  Provider provider{};
  bool temperature = true;
  Thinking thinking = Thinking::unknown;
  std::optional<int64_t> max_output_tokens;
  // The parameters that the server has refused: temperature, effort, thinking, schema,
  // stream_options, max_tokens_field, prompt_cache_key, cache_control, include, tool_choice.
  std::set<std::string> refused;
  bool takes(const std::string& what) const { return refused.count(what) == 0; }
};

class Assembler {
 public:
  virtual ~Assembler() = default;
  // An error if it cannot read the event.
  virtual Result<void> take(const SseEvent& event) = 0;
  // The stream has given its stop reason.
  virtual bool complete() const = 0;
  // The stream has ended.
  virtual bool ended() const = 0;
  // The answer so far, in the form of a whole answer.
  virtual Json response() const = 0;
  // The error that the server sent in the stream; null if none.
  virtual Json error() const = 0;
};

class Api {
 public:
  virtual ~Api() = default;
  virtual std::string path() const = 0;
  virtual std::vector<std::string> headers(const std::string& key) const = 0;
  virtual Json encode(const ChatRequest& request, const Shape& shape) const = 0;
  virtual std::unique_ptr<Assembler> assembler() const = 0;
  // If the answer reports no usage, it is all zero and the caller estimates it.
  virtual Result<ChatReply> decode(const Json& response) const = 0;
};

const Api& api_of(ApiKind kind);
const Api& openai_chat_api();
const Api& openai_responses_api();
const Api& anthropic_api();

}  // namespace cutegen::llm
