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

// How a model is reached and what it may cost; unused by `builtin`.
// automatic: on if the strategy asks step by step and the model can call tools. Only before a run
// begins.
enum class ToolsMode { off, on, compile, automatic };  // compile: no evaluations by tools
using cutegen::to_string;
Names<ToolsMode> enum_names(ToolsMode);
Result<ToolsMode> parse_tools(const std::string& name, const std::string& where);

struct ModelSettings {
  std::string url;                         // empty: the provider's own
  std::filesystem::path key_file, prices;  // empty: the environment; the shipped prices
  double relay_minutes = 0;                // for an answer file; 0: for ever
  std::string effort;                      // of reasoning
  std::optional<double> temperature;
  int64_t prompt_tokens = 24000;  // the most of one question, estimated
  int reasks = 2;                 // of one question, when its answer does not apply
  ToolsMode tools = ToolsMode::off;
  int tool_calls = 8;            // of one question
  int64_t run_tool_calls = 400;  // of the whole run
  double usd = 0;                // 0: no limit
  int64_t tokens = 0;
};

struct OptimizeSettings {
  std::filesystem::path file;
  std::string strategy = "cutegen", model = "builtin";
  eval::EvaluatorOptions evaluator;
  AskedAccuracy asked;            // of the task, beside its side file
  std::string rewrites = "none";  // of recipes: "all", "none" or names (recipes/algebra/rewrites.h)
  search::StrategySettings search;
  ModelSettings model_settings;
  std::filesystem::path out;  // folder for the best program so far; empty: none is written
  bool baselines = true;      // on a GPU: said before the first step, and what is gained at the end
  bool profile_best = false;  // at the end, where the best program has no profile
  bool profile_slower = false;  // the same, if it is slower than the fastest known baseline
  // On a GPU: how long the best program's certificate may take at the end (and what the search left
  // of its minutes); 0: none is made.
  double certify_minutes = 0;
  Json resolved_config = Json::object();  // every setting with its source
  // The user named the dialect. Else a task that is a CUDA kernel is continued in plain CUDA.
  bool dialect_asked = false;  // not recorded: the journal has the dialect
};

}  // namespace cutegen::engine
