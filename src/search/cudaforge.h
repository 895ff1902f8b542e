// SPDX-License-Identifier: Apache-2.0
// The strategy `cudaforge`: the model plays two roles. The judge names one fault or bottleneck of a
// program, and the coder removes it.
//
// Contract: the coder writes a first program. In each following round, the judge sees the program
// with its verdict and profile, and names one fault if the program fails, or one bottleneck if it
// is correct. The coder then changes the program. With the setting `published`, `cudaforge` follows
// its paper: each round starts from the newest program, even if it is slower, and no question shows
// earlier attempts. Without `published`, `cudaforge` drops a correct program that is not faster
// than the incumbent, and questions show earlier attempts. The strategy stops after `rounds` rounds
// (an unusable answer uses one round), or when the budget is used up.
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
  // Contains the settings in which a strategy derived from CudaforgeStrategy can differ from it.
  struct Form {
    int rounds = 10;
    // The role that suggests each change before the coder writes it; empty: no role does.
    std::optional<Role> adviser;
    // The role that explains the profile of each correct program; empty: no role does.
    std::optional<Role> reader;
    // After this many repairs in a row, the strategy returns to the incumbent; empty: no limit.
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
  // Says what the open question asks for: an explanation of a profile, a change, or a program.
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
  std::string read_, reading_;  // the program explained last, and its explanation
  Step step_ = Step::write;
  int rounds_ = 0, unusable_ = 0, repairs_ = 0;
};

}  // namespace cutegen::search
