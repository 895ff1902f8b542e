// SPDX-License-Identifier: Apache-2.0
// HttpModel: asks a model on a server with one of the supported HTTP APIs, repeats failed requests,
// and computes costs.
//
// Contract: chat() behaves as llm/chat.h says. If the server does not answer or is temporarily
// unavailable, HttpModel waits and sends the request again. The server may demand the length of a
// wait; otherwise, retry_wait() chooses it. All later requests omit a parameter that the server
// refused. If an answer breaks off in the middle, chat() returns a reply with Stop::cut and the
// cost so far. The API key never appears in an error or a reply.
//
// Example: HttpModel model(options); CG_TRY(ChatReply r, model.chat(ctx, request));
#pragma once

#include <mutex>
#include <optional>
#include <string>

#include "llm/answer.h"
#include "llm/api.h"
#include "llm/http.h"
#include "llm/models.h"
#include "llm/prices.h"

namespace cutegen::llm {

struct HttpModelOptions {
  std::string name;  // the model's name as the user gave it
  Provider provider{};
  std::string model, url, key;
  std::optional<PriceEntry> price;
  bool is_free = false;
  ModelConfig config;  // sets waits and retries
};

class HttpModel final : public ChatModel {
 public:
  explicit HttpModel(HttpModelOptions options);
  Result<ChatReply> chat(const Context& ctx, const ChatRequest& request) override;
  const std::string& name() const override { return options_.name; }
  bool has_tools() const override { return options_.provider.tools; }
  std::optional<double> most_usd(const ChatRequest& request) const override;

 private:
  Attempt attempt(const Context& ctx, const ChatRequest& request, const Shape& shape);
  Shape shape();
  // Omits a parameter in all later requests. Returns false if the refused request did not contain
  // the parameter.
  bool leave_out(const std::string& parameter, const Shape& used);

  HttpModelOptions options_;
  const Api& api_;
  Http http_;
  std::mutex mutex_;
  Shape shape_;
};

// Returns the wait before retry number `n` (from 0). If the server demands a wait, retry_wait()
// returns this wait, or empty if it exceeds longest_wait. If the server demands no wait, it returns
// first_wait, doubled n times up to 8 s, and shortened by a random share.
std::optional<std::chrono::milliseconds> retry_wait(int n,
                                                    std::optional<std::chrono::milliseconds> asked,
                                                    const ModelConfig& config);
// Waits for `time`. Returns an error if the Context was cancelled or timed out.
Result<void> wait_for(const Context& ctx, Nanoseconds time, const std::string& what);

}  // namespace cutegen::llm
