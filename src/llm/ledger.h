// SPDX-License-Identifier: Apache-2.0
// Ledger: counts what a run has spent of its budget: dollars, tokens, evaluations and minutes.
//
// Contract: the engine calls apply() for every event of the run. When the engine resumes a run, it
// applies the recorded events again, which restores the state of the Ledger. Before the engine
// sends a request to a model, it calls open_call(), which reserves the highest possible cost of the
// call, or returns an error if the budget is too small. The event `call_ended` replaces the
// reservation of a call by its real cost. If a call never ended (because of a crash), its
// reservation stays charged. The engine may apply the event of a call twice, because apply()
// ignores a call's event that it has already applied. Several threads may use one Ledger.
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

struct Limits {  // 0 means no limit
  double usd = 0;
  int64_t tokens = 0;
  int64_t evaluations = 0;
  double minutes = 0;
};

struct Spent {
  double usd = 0;     // dollars spent on calls that have ended
  int64_t calls = 0;  // number of calls with a reply
  Usage usage;        // tokens of the calls with a reply
  // The reservations of calls that have not ended. After a crash, cutegen does not know their real
  // cost.
  double open_usd = 0;
  int64_t open_tokens = 0;
  int64_t open_calls = 0;
  bool unpriced = false;  // true if a call had an unknown price, so `usd` is too small
  int64_t evaluations = 0;
  int64_t clock_ms = 0;
};

class Ledger {
 public:
  explicit Ledger(Limits limits = {}) : limits_(limits) {}

  // Reserves the cost of a call. Returns the data of the event `call_started`: call, label, model,
  // request, request_hash, reserved_usd, reserved_tokens.
  Result<Json> open_call(const ChatModel& model, const ChatRequest& request);
  // Cancels the reservation of a call whose request was not sent.
  void drop_call(int64_t call);
  // Updates the Ledger with one event. The function apply() uses the events call_started,
  // call_ended and evaluated, and the field clock_ms of every event.
  void apply(EventType type, const Json& data);

  // Returns which limit the run has reached, such as "budget: dollars ($2.0100 of $2.0000)". The
  // result is empty if the run has reached no limit.
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
// budget_end() makes the user error for a spent budget, and is_budget_end() recognises it.
bool is_budget_end(const Error& error);
Error budget_end(const std::string& why);

}  // namespace cutegen::llm
