// SPDX-License-Identifier: Apache-2.0
// Store: keeps runs and blobs in one SQLite file: a run as an append-only journal of events, a blob
// under the hash of its content.
//
// Contract: append() commits the event before it returns. Event::seq counts the events of a run
// from 1 without gaps. The store computes the table of runs from the events, and rebuilds the table
// if the table's version differs. The first event of a run is `opened`, to which the store adds the
// run's RunInfo as the field "run". The store moves long texts of an event into blobs, and restores
// them when it reads the event. Each run has any number of readers and at most one writer, which
// holds a lock until its process ends. The store refuses folders on network file systems.
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

// `unreadable` means that a newer version of cutegen wrote the run's events.
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
  // The time of each candidate; only fold_run_info() uses these times.
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
  // Returns the full id of a run. `run` is an id, a unique prefix of an id or of its part after the
  // dash, or "last".
  virtual Result<std::string> resolve(const std::string& run) = 0;
  // Opens a run for writing. Returns an error if another process writes to this run.
  virtual Result<std::unique_ptr<RunJournal>> resume(const std::string& run) = 0;
  virtual Result<std::vector<Event>> read(const std::string& run) = 0;
  virtual Result<std::vector<RunInfo>> list() = 0;
  virtual Result<std::string> put_blob(std::string_view bytes) = 0;
  virtual Result<std::string> get_blob(const std::string& hash) = 0;
};

}  // namespace cutegen::store
