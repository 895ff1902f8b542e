// SPDX-License-Identifier: Apache-2.0
// `cutegen resume [RUN]`: continues a run that was interrupted, killed or cut off by a power
// failure.
#include <fmt/format.h>

#include "cli/command.h"
#include "cli/run_observer.h"
#include "cli/runs_folder.h"
#include "cli/settings.h"
#include "toolchain/compile_memory.h"

namespace cutegen::cli {
namespace {

struct ResumeOptions {
  Settings settings;
  std::string run = "last";
  double fail_under = 0;
};

Result<int> resume(const Globals& g, const ResumeOptions& options) {
  CG_TRY(Config config, options.settings.resolve());
  CG_TRY(auto store, open_runs(config));
  CG_TRY(FoundRun found, find_run(*store, options.run));
  CG_CHECK(toolchain::grant_compile_memory(config.text("compile_memory"), 1));
  ConsoleObserver observer(g);
  CG_CHECK(observer.seed(found.events));
  if (!g.json)
    print_text(fmt::format("run {}: {} programs tried so far{}\n", found.info.id,
                           found.view.steps.size(),
                           found.view.best.empty() ? "" : ", best is " + found.view.best));
  CG_TRY(engine::RunResult outcome, engine::resume_run(g.ctx, *store, found.info.id, observer));
  return observer.finish(outcome, options.fail_under);
}

}  // namespace

void add_resume(CLI::App& app, Globals& g) {
  CLI::App* command = app.add_subcommand("resume", "continue an interrupted run");
  auto options = std::make_shared<ResumeOptions>();
  command->add_option("RUN", options->run,
                      "a run: its id, the start of its id, or last (default last)");
  add_fail_under(*command, options->fail_under);
  options->settings.add(*command, {"runs_dir", "compile_memory"});
  command->footer(
      "cutegen keeps finished evaluations and repeats the unfinished step, with the recorded\n"
      "settings of the run. The task file must not have changed.\n"
      "Examples:\n"
      "  cutegen resume             the last run\n"
      "  cutegen resume 20261121-k3 a run, named by the start of its id");
  command->callback([&g, options] {
    auto code = resume(g, *options);
    g.exit = code ? *code : report(g, code.error());
  });
}

}  // namespace cutegen::cli
