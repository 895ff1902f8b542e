// SPDX-License-Identifier: Apache-2.0
#include "cli/runs_folder.h"

#include <cstdlib>

namespace cutegen::cli {
namespace {

Result<std::filesystem::path> runs_folder(const Config& config) {
  if (!config.text("runs_dir").empty()) return config.text("runs_dir");
  if (const char* data = std::getenv("XDG_DATA_HOME"); data && *data)
    return std::filesystem::path(data) / "cutegen" / "runs";
  if (const char* home = std::getenv("HOME"); home && *home)
    return std::filesystem::path(home) / ".local" / "share" / "cutegen" / "runs";
  return world_error("there is no folder for runs: HOME is not set", "name one with --runs DIR");
}

}  // namespace

Result<std::unique_ptr<store::Store>> open_runs(const Config& config) {
  CG_TRY(std::filesystem::path folder, runs_folder(config));
  return store::Store::open(folder);
}

Result<FoundRun> find_run(store::Store& store, const std::string& run) {
  FoundRun found;
  CG_TRY(std::string id, store.resolve(run));
  CG_TRY(auto list, store.list());
  for (store::RunInfo& info : list)
    if (info.id == id) found.info = std::move(info);
  CG_TRY(found.events, store.read(id));
  CG_TRY(found.view, engine::view_run(found.events));
  return found;
}

}  // namespace cutegen::cli
