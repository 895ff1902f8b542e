// SPDX-License-Identifier: Apache-2.0
// Api: encodes requests and decodes answers for one kind of HTTP API of model servers.
//
// Contract: encode() depends only on its arguments. The bodies of two requests that begin with the
// same messages therefore begin with the same bytes, which providers can cache. For a streamed
// answer, an Assembler builds the JSON of the whole answer from the events of the stream, and
// decode() reads this JSON. All input from the server may be hostile: any field may be missing, or
// have any type or length.
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

// Describes the properties of the model and its provider that encode() must respect.
struct Shape {
  std::string model;
  Provider provider{};
  bool temperature = true;
  Thinking thinking = Thinking::unknown;
  std::optional<int64_t> max_output_tokens;
  // The parameters that the server has refused so far: temperature, effort, thinking, schema,
  // stream_options, max_tokens_field, prompt_cache_key, cache_control, include or tool_choice.
  std::set<std::string> refused;
  bool takes(const std::string& what) const { return refused.count(what) == 0; }
};

class Assembler {
 public:
  virtual ~Assembler() = default;
  // Adds an event of the stream. Returns an error if take() cannot read the event.
  virtual Result<void> take(const SseEvent& event) = 0;
  // Returns whether the server has sent the reason why the model stopped.
  virtual bool complete() const = 0;
  // Returns whether the stream has ended.
  virtual bool ended() const = 0;
  // Returns the answer so far, in the same JSON form as an answer that is not streamed.
  virtual Json response() const = 0;
  // Returns the error that the server sent in the stream; null if it sent none.
  virtual Json error() const = 0;
};

class Api {
 public:
  virtual ~Api() = default;
  virtual std::string path() const = 0;
  virtual std::vector<std::string> headers(const std::string& key) const = 0;
  virtual Json encode(const ChatRequest& request, const Shape& shape) const = 0;
  virtual std::unique_ptr<Assembler> assembler() const = 0;
  // Reads an answer of the server. If the server reported no token counts, `usage` is all zero, and
  // the caller must estimate the counts.
  virtual Result<ChatReply> decode(const Json& response) const = 0;
};

const Api& api_of(ApiKind kind);
const Api& openai_chat_api();
const Api& openai_responses_api();
const Api& anthropic_api();

}  // namespace cutegen::llm
