// SPDX-License-Identifier: Apache-2.0
// Walk: feeds a run's events to its strategy and view and checks every recorded action.
//
// Contract: step() takes each event in order, live or recorded. If an event records an action, the
// strategy must now choose the same action; otherwise the error names the event and both actions.
// If MakeProposer is set, step() also asks its proposer again for every recorded answer, and the
// answers must be equal (replay).
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
  int64_t event = 0;  // number of the event in the journal
  std::string step;   // the candidate or the role that the event is about
  // "action", "answer/...", "question/...", "verdict/status", "verdict/time_ns", "task/id", ...
  std::string field;
  std::string recorded, now;
};

class Walk {
 public:
  using MakeProposer = std::function<Result<std::unique_ptr<Proposer>>(const RunView&)>;
  // Set make_proposer to check answers, too.
  explicit Walk(MakeProposer make_proposer = {}) : make_proposer_(std::move(make_proposer)) {}

  Result<void> step(const Event& event);
  // The action to take now; null before the event `task` and after the end.
  const search::Action* next();
  const RunView& view() const { return view_; }
  // How the last step() diverged, if it failed because actions or answers differ.
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
