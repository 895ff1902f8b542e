// SPDX-License-Identifier: Apache-2.0
// Ledger: what a run may spend and has spent: dollars, tokens, evaluations, minutes.
//
// Contract: folded from the run's events, so that it is the same after a resume. open_call reserves
// the most that a call can cost before it is sent, or refuses with a budget error; `call_ended`
// turns the reservation into what was spent. A call without its end (a crash) stays charged with
// its reservation. apply() takes every event of a run; those of a call already known change
// nothing, so that live events may be folded again. Safe for several threads.
//
// Example:
//   Ledger ledger({.usd = 2.0}); for (const Event& e : events) ledger.apply(e.type, e.data);
//   if (auto why = ledger.ended()) finish(*why);
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "llm/chat.h"

namespace cutegen::llm {

struct Limits {  // 0: no limit
  double usd = 0;
  int64_t tokens = 0;
  int64_t evaluations = 0;
  double minutes = 0;
};

struct Spent {
  double usd = 0;       // of calls that ended; `open` ones apart
  int64_t calls = 0;    // that ended
  Usage usage;          // of those
  double open_usd = 0;  // reserved for calls that have not ended, in doubt after a crash
  int64_t open_tokens = 0;
  int64_t open_calls = 0;
  bool unpriced = false;  // some call had no known price: `usd` is too small
  int64_t evaluations = 0;
  int64_t clock_ms = 0;
};

class Ledger {
 public:
  explicit Ledger(Limits limits = {}) : limits_(limits) {}

  // The data of `call_started`: call, label, model, request, request_hash, reserved_usd,
  // reserved_tokens. From now on the reservation counts.
  [[nodiscard]] Result<Json> open_call(const ChatModel& model, const ChatRequest& request);
  // Takes a reservation back: the call was never sent.
  void drop_call(int64_t call);
  // call_started, call_ended, evaluated and the clock_ms of every event.
  void apply(const std::string& type, const Json& data);

  // Why nothing more may be spent: "budget: dollars ($2.01 of $2.00)". Empty while there is some.
  [[nodiscard]] std::optional<std::string> ended() const;
  [[nodiscard]] Spent spent() const;
  [[nodiscard]] const Limits& limits() const { return limits_; }

 private:
  struct Reserved {
    std::optional<double> usd;
    int64_t tokens = 0;
  };
  [[nodiscard]] Result<void> check_fits(const Reserved& wanted) const;
  void reserve(int64_t call, const Reserved& reserved);
  void end_call(int64_t call, const Json& data);
  [[nodiscard]] Spent sum() const;

  Limits limits_;
  mutable std::mutex mutex_;
  Spent spent_;
  std::map<int64_t, Reserved> open_;
  int64_t last_call_ = 0;
};

[[nodiscard]] Json to_json(const Spent& spent);
// A budget's end is a user error; this tells it from others.
[[nodiscard]] bool is_budget_end(const Error& error);
[[nodiscard]] Error budget_end(const std::string& why);

}  // namespace cutegen::llm
