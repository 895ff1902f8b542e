// SPDX-License-Identifier: Apache-2.0
// `cutegen bench --kernelbench DIR`: optimize over the tasks of a suite, and a table of it.
#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "base/text.h"
#include "cli/command.h"
#include "cli/model_options.h"
#include "cli/runs_folder.h"
#include "cli/settings.h"
#include "engine/bench_table.h"

namespace cutegen::cli {
namespace {

struct Options {
  Settings settings;
  ModelOptions model;
  std::string suite, levels = "1", tasks, out = "bench";
  double minutes = 0;
  int jobs = 1;
  bool resume = false;
};

// Each finished task is a line on stderr; a terminal also sees what is going on.
class ConsoleBench final : public BenchObserver {
 public:
  explicit ConsoleBench(const Globals& g) : g_(g) {}
  ~ConsoleBench() override { clear(); }

  void on_row(const BenchRow& row, size_t ended, size_t total) override {
    if (g_.json || g_.quiet) return;
    clear();
    if (!header_) std::fputs(("          " + bench_header()).c_str(), stderr);
    header_ = true;
    std::string count = fmt::format("{}/{}", ended, total);
    std::fputs(fmt::format("{:<10}{}", count, bench_line(row)).c_str(), stderr);
  }

  void on_progress(const SuiteTask& task, const std::string& line) override {
    if (g_.json || g_.quiet || !g_.error_tty) return;
    std::string text = sanitize(task.name + ": " + line, 78);
    for (char& c : text)
      if (c == '\n') c = ' ';
    std::fprintf(stderr, "\r\x1b[K%s", text.c_str());
    std::fflush(stderr);
    status_ = true;
  }

 private:
  void clear() {
    if (status_) std::fputs("\r\x1b[K", stderr);
    status_ = false;
  }
  const Globals& g_;
  bool header_ = false, status_ = false;
};

Result<BenchSettings> bench_settings(const Options& options, const Config& config) {
  BenchSettings s;
  s.out = options.out;
  s.per_task_minutes = options.minutes;
  s.jobs = options.jobs;
  s.resume = options.resume;
  OptimizeSettings& o = s.optimize;
  o.strategy = config.text("strategy");
  o.model = config.text("model");
  CG_CHECK(check_model(o.model));
  CG_CHECK(options.model.apply(o));
  CG_CHECK(make_strategy(o.strategy, o.search));
  o.evaluator.device = config.text("device");
  o.evaluator.python = config.text("python");
  o.evaluator.require_sandbox = config.boolean("require_sandbox");
  const int cores = int(std::max(1u, std::thread::hardware_concurrency()));
  if (s.jobs > 1) o.evaluator.runner_threads = std::max(1, cores / s.jobs);
  o.search.budget.evaluations = config.integer("budget_evaluations");
  o.resolved_config = config.json();
  return s;
}

Result<int> bench(const Globals& g, const Options& options) {
  CG_TRY(Config config, options.settings.resolve());
  CG_TRY(BenchSettings settings, bench_settings(options, config));
  CG_TRY(auto levels, parse_numbers(options.levels, "--levels"));
  std::vector<NumberRange> numbers;
  if (!options.tasks.empty()) {
    CG_TRY(numbers, parse_numbers(options.tasks, "--tasks"));
  }
  CG_TRY(auto tasks, find_suite(options.suite, levels, numbers));
  CG_TRY(auto store, open_runs(config));
  BenchReport report;
  {
    ConsoleBench observer(g);
    CG_TRY(report, run_bench(real_parts(), g.ctx, *store, settings, tasks, observer));
  }
  std::string text = bench_table(report.rows);
  if (report.interrupted) text += "Interrupted; the same command with --resume goes on.\n";
  text += fmt::format("Written: {0}/bench.json, {0}/bench.csv, {0}/programs\n",
                      sanitize(options.out, 200));
  print_result(g, bench_json(settings, report), text);
  return report.exit_code();
}

}  // namespace

void add_bench(CLI::App& app, Globals& g) {
  CLI::App* command = app.add_subcommand("bench", "optimize every task of a suite, with a table");
  auto options = std::make_shared<Options>();
  command
      ->add_option("--kernelbench", options->suite,
                   "a checkout of KernelBench, or a folder with level1, level2, ...")
      ->required();
  command->add_option("--levels", options->levels, "such as 1 or 1,2 (default 1)");
  command->add_option("--tasks", options->tasks, "numbers, such as 19-32,36 (default: all)");
  options->settings.add(*command, {"device", "model", "strategy", "budget_evaluations", "python",
                                   "runs_dir", "require_sandbox"});
  command
      ->add_option("--jobs", options->jobs, "tasks at a time, each with its evaluator (default 1)")
      ->check(CLI::Range(1, 64));
  command
      ->add_option("--per-task-minutes", options->minutes,
                   "time for each task (default: no limit); it is cut off at twice that")
      ->check(CLI::Range(0.0, 100000.0));
  command->add_option("--out", options->out, "folder of tables and best programs (default bench)");
  command->add_flag("--resume", options->resume,
                    "go on with the bench in --out: what has ended is kept");
  options->model.add(*command);
  command->footer(
      "Each task is a run in the store (`cutegen runs`, `show`, `report`). Columns: time of the\n"
      "first correct program and of the best, roofline floor, best / floor. The table ends with a\n"
      "line for each class of tasks and the counts. After Ctrl-C, --resume goes on.\n"
      "Example:\n"
      "  cutegen bench --kernelbench ../KernelBench --levels 1 --tasks 19-32,36 --out level1\n"
      "Exit codes: 0 something was correct, 2 user error, 3 nothing correct, 5 unsupported,\n"
      "  6 environment, 130 interrupted.");
  command->callback([&g, options] {
    auto code = bench(g, *options);
    g.exit = code ? *code : report(g, code.error());
  });
}

}  // namespace cutegen::cli
