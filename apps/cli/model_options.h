// SPDX-License-Identifier: Apache-2.0
// The flags of commands that may ask a model: how to reach it, what it may cost, how to use it.
//
// Contract: add() declares the flags on a command; apply() puts them into the settings of a run. If
// the run asks no model, a flag that the user gave is a user error.
//
// Example: options->model.add(*command); CG_CHECK(options->model.apply(config.text("model"), s));
#pragma once

#include <CLI/CLI.hpp>

#include "base/config.h"
#include "engine/run/run.h"

namespace cutegen::cli {

class ModelOptions {
 public:
  void add(CLI::App& command);
  Result<void> apply(engine::OptimizeSettings& settings) const;
  // apply() for several runs in parallel. Also applies the settings that all runs share.
  Result<void> apply_to_many(const Config& config, int evaluators,
                             engine::OptimizeSettings& settings) const;
  bool gives_rounds() const { return rounds_ > 0; }
  // Lets --dialect name several dialects, separated by commas. apply() uses the first one.
  void take_several_dialects() { several_dialects_ = true; }
  std::vector<std::string> dialects() const;

 private:
  search::AgentSettings agents_;
  std::string dialect_, start_ = "scratch", profiling_ = "adaptive", tools_ = "auto";
  engine::ModelSettings model_;
  std::string key_file_, prices_;
  double temperature_ = -1;
  bool no_planner_ = false, no_judge_ = false, no_profiler_ = false;
  double epsilon_ = -1;  // below 0: the strategy's default
  int rounds_ = 0;       // 0: the strategy's default
  bool several_dialects_ = false;
  std::vector<std::string> without_;
  std::vector<CLI::Option*> options_;
};

}  // namespace cutegen::cli
