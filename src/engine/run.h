// SPDX-License-Identifier: Apache-2.0
// The run loop: binds a strategy to proposers and the evaluator, and writes the journal.
//
// Contract: every event is committed before the next action starts; resume() folds the journal and
// goes on. Stopping the Context (Ctrl-C) ends the run after the event in hand, state "interrupted".
//
// Example: CG_TRY(auto outcome, optimize(ctx, store, {.file = "relu.py"}, observer));
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "eval/client.h"
#include "search/strategy.h"
#include "store/store.h"

namespace cutegen {

// How a model is reached and what it may cost; unused by `builtin`.
struct ModelSettings {
  std::string url;                         // empty: the provider's own
  std::filesystem::path key_file, prices;  // empty: the environment; the shipped prices
  double relay_minutes = 0;                // for an answer file; 0: for ever
  std::string effort;                      // of reasoning
  std::optional<double> temperature;
  int64_t prompt_tokens = 24000;  // the most of one question, estimated
  int reasks = 2;                 // of one question, when its answer does not apply
  std::string tools = "off";      // "on", "off"; when a run begins also "auto"
  int tool_calls = 8;             // of one question
  int64_t run_tool_calls = 400;   // of the whole run
  double usd = 0;                 // 0: no limit
  int64_t tokens = 0;
};

struct OptimizeSettings {
  std::filesystem::path file;
  std::string strategy = "cutegen", model = "builtin";
  EvaluatorOptions evaluator;
  AskedAccuracy asked;  // of the task, beside its side file
  StrategySettings search;
  ModelSettings model_settings;
  std::filesystem::path out;  // folder for the best program so far; empty: none is written
  bool baselines = true;      // on a GPU: said before the first step, and what is gained at the end
  bool profile_best = false;  // at the end, where the best program has no profile
  bool profile_slower = false;  // the same, where it is slower than the fastest known baseline
  // On a GPU: how long the best program's certificate may take at the end (and what the search left
  // of its minutes); 0: none is made.
  double certify_minutes = 0;
  Json resolved_config = Json::object();  // every setting with its source
};

struct RunResult {
  std::string run_id, reason;
  std::optional<Candidate> best;
  std::optional<Verdict> best_verdict;
  double floor_ns = 0;
  std::optional<double> first_ns;  // the first correct candidate's time
  int64_t evaluations = 0;
  bool interrupted = false;
  // With nothing correct: the status that every verdict had, if they had one in common.
  std::optional<Status> all_verdicts;
};

// What a person sees while a run goes on; called from the run's thread.
class RunObserver {
 public:
  virtual ~RunObserver() = default;
  virtual void on_event(const Event& event) = 0;
  virtual void on_progress(const std::string& line) = 0;
};

[[nodiscard]] Result<RunResult> optimize(const Context& ctx, Store& store,
                                         const OptimizeSettings& settings, RunObserver& observer);
[[nodiscard]] Result<RunResult> resume_run(const Context& ctx, Store& store, const std::string& run,
                                           RunObserver& observer);
// The report page of a run: one self-contained HTML file.
[[nodiscard]] Result<std::string> report_html(const RunInfo& info,
                                              const std::vector<Event>& events);

}  // namespace cutegen
