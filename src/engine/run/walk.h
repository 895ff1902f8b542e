// SPDX-License-Identifier: Apache-2.0
// Walk: passes the events of a run to a strategy and a RunView, and checks every recorded action.
//
// Contract: call step() with each event in order, for recorded and for new events. If the event
// records an action, the strategy must choose the same action. If the actions differ, step()
// returns an error that names the event and both actions. If `make_proposer` is set, step() also
// asks a proposer every recorded question again, and requires the recorded answer (for replays).
//
// Example: Walk walk; for (const Event& e : events) CG_CHECK(walk.step(e)); walk.next();
#pragma once

#include <deque>
#include <functional>
#include <memory>

#include "engine/propose/proposer.h"

namespace cutegen::engine {

// The first difference between a replay and the record.
struct Divergence {
  int64_t event = 0;  // the event's number in the journal
  std::string step;   // the candidate or the role in the event
  // Name of the field that differs: "action", "answer/...", "question/...", "verdict/status",
  // "verdict/time_ns", "task/id", ...
  std::string field;
  std::string recorded, now;
};

class Walk {
 public:
  using MakeProposer = std::function<Result<std::unique_ptr<Proposer>>(const RunView&)>;
  // With `make_proposer`, step() also checks answers.
  explicit Walk(MakeProposer make_proposer = {}) : make_proposer_(std::move(make_proposer)) {}

  Result<void> step(const Event& event);
  // Returns the strategy's next action; null before the event `task` and after the run's end.
  const search::Action* next();
  const RunView& view() const { return view_; }
  // Returns the difference from the record, if an action or answer differed in the last step().
  const std::optional<Divergence>& divergence() const { return divergence_; }

 private:
  tl::unexpected<Error> diverged(const Event& event, const std::string& recorded,
                                 const std::string& now);
  Result<void> check_action(const Event& event);
  Result<void> check_answer(const Event& event);

  MakeProposer make_proposer_;
  std::unique_ptr<Proposer> proposer_;
  std::unique_ptr<search::Strategy> strategy_;
  std::deque<search::Action> open_;
  std::optional<search::Ask> asked_;
  std::optional<Divergence> divergence_;
  RunView view_;
};

}  // namespace cutegen::engine
