// SPDX-License-Identifier: Apache-2.0
// The settings of a run: task, strategy, proposer, evaluator and limits.
//
// Contract: the event `opened` records the settings (engine/record/event_data.h), so a resumed run
// uses the same settings.
//
// Example: OptimizeSettings settings{.file = "relu.py", .model = "builtin"};
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "eval/api/client.h"
#include "search/strategy.h"

namespace cutegen::engine {

// The tools that questions offer to a model. `compile`: the model may compile programs, but not
// evaluate programs. At the start of a run, the engine replaces `automatic` by the mode that the
// strategy permits, or by `off` if the model cannot call tools.
enum class ToolsMode { off, on, compile, automatic };
using cutegen::to_string;
Names<ToolsMode> enum_names(ToolsMode);
Result<ToolsMode> parse_tools(const std::string& name, const std::string& where);

// The address, the key and the limits of a language model. The proposer `builtin` ignores these
// settings.
struct ModelSettings {
  std::string url;  // empty: the provider's default address
  // Defaults: the key in an environment variable, and the prices in models/prices.toml.
  std::filesystem::path key_file, prices;
  double relay_minutes = 0;  // longest wait for a relay's answer file (llm/relay.h); 0: no limit
  std::string effort;        // reasoning effort
  std::optional<double> temperature;
  int64_t prompt_tokens = 24000;  // limit for the estimated tokens of a question
  int reasks = 2;                 // how often to ask again after an answer that cannot be applied
  ToolsMode tools = ToolsMode::off;
  int tool_calls = 8;            // limit of tool calls for one question
  int64_t run_tool_calls = 400;  // limit of tool calls for the whole run
  double usd = 0;                // 0: no limit
  int64_t tokens = 0;
};

struct OptimizeSettings {
  std::filesystem::path file;
  search::StrategyKind strategy = search::StrategyKind::cutegen;
  std::string model = "builtin";
  eval::EvaluatorOptions evaluator;
  // Math mode and error limits from the command line, in addition to the task's side file.
  AskedAccuracy asked;
  std::string rewrites = "none";  // "all", "none", or names from recipes/algebra/rewrites.h
  search::StrategySettings search;
  ModelSettings model_settings;
  // Folder to which the run writes the best program so far; if empty, the run writes no folder.
  std::filesystem::path out;
  bool baselines = true;      // on a GPU: show baselines at the start and speedups at the end
  bool profile_best = false;  // at the end, profile the best program if it has no profile yet
  // Like profile_best, but only if the best program is slower than the fastest known baseline.
  bool profile_slower = false;
  // On a GPU: minutes for certifying the best program; 0: no certificate. Certifying may also take
  // the minutes that the search did not use.
  double certify_minutes = 0;
  Json resolved_config = Json::object();  // every setting with its value and source
  // Whether the user chose the dialect (CuTe or plain CUDA). For a task that is a CUDA kernel, the
  // default is plain CUDA.
  // The journal does not record this flag, because it records the dialect itself.
  bool dialect_asked = false;
};

}  // namespace cutegen::engine
