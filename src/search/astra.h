// SPDX-License-Identifier: Apache-2.0
// The strategies `astra` (a tester, a profiler, a planner and a coder) and `astra-single` (one
// agent that does everything).
//
// Contract: the tester proposes tests once, before the first program, and every evaluation of the
// run uses them. An unusable answer means no further tests. Then come rounds. The evaluator judges
// and profiles a program. The planner sees verdict and profile and suggests one change or repair.
// The coder writes it. `published` is the paper's algorithm: 5 rounds, each from the newest
// program; no question shows earlier attempts, and the best correct program is chosen at the end.
// Without it, each round starts from the incumbent, a program that `fixes` repairs did not make
// correct is dropped, and questions show the history. `astra-single` has no tester and no planner;
// the coder sees verdict and profile itself.
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
