// SPDX-License-Identifier: Apache-2.0
// MeteredModel: a model whose every call is reserved, recorded and charged.
//
// Contract: `call_started` is recorded before a request is sent, `call_ended` when the reply is
// there; both hold the whole exchange, so a run's events are its recording (llm/replay.h). A call
// that would break the budget is not sent: `call_refused` is recorded and the error is_budget_end.
// A reply that was cut is charged and asked for again, at most kCutRetries times. What cannot be
// recorded is not sent. As thread-safe as the sink.
//
// Example: MeteredModel model(*client, ledger, journal_sink); model.chat(ctx, request);
#pragma once

#include "llm/ledger.h"

namespace cutegen::llm {

inline constexpr int kCutRetries = 3;

// Where events go; the engine's sink commits before it returns.
class CallSink {
 public:
  virtual ~CallSink() = default;
  // type: "call_started", "call_ended" or "call_refused".
  [[nodiscard]] virtual Result<void> record(const std::string& type, const Json& data) = 0;
};

class MeteredModel final : public ChatModel {
 public:
  MeteredModel(ChatModel& inner, Ledger& ledger, CallSink& sink)
      : inner_(inner), ledger_(ledger), sink_(sink) {}

  [[nodiscard]] Result<ChatReply> chat(const Context& ctx, const ChatRequest& request) override;
  [[nodiscard]] const std::string& name() const override { return inner_.name(); }
  [[nodiscard]] bool has_tools() const override { return inner_.has_tools(); }
  [[nodiscard]] std::optional<double> most_usd(const ChatRequest& request) const override {
    return inner_.most_usd(request);
  }

 private:
  [[nodiscard]] Result<ChatReply> call_once(const Context& ctx, const ChatRequest& request);
  ChatModel& inner_;
  Ledger& ledger_;
  CallSink& sink_;
};

}  // namespace cutegen::llm
