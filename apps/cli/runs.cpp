// SPDX-License-Identifier: Apache-2.0
// `cutegen runs`: lists the runs in the folder of runs, newest first.
#include <fmt/format.h>

#include "base/text.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/runs_folder.h"
#include "cli/settings.h"

namespace cutegen::cli {
namespace {

Json info_json(const store::RunInfo& info) {
  auto optional = [](const std::optional<double>& v) { return v ? Json(*v) : Json(nullptr); };
  return Json{{"run", info.id},
              {"state", to_string(info.state)},
              {"task", info.task_name},
              {"file", info.task_file},
              {"device", info.device},
              {"strategy", info.strategy},
              {"model", info.model},
              {"created", info.created},
              {"evaluations", info.evaluations},
              {"best_ns", optional(info.best_ns)},
              {"floor_ns", optional(info.floor_ns)}};
}

std::string info_line(const store::RunInfo& info) {
  return fmt::format("{:<16} {:<12} {:<24} {:<10} {:>6} {:>10} {:>10}\n", info.id,
                     to_string(info.state), sanitize(info.task_name, 24), sanitize(info.device, 10),
                     info.evaluations, info.best_ns ? human_ns(*info.best_ns) : "-",
                     info.floor_ns ? human_ns(*info.floor_ns) : "-");
}

Result<void> list_runs(const Globals& g, const Settings& settings) {
  CG_TRY(Config config, settings.resolve());
  CG_TRY(auto store, open_runs(config));
  CG_TRY(auto list, store->list());
  Json document{{"schema", "cutegen.runs.v1"}, {"runs", Json::array()}};
  std::string text = fmt::format("{:<16} {:<12} {:<24} {:<10} {:>6} {:>10} {:>10}\n", "run",
                                 "state", "task", "device", "evals", "best", "floor");
  for (const store::RunInfo& info : list) {
    document["runs"].push_back(info_json(info));
    text += info_line(info);
  }
  if (list.empty()) text = "No runs yet. Start one with `cutegen optimize FILE`.\n";
  print_result(g, document, text);
  return {};
}

}  // namespace

void add_runs(CLI::App& app, Globals& g) {
  CLI::App* command = app.add_subcommand("runs", "list the runs, newest first");
  auto settings = std::make_shared<Settings>();
  settings->add(*command, {"runs_dir"});
  command->footer(
      "A run is running, finished or interrupted (by Ctrl-C, or because its process died).\n"
      "Continue an interrupted run with `cutegen resume`.\n"
      "Example:\n"
      "  cutegen runs --json");
  command->callback([&g, settings] {
    auto done = list_runs(g, *settings);
    g.exit = done ? int(kExitOk) : report(g, done.error());
  });
}

}  // namespace cutegen::cli
