// SPDX-License-Identifier: Apache-2.0
// `cutegen handout RUN DIR`: writes a run's correct programs to a folder for another machine to
// judge.
#include <fmt/format.h>

#include "base/text.h"
#include "cli/command.h"
#include "cli/export_inputs.h"
#include "cli/runs_folder.h"
#include "cli/settings.h"
#include "engine/exchange/hand_out.h"

namespace cutegen::cli {
namespace {

struct HandoutOptions {
  Settings settings;
  std::string run, folder;
  size_t most = 8;
};

std::string told(const engine::HandedOut& out, const HandoutOptions& options) {
  return fmt::format(
      "written {}/: {} and {} program{} ({})\n"
      "on the other machine: cutegen eval {} --batch {} --out verdicts --device cuda:0\n"
      "back here:            cutegen import {} {} verdicts\n",
      options.folder, out.task.filename().string(), out.candidates.size(),
      out.candidates.size() == 1 ? "" : "s", join(out.candidates, ", "), out.task.string(),
      options.folder, options.run, options.folder);
}

Result<void> run(const Globals& g, const HandoutOptions& options) {
  CG_TRY(Config config, options.settings.resolve());
  CG_TRY(auto store, open_runs(config));
  CG_TRY(FoundRun found, find_run(*store, options.run));
  if (found.view.task) CG_CHECK(check_stands_alone(found.view.task->task));
  CG_TRY(engine::HandedOut out, engine::hand_out(found.view, options.folder, options.most));
  print_result(g,
               {{"schema", "cutegen.handout.v1"},
                {"run", found.info.id},
                {"folder", options.folder},
                {"task", out.task.string()},
                {"candidates", out.candidates}},
               sanitize(told(out, options), 8000));
  return {};
}

}  // namespace

void add_handout(CLI::App& app, Globals& g) {
  CLI::App* command = app.add_subcommand(
      "handout", "write a run's programs to a folder that another machine judges");
  auto options = std::make_shared<HandoutOptions>();
  command->add_option("RUN", options->run, "a run: its id, the start of its id, or last")
      ->required();
  command->add_option("DIR", options->folder, "folder to write; must be new or empty")->required();
  command
      ->add_option("--most", options->most,
                   "write at most this many programs: the best one, then the next fastest")
      ->check(CLI::Range(1, 100'000))
      ->capture_default_str();
  options->settings.add(*command, {"runs_dir"});
  command->footer(
      "Use this to propose programs on one machine and measure them on another: copy the folder\n"
      "to a machine with a GPU, judge it there with `cutegen eval --batch`, and bring the\n"
      "verdicts back with `cutegen import`.\n"
      "Example: cutegen handout last proposed");
  command->callback([&g, options] {
    auto done = run(g, *options);
    g.exit = done ? int(kExitOk) : report(g, done.error());
  });
}

}  // namespace cutegen::cli
