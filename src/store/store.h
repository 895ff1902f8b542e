// SPDX-License-Identifier: Apache-2.0
// Store: runs as append-only journals of events, and blobs by content hash, in one SQLite file.
//
// Contract: append() commits before it returns; seq counts from 1 without gaps. Every other table
// is a projection of events; the store rebuilds it when its version differs. The first event of a
// run is `opened`; the store adds the fields of RunInfo to it, as "run". The store keeps long texts
// once, as blobs; callers do not notice. Each run has at most one writer (a lock that dies with the
// process) and any number of readers. The store refuses network file systems and says why.
//
// Example:
//   CG_TRY(auto s, Store::open("runs")); CG_TRY(auto run, s->create({...}));
//   run->append(EventType::opened, data);
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/candidate.h"

namespace cutegen::store {

// unreadable: a newer version of cutegen wrote its events.
enum class RunState { running, finished, interrupted, unreadable };
using cutegen::to_string;
Names<RunState> enum_names(RunState);

struct RunInfo {
  std::string id;  // a date and six letters or digits: "20261121-k3v9qa"
  std::string task_name, task_file, device, strategy, model;
  RunState state = RunState::running;
  std::string created;  // ISO 8601, UTC
  int64_t events = 0, evaluations = 0;
  std::optional<double> best_ns, floor_ns;
  // Times by candidate, used only by fold_run_info().
  std::map<std::string, std::optional<double>> times_ns;
};

class RunJournal {
 public:
  virtual ~RunJournal() = default;
  virtual const std::string& id() const = 0;
  virtual Result<Event> append(EventType type, const Json& data) = 0;
  virtual Result<std::vector<Event>> events() = 0;
};

class Store {
 public:
  static Result<std::unique_ptr<Store>> open(const std::filesystem::path& dir);
  virtual ~Store() = default;
  virtual Result<std::unique_ptr<RunJournal>> create(const RunInfo& info) = 0;
  // The full id of a run. `run` is an id, a unique prefix of it (or of its letters), or "last".
  virtual Result<std::string> resolve(const std::string& run) = 0;
  // Opens a run for writing; an error if another process writes it.
  virtual Result<std::unique_ptr<RunJournal>> resume(const std::string& run) = 0;
  virtual Result<std::vector<Event>> read(const std::string& run) = 0;
  virtual Result<std::vector<RunInfo>> list() = 0;
  virtual Result<std::string> put_blob(std::string_view bytes) = 0;
  virtual Result<std::string> get_blob(const std::string& hash) = 0;
};

}  // namespace cutegen::store
