// SPDX-License-Identifier: Apache-2.0
// The strategy `best-of-n`: asks the model for independent programs without feedback, and keeps the
// fastest correct program. The strategy is the baseline that other strategies must beat with the
// same budget.
//
// Contract: all questions to the model are the same, and none shows an earlier program. If the task
// is a CUDA kernel, the model changes this kernel in each answer. The strategy stops when the
// budget is used up, or when the incumbent is close to the fastest possible time (the floor or the
// reachable bound, docs/bounds.md).
//
// Example: make_strategy(StrategyKind::best_of_n, {.agents = AgentSettings{}});
#pragma once

#include "search/machine.h"

namespace cutegen::search {

class BestOfN final : public Machine {
 public:
  explicit BestOfN(const StrategySettings& settings) : Machine(settings) {}

 private:
  void on_task(const Json&) override { decide(); }
  void on_source(const Json& task, const Candidate& source, const Verdict& verdict) override;
  void on_answer(const Proposed& answer) override;
  void on_verdict(const std::string& candidate, const Verdict& verdict) override;
  void on_set_aside(const std::string& candidate, const std::string& why) override;
  void on_accepted(const std::string&) override { decide(); }
  void on_rejected(const std::string&) override { decide(); }
  void decide();

  std::string best_, source_kernel_;
  std::optional<Timing> best_timing_;
  int64_t asked_ = 0;
};

}  // namespace cutegen::search
