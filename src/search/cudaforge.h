// SPDX-License-Identifier: Apache-2.0
// The strategy `cudaforge`: a coder and a judge work on one fault or one bottleneck at a time.
//
// Contract: after a first program come rounds. The judge sees the program with its profile and
// names one fault if it fails, or one bottleneck if it is correct. The coder acts on that.
// `published` reproduces the paper: each round starts from the newest program, even a slower one,
// and no question shows earlier attempts. Without it, the strategy drops a correct program that
// gains nothing, and questions show the history. Stops after `rounds` rounds (an unusable answer
// uses one) or when the budget is used.
//
// Example: make_strategy(StrategyKind::cudaforge, {.agents = AgentSettings{.rounds = 10}});
#pragma once

#include "search/machine.h"

namespace cutegen::search {

class CudaforgeStrategy : public Machine {
 public:
  explicit CudaforgeStrategy(const StrategySettings& settings)
      : CudaforgeStrategy(settings, {.rounds = settings.agents->rounds,
                                     .adviser = Role::judge,
                                     .reader = {},
                                     .repairs = {}}) {}

 protected:
  // How a strategy that uses this class differs from cudaforge.
  struct Form {
    int rounds = 10;
    std::optional<Role> adviser;  // asked before each change, if set
    std::optional<Role> reader;   // asked about each correct program before the adviser, if set
    // The most repairs in a row before it returns to the incumbent; empty: no limit.
    std::optional<int> repairs;
  };
  CudaforgeStrategy(const StrategySettings& settings, Form form)
      : Machine(settings), agents_(*settings.agents), form_(form) {}

  void on_task(const Json&) override { decide(); }
  void on_source(const Json& task, const Candidate& source, const Verdict& verdict) override;
  void on_answer(const Proposed& answer) override;
  void on_verdict(const std::string& candidate, const Verdict& verdict) override;
  void on_set_aside(const std::string& candidate, const std::string& why) override;
  void on_accepted(const std::string&) override { decide(); }
  void on_rejected(const std::string&) override { decide(); }
  virtual void add_context(Json& /*context*/) const {}

  Form& form() { return form_; }
  const AgentSettings& agents() const { return agents_; }

 private:
  // The open question: about the profile, about the next change, or for a program.
  enum class Step { read, advise, write };

  void decide();
  void ask(Step step);
  void ask_for_change();
  bool needs_reading() const;
  void on_unusable(const std::string& reason);
  void move_on(const std::string& candidate, bool correct, bool better);
  std::string best() const { return best_.value_or(""); }

  AgentSettings agents_;
  Form form_;
  std::string current_;   // the program that the next round starts from
  bool failing_ = false;  // whether current_ is incorrect
  std::optional<std::string> best_;
  std::optional<Timing> best_timing_;
  std::string advice_;
  std::string read_, reading_;  // the program that the reader saw, and its answer
  Step step_ = Step::write;
  int rounds_ = 0, unusable_ = 0, repairs_ = 0;
};

}  // namespace cutegen::search
