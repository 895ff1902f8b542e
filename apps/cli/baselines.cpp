// SPDX-License-Identifier: Apache-2.0
// `cutegen baselines`: times PyTorch's baselines on a GPU and keeps the times for searches.
#include <fmt/format.h>

#include <thread>

#include "base/text.h"
#include "cli/command.h"
#include "cli/settings.h"
#include "cli/table_console.h"
#include "engine/baselines/baseline_table.h"

namespace cutegen::cli {
namespace {

struct BaselinesOptions {
  Settings settings;
  std::vector<std::string> files, baselines;
  std::string suite, levels = "1", tasks;
  int jobs = 0;
  double build_seconds = 120, minutes = 0;
  bool again = false;
};

class Console final : public engine::BaselineObserver {
 public:
  Console(const Globals& g, std::vector<std::string> kinds)
      : g_(g), console_(g), kinds_(std::move(kinds)) {}
  void on_row(const engine::BaselineRow& row, size_t ended, size_t total) override {
    if (g_.json && !g_.quiet)  // progress lines; the document comes last
      fmt::print(stderr, "{}/{} {}", ended, total, engine::baseline_line(row, kinds_));
    console_.row(engine::baseline_header(kinds_), engine::baseline_line(row, kinds_), ended, total);
  }
  void on_progress(const std::string& line) override { console_.progress(line); }

 private:
  const Globals& g_;
  TableConsole console_;
  std::vector<std::string> kinds_;
};

Result<std::vector<engine::SuiteTask>> tasks_of(const BaselinesOptions& options) {
  if (options.files.empty() == options.suite.empty())
    return user_error("give task files or --kernelbench, and not both", "cutegen baselines",
                      "write: cutegen baselines FILE..., or cutegen baselines --kernelbench DIR");
  if (!options.suite.empty()) {
    CG_TRY(auto levels, engine::parse_numbers(options.levels, "--levels"));
    std::vector<engine::NumberRange> numbers;
    if (!options.tasks.empty()) {
      CG_TRY(numbers, engine::parse_numbers(options.tasks, "--tasks"));
    }
    return engine::find_suite(options.suite, levels, numbers);
  }
  std::vector<engine::SuiteTask> out;
  for (const std::string& file : options.files) {
    const std::filesystem::path path(file);
    out.push_back(
        {.level = 0, .number = int(out.size()) + 1, .name = path.stem().string(), .file = path});
  }
  return out;
}

// Leave two cores for the process that measures; each worker uses one core.
int default_jobs() {
  return std::clamp(int(std::thread::hardware_concurrency()) - 2, 1, 14);
}

Result<int> run(const Globals& g, const BaselinesOptions& options) {
  CG_TRY(Config config, options.settings.resolve());
  CG_TRY(auto tasks, tasks_of(options));
  engine::BaselineSuiteSettings s;
  CG_TRY(s.device, DeviceName::parse(config.text("device")));
  s.python = config.text("python");
  CG_TRY(s.asked, asked_accuracy(config));
  s.require_sandbox = config.boolean("require_sandbox");
  const auto& kinds = options.baselines.empty() ? eval::kBaselineKinds : options.baselines;
  CG_TRY(s.baselines, eval::baselines_named(kinds));
  s.jobs = std::min(options.jobs > 0 ? options.jobs : default_jobs(), int(tasks.size()));
  s.limits.build = Nanoseconds(int64_t(options.build_seconds * 1e9));
  s.minutes = options.minutes;
  s.again = options.again;
  engine::BaselineCache cache;
  engine::BaselineReport report;
  {
    Console console(g, kinds);
    CG_TRY(report, engine::measure_baselines(eval::EvaluatorClient::start, g.ctx, cache, s, tasks,
                                             console));
  }
  std::string text = engine::baseline_table(report, kinds);
  if (report.interrupted) text += "Interrupted. Run the same command again to continue.\n";
  text += "Later searches use the times in " + sanitize(cache.folder().string(), 300) + "\n";
  print_result(g, engine::baseline_json(report), text);
  return report.exit_code();
}

}  // namespace

void add_baselines(CLI::App& app, Globals& g) {
  CLI::App* command =
      app.add_subcommand("baselines", "time PyTorch's baselines for many tasks on a GPU");
  auto options = std::make_shared<BaselinesOptions>();
  command->add_option("FILE", options->files, "task files");
  command->add_option("--kernelbench", options->suite,
                      "a checkout of KernelBench, or a folder with level1, level2, ...");
  command->add_option("--levels", options->levels, "levels, such as 1 or 1,2 (default 1)");
  command->add_option("--tasks", options->tasks, "task numbers, such as 19-32,36 (default: all)");
  command
      ->add_option("--baseline", options->baselines,
                   "baselines to time: eager, eager-fp32, eager-tf32, compile, compile-max or "
                   "MODULE:CALLABLE\n"
                   "(default: the first five)")
      ->delimiter(',');
  options->settings.add(*command, {"device", "python", "require_sandbox"});
  add_accuracy(options->settings, *command);
  command
      ->add_option("--jobs", options->jobs,
                   "number of torch workers (default: all cores but two, at most 14)")
      ->check(CLI::Range(1, 64));
  command
      ->add_option("--build-seconds", options->build_seconds,
                   "time limit to build one baseline with torch.compile (default 120)")
      ->check(CLI::Range(1.0, 3600.0));
  command
      ->add_option("--minutes", options->minutes,
                   "time limit for all tasks (default: none); the next call measures the rest")
      ->check(CLI::NonNegativeNumber);
  command->add_flag("--again", options->again, "also measure tasks that already have times");
  command->footer(
      "For each task, cutegen traces and admits the task, computes the float64 truth at the\n"
      "official shape and times the baselines. A time is the median of single calls with a cold\n"
      "L2. Workers build baselines with torch.compile in parallel, but each timing has the GPU\n"
      "to itself. eager-fp32 is eager without TF32 in cuDNN; it is timed only if the task has a\n"
      "float32 convolution. The evaluator checks eager baselines against the truth, as it does\n"
      "programs. A baseline that rounds more coarsely than the math mode counts as the best one\n"
      "only if it is within the task's tolerance. `optimize` and `bench` use the cached times.\n"
      "They time two control kernels to scale these times to the present speed of the GPU. A\n"
      "task that raises an exception, needs too much memory or takes too long gets a row with\n"
      "the reason. After Ctrl-C, run the same command again to continue.\n"
      "Example: cutegen baselines --kernelbench ../KernelBench --levels 1,2 --device cuda:0\n"
      "Exit codes: 0 at least one task was timed, 2 user error, 3 no task was timed,\n"
      "  6 environment (no GPU), 130 interrupted.");
  command->callback([&g, options] {
    auto code = run(g, *options);
    g.exit = code ? *code : report(g, code.error());
  });
}

}  // namespace cutegen::cli
