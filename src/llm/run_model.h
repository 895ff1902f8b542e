// SPDX-License-Identifier: Apache-2.0
// RunModel: the model of one run, which records calls as events of the run, charges them to the
// budget, and answers from recorded calls when the run is resumed or replayed.
//
// Contract: call fold() for every event of the run in order, both for recorded and for new events.
// The function begin_ask() returns the model for the strategy's open question; the returned
// reference is valid until the next begin_ask(). This model first answers from the calls that were
// recorded since the last event `answered`, so a resumed run does not pay for these calls again.
// Then it asks the client, which is the user's model. A replay has no client, so only recorded
// answers are available.
//
// Example:
//   RunModel run(std::move(client), {.usd = 2}, sink);
//   for (auto& e : events) run.fold(e.type, e.data);
//   auto answer = role.answer(ctx, run.begin_ask());
#pragma once

#include "llm/metered.h"
#include "llm/replay.h"

namespace cutegen::llm {

class RunModel {
 public:
  RunModel(std::unique_ptr<ChatModel> client, Limits limits, CallSink& sink);
  Result<void> fold(EventType type, const Json& data);
  ChatModel& begin_ask();
  // Returns how the open question differs from the recorded question; empty if it does not differ.
  std::optional<Difference> difference() const {
    return open_ ? open_->difference() : std::nullopt;
  }
  Ledger& ledger() { return ledger_; }
  const Ledger& ledger() const { return ledger_; }

 private:
  std::unique_ptr<ChatModel> client_;
  Ledger ledger_;
  CallSink& sink_;
  Recording unanswered_;  // the recorded calls since the last event `answered`
  std::unique_ptr<ReplayModel> open_;
};

}  // namespace cutegen::llm
