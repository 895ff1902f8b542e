// SPDX-License-Identifier: Apache-2.0
// Implements the strategy `stark`, which keeps all programs in a tree, and selects the program to
// change next by epsilon-greedy search. The model plays planner, coder and debugger.
//
// Contract: each step of the search selects a node of the tree: with probability epsilon a random
// leaf, otherwise the fastest node. If it selects the root, the planner names an approach and the
// coder writes a first program. If it selects a correct program, the planner names one change and
// the parts of the source to change, and the coder changes only these parts. If it selects a failed
// program, the debugger repairs it. A question shows only some other programs, depending on the
// role that the model plays (tree.h). The strategy stops when the budget is used up, when a program
// is close to the fastest possible time (the floor or the reachable bound, docs/bounds.md), or when
// it cannot select any node. The random numbers follow from the seed in the settings and are part
// of the question, so that a replay can check them.
//
// With the setting `published`, `stark` is the algorithm of its paper. Without `published`, `stark`
// differs from this algorithm in seven ways, each with a switch in StarkSettings:
// - It repairs almost correct programs at once.
// - It does not evaluate a program twice.
// - Planners see bounds and profiles.
// - A bandit (families.h) chooses the kind of change.
// - If a change failed and its repair gains time, the bandit credits the kind of the change.
// - If programs are equally fast, the search continues from the newest program.
// - It changes a first program only when two first programs are correct.
//
// Example: make_strategy(StrategyKind::stark, {.agents = AgentSettings{.stark = {.seed = 7}}});
#pragma once

#include "search/draws.h"
#include "search/families.h"
#include "search/machine.h"
#include "search/tree.h"

namespace cutegen::search {

// Returns the effective settings of `stark`. The setting `published` turns off every change to the
// paper's algorithm.
StarkSettings stark_settings(const AgentSettings& agents);
// Returns how close a failed program is to a correct one, from 0 to 1. The result is the share of
// correct elements or, if the program computed no wrong values, depends on the rung (step of the
// evaluation) that failed.
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
  Json draw_;         // the current step's random draw, for its first question
  int node_ = 0;      // the node that the current step selected
  std::string plan_;  // the planner's answer in the current step
  std::string hash_;  // the hash of the current program
  std::optional<Family> family_;
  bool has_source_ = false;
  Role role_ = Role::planner;  // the role to which the open question goes
  // The numbers of consecutive repairs of almost correct programs, and of consecutive unusable
  // answers.
  int fixes_ = 0, unusable_ = 0;
  std::optional<std::string> best_;
  std::optional<Timing> best_timing_;
};

}  // namespace cutegen::search
