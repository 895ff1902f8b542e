// SPDX-License-Identifier: Apache-2.0
// The strategy `stark`: plan, code and debug over a tree of all programs, chosen by epsilon-greedy
// search.
//
// Contract: a step selects a node. With probability epsilon it is any selectable leaf, else the
// fastest selectable node. From the root, a planner names an approach and a coder writes a first
// program. From a correct program, a planner names spans and one change, and the coder changes only
// these spans. A failed program goes to the debugger. Each question shows the window of its role.
// Stops when the budget is used, at the floor or the reachable bound, or when no node is
// selectable. The draws follow from the settings' seed and are part of the question, so a replay
// checks them. `published` is the paper's algorithm. Without it, seven changes apply, each with a
// switch in StarkSettings. Near misses are repaired at once. Repeated programs cost no evaluation.
// Planners see bounds and profiles. A bandit chooses the kind of change. A repaired change counts
// for its kind. Of equally fast programs, the search continues with the newest. Two first programs
// have to be correct before one of them is changed.
//
// Example: make_strategy(StrategyKind::stark, {.agents = AgentSettings{.stark = {.seed = 7}}});
#pragma once

#include "search/draws.h"
#include "search/families.h"
#include "search/machine.h"
#include "search/tree.h"

namespace cutegen::search {

// The effective settings: `published` turns off every change to the paper's algorithm.
StarkSettings stark_settings(const AgentSettings& agents);
// How close a failed program is to a correct one, from 0 to 1, by the rung that it reached and by
// the share of correct elements.
double nearness_of(const Verdict& verdict);

class StarkStrategy final : public Machine {
 public:
  explicit StarkStrategy(const StrategySettings& settings)
      : Machine(settings),
        stark_(stark_settings(*settings.agents)),
        tree_(stark_),
        draws_(stark_.seed),
        families_(stark_.credit) {}

 private:
  void on_task(const Json&) override { decide(); }
  void on_source(const Json& task, const Candidate& source, const Verdict& verdict) override;
  void on_answer(const Proposed& answer) override;
  void on_verdict(const std::string& candidate, const Verdict& verdict) override;
  void on_set_aside(const std::string& candidate, const std::string& why) override;
  void on_accepted(const std::string&) override { decide(); }
  void on_rejected(const std::string&) override { decide(); }

  void decide();
  void select();
  void ask_planner();
  void ask_coder();
  void ask_debugger();
  void ask(Role role, Purpose purpose, double temperature, const std::vector<int>& window);
  void on_unusable(const std::string& reason);
  void on_program(const Proposed& answer);
  void reward(const Node& node);
  void add_node(const std::string& candidate, const Verdict& verdict);
  std::string best() const { return best_.value_or(""); }

  StarkSettings stark_;
  Tree tree_;
  Draws draws_;
  Families families_;
  Json draw_;         // the current step's draw, for its first question
  int node_ = 0;      // the current step's node
  std::string plan_;  // the current step's
  std::string hash_;  // the current program's
  std::optional<Family> family_;
  bool has_source_ = false;
  Role role_ = Role::planner;  // of the open question
  int fixes_ = 0;              // repairs in a row of near misses
  int unusable_ = 0;           // answers in a row
  std::optional<std::string> best_;
  std::optional<Timing> best_timing_;
};

}  // namespace cutegen::search
