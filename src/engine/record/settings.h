// SPDX-License-Identifier: Apache-2.0
// The settings of a run: task, strategy, proposer, evaluator and limits.
//
// Contract: plain values. The event `opened` records them (engine/record/event_data.h), so a
// resumed run uses the same settings.
//
// Example: OptimizeSettings settings{.file = "relu.py", .model = "builtin"};
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "eval/api/client.h"
#include "search/strategy.h"

namespace cutegen::engine {

// The tools that questions offer to a model. `compile`: the model may compile drafts, but not
// evaluate them. At the start of a run, the engine replaces `automatic` by the mode that the
// strategy permits, or by `off` if the model cannot call tools.
enum class ToolsMode { off, on, compile, automatic };
using cutegen::to_string;
Names<ToolsMode> enum_names(ToolsMode);
Result<ToolsMode> parse_tools(const std::string& name, const std::string& where);

// The address, the key and the limits of a language model. The proposer `builtin` ignores them.
struct ModelSettings {
  std::string url;  // empty: the provider's default address
  // If empty, the key comes from an environment variable, and the prices from models/prices.toml.
  std::filesystem::path key_file, prices;
  double relay_minutes = 0;  // longest wait for an answer file; 0: no limit
  std::string effort;        // reasoning effort
  std::optional<double> temperature;
  int64_t prompt_tokens = 24000;  // limit of a question's estimated tokens
  int reasks = 2;                 // how often to ask again if an answer cannot be applied
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
  // Math mode and error bounds that the user asked for, in addition to those in the side file.
  AskedAccuracy asked;
  std::string rewrites = "none";  // "all", "none", or names from recipes/algebra/rewrites.h
  search::StrategySettings search;
  ModelSettings model_settings;
  // Folder for the best program so far. If empty, the run writes no folder.
  std::filesystem::path out;
  bool baselines = true;  // on a GPU: show baselines before the first step and speedups at the end
  bool profile_best = false;  // at the end, profile the best program if it has no profile yet
  // Like profile_best, but only if the best program is slower than the fastest known baseline.
  bool profile_slower = false;
  // On a GPU: minutes for certifying the best program; 0: no certificate. The certificate may also
  // use the minutes that the search did not use.
  double certify_minutes = 0;
  Json resolved_config = Json::object();  // every setting with its value and source
  // Whether the user chose the dialect. If not, programs for a task that is a CUDA kernel use plain
  // CUDA.
  bool dialect_asked = false;  // not recorded, because the journal records the dialect
};

}  // namespace cutegen::engine
