// SPDX-License-Identifier: Apache-2.0
// The strategies `astra` and `astra-single`: a tester, a profiler, a planner and a coder; or one
// agent that does it all.
//
// Contract: the tester proposes tests once, before the first program; they go with every evaluation
// of the run. An unusable answer means no further tests. Then come rounds: the evaluator judges and
// profiles a program, the planner suggests one change or repair and sees the verdict and the
// profile, and the coder writes it. `published` is the algorithm of the paper: 5 rounds, each from
// the newest program, and no question shows earlier attempts; the best correct program is chosen
// afterwards. Without it, rounds go on from the best program, a program that `fixes` repairs have
// not mended is dropped, and questions show the history. `astra-single` has neither tester nor
// planner: the coder sees verdict and profile itself.
//
// Example: make_strategy("astra", {.agents = AgentSettings{.published = true}});
#pragma once

#include "search/cudaforge.h"

namespace cutegen::search {

inline constexpr const char *kAstra = "astra", *kAstraSingle = "astra-single";

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
