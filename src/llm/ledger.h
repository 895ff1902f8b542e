// SPDX-License-Identifier: Apache-2.0
// Ledger: the budget of a run and its spending: dollars, tokens, evaluations, minutes.
//
// Contract: the ledger folds the run's events, so a resume gives the same state. open_call()
// reserves the highest cost of a call before the request is sent, or refuses with a budget error.
// `call_ended` replaces the reservation by the real cost. A call that never ended (a crash) stays
// charged with its reservation. apply() takes every event of a run. It ignores calls that it
// already has, so it is safe to apply an event twice. Thread-safe.
//
// Example:
//   Ledger ledger({.usd = 2.0}); for (const Event& e : events) ledger.apply(e.type, e.data);
//   if (auto why = ledger.ended()) finish(*why);
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "core/event_type.h"
#include "llm/chat.h"

namespace cutegen::llm {

struct Limits {  // 0: no limit
  double usd = 0;
  int64_t tokens = 0;
  int64_t evaluations = 0;
  double minutes = 0;
};

struct Spent {
  double usd = 0;     // dollars spent on calls that have ended
  int64_t calls = 0;  // calls that got a reply
  Usage usage;        // usage of those calls
  // Reserved for unfinished calls; after a crash it is unknown whether they cost anything.
  double open_usd = 0;
  int64_t open_tokens = 0;
  int64_t open_calls = 0;
  bool unpriced = false;  // some call had an unknown price, so `usd` is too small
  int64_t evaluations = 0;
  int64_t clock_ms = 0;
};

class Ledger {
 public:
  explicit Ledger(Limits limits = {}) : limits_(limits) {}

  // Reserves the cost of a call. Returns the data of `call_started`: call, label, model, request,
  // request_hash, reserved_usd, reserved_tokens.
  Result<Json> open_call(const ChatModel& model, const ChatRequest& request);
  // Cancels the reservation of a call that was never sent.
  void drop_call(int64_t call);
  // Reads call_started, call_ended, evaluated, and the clock_ms of every event.
  void apply(EventType type, const Json& data);

  // Why the budget is spent: "budget: dollars ($2.0100 of $2.0000)". Empty while the
  // budget lasts.
  std::optional<std::string> ended() const;
  Spent spent() const;
  const Limits& limits() const { return limits_; }

 private:
  struct Reserved {
    std::optional<double> usd;
    int64_t tokens = 0;
  };
  Result<void> check_fits(const Reserved& wanted) const;
  void reserve(int64_t call, const Reserved& reserved);
  void end_call(int64_t call, const Json& data);
  Spent sum() const;

  Limits limits_;
  mutable std::mutex mutex_;
  Spent spent_;
  std::map<int64_t, Reserved> open_;
  int64_t last_call_ = 0;
};

Json to_json(const Spent& spent);
// Whether an error is the user error for a spent budget.
bool is_budget_end(const Error& error);
Error budget_end(const std::string& why);

}  // namespace cutegen::llm
