// SPDX-License-Identifier: Apache-2.0
// Opens the folder of runs, and finds one run for a command.
//
// Contract: --runs (the setting runs_dir), else cutegen/runs in $XDG_DATA_HOME or ~/.local/share.
// Example: CG_TRY(auto store, open_runs(config)); CG_TRY(FoundRun run, find_run(*store, "last"));
#pragma once

#include "base/config.h"
#include "engine/record/view.h"

namespace cutegen::cli {

struct FoundRun {
  store::RunInfo info;
  std::vector<Event> events;
  engine::RunView view;
};

Result<std::unique_ptr<store::Store>> open_runs(const Config& config);
Result<FoundRun> find_run(store::Store& store, const std::string& run);

}  // namespace cutegen::cli
