// SPDX-License-Identifier: Apache-2.0
// MeteredModel: a model that reserves, records and charges every call.
//
// Contract: records `call_started` before it sends a request and `call_ended` after the reply. Both
// hold the whole exchange, so a run's events are its recording (llm/replay.h). If a call would
// exceed the budget, MeteredModel records `call_refused` instead of sending it and returns an error
// with is_budget_end(). It charges a reply that was cut and asks again, at most kCutRetries times.
// If it cannot record a call, it does not send it. It is as thread-safe as the sink.
//
// Example: MeteredModel model(*client, ledger, journal_sink); model.chat(ctx, request);
#pragma once

#include "llm/ledger.h"

namespace cutegen::llm {

inline constexpr int kCutRetries = 3;

// Receives the events. The engine's sink commits before it returns.
class CallSink {
 public:
  virtual ~CallSink() = default;
  // type: call_started, call_ended or call_refused.
  virtual Result<void> record(EventType type, const Json& data) = 0;
};

class MeteredModel final : public ChatModel {
 public:
  MeteredModel(ChatModel& inner, Ledger& ledger, CallSink& sink)
      : inner_(inner), ledger_(ledger), sink_(sink) {}

  Result<ChatReply> chat(const Context& ctx, const ChatRequest& request) override;
  const std::string& name() const override { return inner_.name(); }
  bool has_tools() const override { return inner_.has_tools(); }
  std::optional<double> most_usd(const ChatRequest& request) const override {
    return inner_.most_usd(request);
  }

 private:
  Result<ChatReply> call_once(const Context& ctx, const ChatRequest& request);
  ChatModel& inner_;
  Ledger& ledger_;
  CallSink& sink_;
};

}  // namespace cutegen::llm
