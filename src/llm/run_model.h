// SPDX-License-Identifier: Apache-2.0
// RunModel: the model of one run. It charges, records, resumes and replays calls through the run's
// events.
//
// Contract: fold() takes every event of the run in order, recorded and live. begin_ask() returns
// the model for the strategy's open question. That model first answers from the calls recorded
// since the last `answered`, so a resumed run neither asks nor pays again. Then it asks the client.
// In a replay there is no client, and only recorded answers exist. The reference is valid until the
// next begin_ask().
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
  // How the open question differs from the recorded one, if it does.
  std::optional<Difference> difference() const {
    return open_ ? open_->difference() : std::nullopt;
  }
  Ledger& ledger() { return ledger_; }
  const Ledger& ledger() const { return ledger_; }

 private:
  std::unique_ptr<ChatModel> client_;
  Ledger ledger_;
  CallSink& sink_;
  Recording unanswered_;  // the calls of the open question, for a resumed run
  std::unique_ptr<ReplayModel> open_;
};

}  // namespace cutegen::llm
