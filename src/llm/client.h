// SPDX-License-Identifier: Apache-2.0
// HttpModel: a model behind one of the APIs. It handles retries, quirks, prices and limits.
//
// Contract: chat() as in llm/chat.h. If the server does not answer or refuses temporarily,
// HttpModel waits and sends the request again. The wait grows, unless the server asks for a certain
// wait. Once the server refuses a parameter, HttpModel omits it. An answer that broke off in the
// middle is a reply with Stop::cut and its cost. The key never appears in an error or a reply.
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
  ModelConfig config;  // waits and retries
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
  // Omits a parameter from now on. False if the refused request did not contain it.
  bool leave_out(const std::string& parameter, const Shape& used);

  HttpModelOptions options_;
  const Api& api_;
  Http http_;
  std::mutex mutex_;
  Shape shape_;
};

// The wait before retry `n` (from 0): what the server asks for, else first_wait doubled n times and
// shortened by a random share. Empty if the server asks for more than longest_wait.
std::optional<std::chrono::milliseconds> retry_wait(int n,
                                                    std::optional<std::chrono::milliseconds> asked,
                                                    const ModelConfig& config);
// Waits, or returns how the Context ended.
Result<void> wait_for(const Context& ctx, Nanoseconds time, const std::string& what);

}  // namespace cutegen::llm
