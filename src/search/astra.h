// SPDX-License-Identifier: Apache-2.0
// The strategies `astra` (a tester, a profiler, a planner and a coder) and `astra-single` (one
// agent that does everything).
//
// Contract: the tester proposes tests once, before the first program; they go with every evaluation
// of the run. If its answer is unusable, the run has no proposed tests. Then come rounds. The
// evaluator judges and profiles a program. If it is correct, the profiler says in words what limits
// it. The planner sees verdict, profile and these words and suggests one change or repair. The
// coder writes it. `published` is the paper's algorithm: 5 rounds, each from the newest program;
// the planner does not see the profile itself, no question shows earlier attempts, and the best
// correct program is chosen at the end. Without it, each round starts from the incumbent, and the
// profiler reads each profile once; a program that `fixes` repairs did not make correct is dropped,
// and questions show the history. `astra-single` has only the coder, which sees verdict and profile
// itself.
//
// Example: make_strategy(StrategyKind::astra, {.agents = AgentSettings{.published = true}});
#pragma once

#include "search/cudaforge.h"

namespace cutegen::search {

class AstraStrategy : public CudaforgeStrategy {
 public:
  explicit AstraStrategy(const StrategySettings& settings) : AstraStrategy(settings, true) {}

 protected:
  AstraStrategy(const StrategySettings& settings, bool team);

 private:
  bool asks_before(const Json& task) override;
  void on_task(const Json& task) override;
  void on_answer(const Proposed& answer) override;
  void add_context(Json& context) const override;

  bool team_, testing_ = false;
};

class AstraSingleStrategy final : public AstraStrategy {
 public:
  explicit AstraSingleStrategy(const StrategySettings& settings) : AstraStrategy(settings, false) {}
};

}  // namespace cutegen::search
