// SPDX-License-Identifier: Apache-2.0
// `cutegen bench --kernelbench DIR`: optimizes all tasks of a suite and prints a table.
#include <fmt/format.h>

#include "base/text.h"
#include "cli/command.h"
#include "cli/model_options.h"
#include "cli/runs_folder.h"
#include "cli/settings.h"
#include "cli/table_console.h"
#include "engine/suite/bench_table.h"

namespace cutegen::cli {
namespace {

struct BenchOptions {
  Settings settings;
  ModelOptions model;
  std::string suite, levels = "1", tasks, out = "bench";
  double minutes = 0;
  int jobs = 1, evaluators = 0;
  std::string trace;
  bool resume = false, no_profile = false;
  std::string baseline = kAuto;
};

class ConsoleBench final : public engine::BenchObserver {
 public:
  explicit ConsoleBench(const Globals& g) : console_(g) {}
  void on_row(const engine::BenchRow& row, size_t ended, size_t total) override {
    console_.row(engine::bench_header(), engine::bench_line(row), ended, total);
  }
  void on_progress(const engine::SuiteTask& task, const std::string& line) override {
    console_.progress(task.name + ": " + line);
  }

 private:
  TableConsole console_;
};

Result<engine::BenchSettings> bench_settings(const BenchOptions& options, const Config& config) {
  engine::BenchSettings s;
  s.out = options.out;
  s.per_task_minutes = options.minutes;
  s.jobs = options.jobs;
  s.evaluators = engine::evaluators_of(options.jobs, options.evaluators);
  s.resume = options.resume;
  engine::OptimizeSettings& o = s.optimize;
  CG_TRY(o.asked, asked_accuracy(config));
  CG_TRY(o.strategy, search::strategy_from(config.text("strategy")));
  o.baselines = options.baseline == kAuto;
  o.profile_slower = o.baselines && !options.no_profile;
  CG_CHECK(options.model.apply_to_many(config, s.evaluators, o));
  CG_CHECK(search::make_strategy(o.strategy, o.search));
  return s;
}

Result<int> bench(const Globals& g, const BenchOptions& options) {
  CG_TRY(Config config, options.settings.resolve());
  CG_TRY(engine::BenchSettings settings, bench_settings(options, config));
  CG_TRY(auto levels, engine::parse_numbers(options.levels, "--levels"));
  std::vector<engine::NumberRange> numbers;
  if (!options.tasks.empty()) {
    CG_TRY(numbers, engine::parse_numbers(options.tasks, "--tasks"));
  }
  CG_TRY(auto tasks, engine::find_suite(options.suite, levels, numbers));
  CG_TRY(auto store, open_runs(config));
  engine::BenchReport report;
  {
    ConsoleBench observer(g);
    engine::Trace trace;
    if (!options.trace.empty()) settings.trace = &trace;
    CG_TRY(report,
           engine::run_bench(engine::real_parts(), g.ctx, *store, settings, tasks, observer));
    if (!options.trace.empty()) CG_CHECK(trace.write(options.trace));
  }
  std::string text = engine::bench_table(report.rows);
  if (report.interrupted) text += "Interrupted. Run the same command with --resume to continue.\n";
  text += fmt::format(
      "Written: {0}/bench.html, {0}/bench.json, {0}/bench.csv, {0}/summary.csv, {0}/programs\n",
      sanitize(options.out, 200));
  print_result(g, engine::bench_json(settings, report), text);
  return report.exit_code();
}

}  // namespace

void add_bench(CLI::App& app, Globals& g) {
  CLI::App* command =
      app.add_subcommand("bench", "optimize every task of a suite and print a table");
  auto options = std::make_shared<BenchOptions>();
  command
      ->add_option("--kernelbench", options->suite,
                   "a checkout of KernelBench, or a folder with level1, level2, ...")
      ->required();
  command->add_option("--levels", options->levels, "levels, such as 1 or 1,2 (default 1)");
  command->add_option("--tasks", options->tasks, "task numbers, such as 19-32,36 (default: all)");
  options->settings.add(*command, {"device", "model", "strategy", "rewrites", "budget_evaluations",
                                   "python", "runs_dir", "compile_memory", "require_sandbox"});
  add_accuracy(options->settings, *command);
  command->add_option("--jobs", options->jobs, "tasks to optimize in parallel (default 1)")
      ->check(CLI::Range(1, 64));
  command
      ->add_option("--evaluators", options->evaluators,
                   "evaluators that the tasks share (default: one per job, at most one per core)")
      ->check(CLI::Range(1, 64));
  command->add_option("--trace", options->trace,
                      "write a timeline of the work to this file, in Chrome's trace format");
  command
      ->add_option(
          "--per-task-minutes", options->minutes,
          "time budget per task (default: no limit); no task runs longer than twice this time")
      ->check(CLI::Range(0.0, 100000.0));
  command->add_option("--out", options->out, "folder for tables and best programs (default bench)");
  command
      ->add_option("--baseline", options->baseline,
                   "on a GPU: auto (use cached baselines, else time eager) or none (default auto)")
      ->check(CLI::IsMember({kAuto, "none"}));
  command->add_flag("--no-profile", options->no_profile,
                    "do not profile programs that are slower than their best baseline");
  command->add_flag("--resume", options->resume,
                    "continue the bench in --out and keep the tasks that have ended");
  options->model.add(*command);
  command->footer(
      "Each task is a run; `cutegen runs`, `show` and `report` show it. The table has one line\n"
      "per task with the times of its first and its best correct program, the floor (the time\n"
      "of the least memory traffic, or of a launch) and best / floor; then one line per class\n"
      "of tasks, and the number of tasks with each status. After Ctrl-C, run the same command\n"
      "with --resume to continue.\n"
      "Example:\n"
      "  cutegen bench --kernelbench ../KernelBench --levels 1 --tasks 19-32,36 --out level1\n"
      "Exit codes: 0 at least one correct program, 2 user error, 3 no correct program,\n"
      "  5 unsupported, 6 environment, 130 interrupted.");
  command->callback([&g, options] {
    auto code = bench(g, *options);
    g.exit = code ? *code : report(g, code.error());
  });
}

}  // namespace cutegen::cli
