// SPDX-License-Identifier: Apache-2.0
// The settings of a run: task, strategy, proposer, evaluator and limits.
//
// Contract: plain values. The event `opened` holds all of them (engine/record/event_data.h), so a
// resumed run has the same.
//
// Example: OptimizeSettings settings{.file = "relu.py", .model = "builtin"};
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "eval/api/client.h"
#include "search/strategy.h"

namespace cutegen::engine {

// `compile`: tools may compile but not evaluate. At the start of a run, `automatic` becomes what
// the strategy permits if the model can call tools, else `off`.
enum class ToolsMode { off, on, compile, automatic };
using cutegen::to_string;
Names<ToolsMode> enum_names(ToolsMode);
Result<ToolsMode> parse_tools(const std::string& name, const std::string& where);

// How to reach a model and what it may cost; `builtin` does not use this.
struct ModelSettings {
  std::string url;  // empty: the provider's own
  // Empty: the key comes from the environment, the prices are the shipped ones.
  std::filesystem::path key_file, prices;
  double relay_minutes = 0;  // longest wait for an answer file; 0: no limit
  std::string effort;        // reasoning effort
  std::optional<double> temperature;
  int64_t prompt_tokens = 24000;  // most tokens of one question, estimated
  int reasks = 2;                 // most repeats of a question whose answer cannot be applied
  ToolsMode tools = ToolsMode::off;
  int tool_calls = 8;            // most tool calls for one question
  int64_t run_tool_calls = 400;  // most tool calls in the whole run
  double usd = 0;                // 0: no limit
  int64_t tokens = 0;
};

struct OptimizeSettings {
  std::filesystem::path file;
  search::StrategyKind strategy = search::StrategyKind::cutegen;
  std::string model = "builtin";
  eval::EvaluatorOptions evaluator;
  AskedAccuracy asked;  // the user's demands on the task's accuracy, in addition to its side file
  std::string rewrites = "none";  // "all", "none" or names (recipes/algebra/rewrites.h)
  search::StrategySettings search;
  ModelSettings model_settings;
  std::filesystem::path out;  // folder for the best program so far; empty: do not write it
  bool baselines = true;  // on a GPU: show baselines before the first step and speedups at the end
  bool profile_best = false;  // at the end, profile the best program if it has no profile yet
  // The same, but only if it is slower than the fastest known baseline.
  bool profile_slower = false;
  // On a GPU: minutes for the best program's certificate, in addition to those that the search did
  // not use; 0: no certificate.
  double certify_minutes = 0;
  Json resolved_config = Json::object();  // every setting with its source
  // The user named the dialect. Otherwise a task that is a CUDA kernel uses plain CUDA.
  bool dialect_asked = false;  // not recorded, because the journal has the dialect itself
};

}  // namespace cutegen::engine
