// SPDX-License-Identifier: Apache-2.0
// Implements the search strategies `astra` and `astra-single`. In `astra`, the model plays four
// roles: tester, profiler, planner and coder. In `astra-single`, the model plays only the coder,
// which reads verdict and profile.
//
// Contract: before the first program, `astra` asks the tester once for tests, which every
// evaluation of the run then uses. If the answer is unusable, the run has no tests proposed by the
// model. Each round starts from one program, which the evaluator has judged and profiled. If this
// program is correct, the profiler explains what limits its speed. The planner reads the verdict,
// the profile and this explanation, and suggests one change or repair. The coder then writes the
// changed program.
//
// With the setting `published`, `astra` is the algorithm of its paper. It has 5 rounds, and each
// round starts from the newest program. The planner does not see the profile, and no question shows
// earlier attempts. The best correct program wins at the end. Without `published`, each round
// starts from the incumbent or repairs a failed program, at most `fixes` times in a row. The
// profiler reads each profile once, and questions show earlier attempts.
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
