// SPDX-License-Identifier: Apache-2.0
// `cutegen compare TASK...`: compares strategies on the same tasks at equal budget, in a table.
#include <fmt/format.h>

#include "base/text.h"
#include "cli/command.h"
#include "cli/model_options.h"
#include "cli/runs_folder.h"
#include "cli/settings.h"
#include "cli/table_console.h"
#include "engine/suite/compare_table.h"

namespace cutegen::cli {
namespace {

struct CompareOptions {
  Settings settings;
  ModelOptions model;
  std::vector<std::string> files;
  std::string strategies = "cutegen,cudaforge,best-of-n", out = "compare", trace;
  double minutes = 0;
  int jobs = 1, evaluators = 0, repeats = 1;
  int64_t seed = 1;
};

class ConsoleCompare final : public engine::CompareObserver {
 public:
  explicit ConsoleCompare(const Globals& g) : console_(g) {}
  void on_cell(const engine::CompareCell& cell, size_t ended, size_t total) override {
    console_.row(engine::cell_header(), engine::cell_line(cell), ended, total);
  }
  void on_progress(const engine::CompareCell& cell, const std::string& line) override {
    console_.progress(cell.key() + ": " + line);
  }

 private:
  TableConsole console_;
};

Result<engine::CompareSettings> compare_settings(const CompareOptions& options,
                                                 const Config& config) {
  engine::CompareSettings s;
  CG_TRY(s.strategies, engine::parse_strategies(options.strategies));
  s.repeats = options.repeats;
  s.seed = options.seed;
  s.minutes = options.minutes;
  s.jobs = options.jobs;
  s.evaluators = engine::evaluators_of(options.jobs, options.evaluators);
  s.out = options.out;
  engine::OptimizeSettings& o = s.optimize;
  CG_TRY(o.asked, asked_accuracy(config));
  CG_CHECK(options.model.apply_to_many(config, s.evaluators, o));
  CG_TRY(s.strategies, engine::with_dialects(s.strategies, options.model.dialects()));
  // The limit of rounds must not end a run before it has used its evaluations.
  if (auto& agents = o.search.agents;
      agents && !agents->published && !options.model.gives_rounds()) {
    agents->rounds = int(o.search.budget.evaluations);
    agents->astra_rounds = agents->rounds;
  }
  return s;
}

Result<int> compare(const Globals& g, const CompareOptions& options) {
  CG_TRY(Config config, options.settings.resolve());
  CG_TRY(engine::CompareSettings settings, compare_settings(options, config));
  CG_TRY(auto store, open_runs(config));
  engine::Trace trace;
  if (!options.trace.empty()) settings.trace = &trace;
  engine::Comparison result;
  {
    ConsoleCompare observer(g);
    const std::vector<std::filesystem::path> files(options.files.begin(), options.files.end());
    CG_TRY(result,
           engine::run_compare(engine::real_parts(), g.ctx, *store, settings, files, observer));
  }
  if (!options.trace.empty()) CG_CHECK(trace.write(options.trace));
  std::string text = engine::compare_table(result);
  if (result.interrupted) text += "Interrupted. Run the same command again to continue.\n";
  text += fmt::format("Written: {0}/compare.json, {0}/compare.csv, {0}/curves.csv, {0}/programs\n",
                      sanitize(options.out, 200));
  print_result(g, engine::compare_json(settings, result), text);
  return result.exit_code();
}

void add_flags(CLI::App& command, CompareOptions& o) {
  command.add_option("TASK", o.files, "PyTorch files, as for `cutegen optimize`")->required();
  command.add_option(
      "--strategies", o.strategies,
      "strategies: cutegen, cudaforge, stark, astra, astra-single, best-of-n, climb;\n"
      "NAME:DIALECT fixes the dialect of one; with --dialect cute,cuda, each strategy runs\n"
      "once per dialect\n"
      "(default: cutegen,cudaforge,best-of-n)");
  o.settings.add(command, {"device", "model", "rewrites", "budget_evaluations", "python",
                           "runs_dir", "compile_memory", "require_sandbox"});
  add_accuracy(o.settings, command);
  command.add_option("--minutes", o.minutes, "time budget of each run (default: no limit)")
      ->check(CLI::Range(0.0, 100000.0));
  command.add_option("--repeats", o.repeats, "runs of each strategy on each task (default 1)")
      ->check(CLI::Range(1, 1000));
  command.add_option("--seed", o.seed, "seed for the order of the runs (default 1)")
      ->check(CLI::NonNegativeNumber);
  command.add_option("--jobs", o.jobs, "runs to do in parallel (default 1)")
      ->check(CLI::Range(1, 64));
  command
      .add_option("--evaluators", o.evaluators,
                  "evaluators that the runs share (default: one per job, at most one per core)")
      ->check(CLI::Range(1, 64));
  command.add_option("--trace", o.trace,
                     "write a timeline of the work to this file, in Chrome's trace format");
  command.add_option("--out", o.out, "folder for tables and best programs (default compare)");
  o.model.take_several_dialects();
  o.model.add(command);
}

}  // namespace

void add_compare(CLI::App& app, Globals& g) {
  CLI::App* command =
      app.add_subcommand("compare", "compare strategies on the same tasks with equal budgets");
  auto options = std::make_shared<CompareOptions>();
  add_flags(*command, *options);
  command->footer(
      "All runs have the same limits (--evaluations, --budget-usd, --budget-tokens, --minutes)\n"
      "and the same kind of evaluator. `cutegen runs`, `show` and `report` show these runs. The\n"
      "strategy climb searches with recipes and asks no model. The table has one line per run\n"
      "and one line per strategy. compare.json and curves.csv give the best time after k\n"
      "evaluations.\n"
      "After Ctrl-C, run the same command again to continue; you may add tasks, strategies and\n"
      "repeats.\n"
      "Example:\n"
      "  cutegen compare softmax.py gelu.py --strategies cutegen,cudaforge,best-of-n \\\n"
      "      --model anthropic:NAME --evaluations 20 --budget-usd 3 --repeats 3\n"
      "Exit codes: 0 at least one correct program, 2 user error, 3 no correct program,\n"
      "  5 unsupported, 6 environment, 130 interrupted.");
  command->callback([&g, options] {
    auto code = compare(g, *options);
    g.exit = code ? *code : report(g, code.error());
  });
}

}  // namespace cutegen::cli
