// SPDX-License-Identifier: Apache-2.0
// The strategy `cudaforge`: the model plays a judge, which names one fault or bottleneck of a
// program, and a coder, which removes it.
//
// Contract: the coder writes a first program. In each following round, the judge sees the program
// with its verdict and profile, and names one fault if the program fails, or one bottleneck if it
// is correct. Then the coder changes the program. With `published`, the strategy follows the paper:
// each round starts from the newest program, even if it is slower, and no question shows earlier
// attempts. Otherwise, the strategy drops a correct program that is not faster than the incumbent,
// and questions show earlier attempts. The strategy stops after `rounds` rounds (an unusable answer
// uses one), or when the budget is used.
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
  // The settings in which a derived strategy can differ from cudaforge.
  struct Form {
    int rounds = 10;
    // If set, the strategy asks this role before each change what to change.
    std::optional<Role> adviser;
    // If set, the strategy first asks this role to explain the profile of each correct program.
    std::optional<Role> reader;
    // The most repairs in a row before the strategy returns to the incumbent; no limit if empty.
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
  // What the open question asks for: an explanation of the profile, the next change, or a program.
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
  std::string read_, reading_;  // the program that the reader explained last, and the explanation
  Step step_ = Step::write;
  int rounds_ = 0, unusable_ = 0, repairs_ = 0;
};

}  // namespace cutegen::search
