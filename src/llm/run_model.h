// SPDX-License-Identifier: Apache-2.0
// RunModel: the model of one run, as its events have it: paid for, recorded, resumed, replayed.
//
// Contract: fold() takes every event of the run in order, recorded and live ones alike. begin_ask()
// gives the model for the question of the strategy that is open: it answers first from the calls
// that were recorded since the last `answered`, so that a resumed run neither asks nor pays
// again, then asks the client. Without a client (a replay) it knows recorded answers only. The
// reference is valid until the next begin_ask().
//
// Example:
//   RunModel run(std::move(client), {.usd = 2}, sink); for (auto& e : events) run.fold(e.type,
//   e.data); auto answer = role.answer(ctx, run.begin_ask());
#pragma once

#include "llm/metered.h"
#include "llm/replay.h"

namespace cutegen::llm {

class RunModel {
 public:
  RunModel(std::unique_ptr<ChatModel> client, Limits limits, CallSink& sink);
  [[nodiscard]] Result<void> fold(const std::string& type, const Json& data);
  [[nodiscard]] ChatModel& begin_ask();
  // Where the open question is not the recorded one.
  [[nodiscard]] std::optional<Difference> difference() const {
    return open_ ? open_->difference() : std::nullopt;
  }
  [[nodiscard]] Ledger& ledger() { return ledger_; }
  [[nodiscard]] const Ledger& ledger() const { return ledger_; }

 private:
  std::unique_ptr<ChatModel> client_;
  Ledger ledger_;
  CallSink& sink_;
  Recording unanswered_;  // the calls of the open question; a resumed run asks it again
  std::unique_ptr<ReplayModel> open_;
};

}  // namespace cutegen::llm
