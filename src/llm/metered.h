// SPDX-License-Identifier: Apache-2.0
// MeteredModel: wraps a model, and records every call and charges it to the run's budget.
//
// Contract: MeteredModel records the event `call_started` with the request before it sends the
// request, and `call_ended` with the reply. The events of a run therefore contain a recording of
// its calls (llm/replay.h). MeteredModel does not send a request whose cost could exceed the
// budget. It then records `call_refused`, and returns an error for which is_budget_end() is true.
// MeteredModel also sends no request that it cannot record. If a reply broke off, MeteredModel
// charges the reply and asks again, at most kCutRetries times. A MeteredModel is thread-safe if its
// CallSink is thread-safe.
//
// Example: MeteredModel model(*client, ledger, journal_sink); model.chat(ctx, request);
#pragma once

#include "llm/ledger.h"

namespace cutegen::llm {

inline constexpr int kCutRetries = 3;

// Receives the events of a MeteredModel. The engine's CallSink commits each event before it
// returns.
class CallSink {
 public:
  virtual ~CallSink() = default;
  // `type` is call_started, call_ended or call_refused.
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
