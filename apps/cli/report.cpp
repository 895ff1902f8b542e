// SPDX-License-Identifier: Apache-2.0
// `cutegen report RUN`: writes the run as one self-contained HTML page.
#include "engine/report/report.h"

#include "base/file.h"
#include "cli/command.h"
#include "cli/runs_folder.h"
#include "cli/settings.h"

namespace cutegen::cli {
namespace {

struct ReportOptions {
  Settings settings;
  std::string run = "last", file;
};

Result<void> write_report(const Globals& g, const ReportOptions& options) {
  CG_TRY(Config config, options.settings.resolve());
  CG_TRY(auto store, open_runs(config));
  CG_TRY(FoundRun run, find_run(*store, options.run));
  CG_TRY(std::string page, engine::report_html(run.info, run.events));
  if (options.file == "-") {
    print_text(page);
    return {};
  }
  std::string file = options.file.empty() ? "cutegen-" + run.info.id + ".html" : options.file;
  CG_CHECK(write_file(file, page));
  Json document{{"schema", "cutegen.report.v1"}, {"run", run.info.id}, {"file", file}};
  print_result(g, document, "written " + file + "\n");
  return {};
}

}  // namespace

void add_report(CLI::App& app, Globals& g) {
  CLI::App* command = app.add_subcommand("report", "write a run as one HTML page");
  auto options = std::make_shared<ReportOptions>();
  command->add_option("RUN", options->run,
                      "a run: its id, the start of its id, or last (default last)");
  command->add_option("-o,--out,--output", options->file,
                      "file to write; - for stdout (default cutegen-RUN.html)");
  options->settings.add(*command, {"runs_dir"});
  command->footer(
      "The page shows the verdict, every step with its diff, the time of each step against the\n"
      "bounds, the cost, the limits, and how to reproduce the run. It loads nothing from the\n"
      "network.\n"
      "Example:\n"
      "  cutegen report last -o softmax.html");
  command->callback([&g, options] {
    auto done = write_report(g, *options);
    g.exit = done ? int(kExitOk) : report(g, done.error());
  });
}

}  // namespace cutegen::cli
