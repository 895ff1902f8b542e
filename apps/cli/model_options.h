// SPDX-License-Identifier: Apache-2.0
// The flags of commands that may ask a model: how it is reached, what it may cost, how it is used.
//
// Contract: add() declares them on a command; apply() puts them into the settings of a run, where
// the model is not `builtin`. Flags that make no sense without a model are a user error there.
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
  [[nodiscard]] Result<void> apply(OptimizeSettings& settings) const;
  // For runs side by side on so many evaluators: also what the configuration says of all of them.
  [[nodiscard]] Result<void> apply_to_many(const Config& config, int evaluators,
                                           OptimizeSettings& settings) const;

 private:
  AgentSettings agents_;
  ModelSettings model_;
  std::string key_file_, prices_;
  double temperature_ = -1;
  bool no_planner_ = false, no_judge_ = false;
  std::vector<CLI::Option*> options_;
};

}  // namespace cutegen::cli
