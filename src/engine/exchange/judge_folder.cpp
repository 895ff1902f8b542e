// SPDX-License-Identifier: Apache-2.0
#include "engine/exchange/judge_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <thread>

#include "base/file.h"
#include "base/hash.h"
#include "device/cuda/gpu_info.h"
#include "eval/api/foreign_file.h"

namespace cutegen::engine {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSchema = "cutegen.entry.v1";
constexpr size_t kMostFolderEntries = 100'000;

// An entry of the folder. An existing verdict is reused only if the entry has the same `key`.
struct Entry {
  std::string name;
  fs::path task;
  KernelProgram program;
  std::optional<torch::ForeignFile> foreign;  // set for a third-party solution
  Json key;
};

// Names the device that the times belong to: a simulator, or the model that all given GPUs share.
Result<std::string> device_of(const std::vector<eval::EvaluatorOptions>& evaluators) {
  std::string out;
  for (const eval::EvaluatorOptions& one : evaluators) {
    std::string name = one.device.text();
    if (one.device.is_gpu()) {
      CG_TRY(const device::cuda::Driver* driver, device::cuda::load_driver());
      CG_TRY(device::cuda::Found found, device::cuda::find_device(*driver, one.device));
      name = found.identity.gpu;
    }
    if (!out.empty() && name != out)
      return user_error(fmt::format("times of {} and of {} cannot be compared", out, name),
                        "--device", "name devices of one kind");
    out = name;
  }
  return out;
}

Result<std::vector<std::string>> names_in(const fs::path& folder) {
  std::error_code error;
  std::vector<std::string> out;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename();
    if (name.starts_with(".") || !at->is_directory()) continue;
    out.push_back(name);
    if (out.size() > kMostFolderEntries)
      return user_error("the folder has too many entries", folder.string(), "split the folder");
  }
  if (error)
    return user_error("the folder cannot be read: " + error.message(), folder.string(),
                      "give a folder of programs, each a folder with plan.json");
  if (out.empty())
    return user_error("the folder contains no entry", folder.string(),
                      "an entry is a folder with plan.json, its sources and task.py (not needed if "
                      "you give TASK)");
  std::sort(out.begin(), out.end());
  return out;
}

fs::path task_of(const JudgeFolderSettings& settings, const std::string& name) {
  std::error_code error;
  const fs::path own = settings.in / name / "task.py";
  return fs::exists(own, error) ? own : settings.task;
}

Result<Entry> read_entry(const JudgeFolderSettings& settings, const std::string& device,
                         const std::string& name) {
  Entry e;
  e.name = name;
  const fs::path folder = settings.in / name;
  e.task = task_of(settings, name);
  if (e.task.empty())
    return user_error("the entry has no task", folder.string(),
                      "add task.py to the entry, or give one TASK for all");
  CG_TRY(std::string text, read_file(e.task));
  CG_TRY(e.foreign, eval::find_foreign(folder));
  if (!e.foreign) {
    CG_TRY(e.program, load_program(folder));
  }
  e.key = {{"program_id", e.foreign ? eval::foreign_id(*e.foreign) : program_id(e.program)},
           {"task_sha256", sha256(text)},
           {"device", device},
           {"up_to", to_string(settings.up_to)}};
  const Json asked = to_json(settings.asked);
  for (const auto& [key, entry] : asked.items()) e.key[key] = entry["value"];
  return e;
}

void put(FolderRow& row, const Verdict& verdict) {
  row.status = row_status(verdict.status);
  row.detail = verdict.feedback.headline;
  row.foreign = eval::is_foreign(verdict);
  if (verdict.timing) row.time_ns = verdict.timing->time_ns;
}

// The entries of one task, sorted by name.
struct Group {
  std::vector<FolderRow*> rows;
  size_t next = 0;
  bool taken = false;  // an evaluator has opened the task
  size_t left() const { return rows.size() - next; }
};

class Batch {
 public:
  Batch(const Parts& parts, const Context& ctx, const JudgeFolderSettings& settings,
        std::string device, FolderObserver& observer, std::vector<std::string> names)
      : parts_(parts),
        ctx_(ctx),
        settings_(settings),
        device_(std::move(device)),
        observer_(observer) {
    for (std::string& name : names) rows_.push_back({.name = std::move(name)});
    std::map<std::string, size_t> at;  // key: the task's text
    for (FolderRow& row : rows_) {
      auto text = read_file(task_of(settings_, row.name));
      auto [group, fresh] = at.try_emplace(text ? sha256(*text) : "", groups_.size());
      if (fresh) groups_.emplace_back();
      groups_[group->second].rows.push_back(&row);
    }
  }

  Result<std::vector<FolderRow>> run() {
    std::vector<std::thread> threads;
    threads.reserve(settings_.evaluators.size());
    for (const eval::EvaluatorOptions& options : settings_.evaluators)
      threads.emplace_back([this, options] { work(options); });
    for (std::thread& t : threads) t.join();
    if (trouble_ && ended_ < rows_.size() && !ctx_.done()) return fail(*trouble_);
    return std::move(rows_);
  }

 private:
  fs::path verdict_of(const std::string& name) const { return settings_.out / (name + ".json"); }

  // Prefers the task that this evaluator has open, then one that no evaluator has opened, then the
  // one with the most entries left.
  FolderRow* next(Group*& mine) {
    std::lock_guard hold(lock_);
    if (!mine || !mine->left()) {
      mine = nullptr;
      for (Group& g : groups_) {
        if (!g.left()) continue;
        if (!mine || (mine->taken && (!g.taken || g.left() > mine->left()))) mine = &g;
      }
    }
    if (!mine) return nullptr;
    mine->taken = true;
    return mine->rows[mine->next++];
  }

  void end(const FolderRow& row) {
    std::lock_guard hold(lock_);
    observer_.on_row(row, ++ended_, rows_.size());
  }

  struct Worker {
    std::unique_ptr<eval::EvaluatorClient> evaluator;
    Group *mine = nullptr, *opened = nullptr;
    std::string task_id;  // of the opened task
    std::shared_mutex* gpu = nullptr;
  };

  void work(const eval::EvaluatorOptions& options) {
    Worker worker;
    {
      std::lock_guard hold(lock_);
      worker.gpu = &gpus_[options.device.text()];
    }
    while (!ctx_.done()) {
      FolderRow* row = next(worker.mine);
      if (!row) return;
      const auto begin = Clock::now();
      auto entry = read_entry(settings_, device_, row->name);
      if (entry && !settings_.again && keep(*row, *entry)) {
        end(*row);
        continue;
      }
      if (entry && !worker.evaluator) {
        auto started = parts_.start_evaluator(ctx_, options);
        if (!started) return give_up(*row, started.error());
        worker.evaluator = std::move(*started);
      }
      auto verdict = entry ? judge(worker, *entry) : fail(entry.error());
      if (!verdict && ctx_.done()) return;
      row->seconds = std::chrono::duration<double>(Clock::now() - begin).count();
      note(*row, entry ? entry->key : Json::object(), verdict);
      end(*row);
    }
  }

  // Reports that this evaluator does not start. Others continue, but this entry has no verdict, so
  // run() fails.
  void give_up(FolderRow& row, const Error& error) {
    std::lock_guard hold(lock_);
    trouble_ = error;
    row.detail = error.text();
  }

  Result<Verdict> judge(Worker& worker, const Entry& entry) {
    if (worker.mine != worker.opened) {
      worker.opened = nullptr;
      CG_TRY(eval::OpenedTask opened,
             worker.evaluator->open_task_as(ctx_, entry.task, settings_.asked));
      worker.opened = worker.mine;
      worker.task_id = opened.task.id;
    }
    auto verdict = entry.foreign ? judge_foreign(worker, entry) : judge_program(worker, entry);
    if (!verdict) worker.opened = nullptr;  // the evaluator may have restarted
    return verdict;
  }

  Result<Verdict> judge_program(Worker& worker, const Entry& entry) {
    std::shared_lock beside(*worker.gpu);
    return worker.evaluator->evaluate(
        ctx_, {.program = entry.program, .up_to = settings_.up_to, .task = worker.task_id});
  }

  // Judges the solution alone on its GPU, because a third-party solution builds and warms up
  // without the GPU's lock, and correct solutions have failed with a fault while other programs
  // ran.
  Result<Verdict> judge_foreign(Worker& worker, const Entry& entry) {
    std::unique_lock alone(*worker.gpu);
    return worker.evaluator->judge_foreign(ctx_, {.answer = *entry.foreign,
                                                  .up_to = settings_.up_to,
                                                  .seconds = settings_.seconds,
                                                  .task = worker.task_id});
  }

  bool keep(FolderRow& row, const Entry& entry) const {
    auto text = read_file(verdict_of(entry.name));
    if (!text) return false;
    auto json = parse_json(*text, verdict_of(entry.name).string());
    if (!json || !json->is_object() || json->value("key", Json()) != entry.key) return false;
    auto verdict = read_json<Verdict>(json->value("verdict", Json()));
    if (!verdict || verdict->status == Status::aborted) return false;
    put(row, *verdict);
    row.kept = true;
    return true;
  }

  // Renames the file into place only when it is complete.
  void note(FolderRow& row, const Json& key, const Result<Verdict>& verdict) {
    Json out{{"schema", kSchema}, {"name", row.name}, {"key", key}};
    if (verdict) {
      put(row, *verdict);
      out["verdict"] = to_json(*verdict);
    } else {
      row.status = RowStatus::error;
      row.detail = verdict.error().text();
      row.code = exit_code(verdict.error());
      const Error& e = verdict.error();
      out["error"] = {{"message", e.message}, {"where", e.where}, {"remedy", e.remedy}};
    }
    const fs::path path = verdict_of(row.name), part = path.string() + ".part";
    auto written = write_file(part, dump_json(out, 1) + "\n");
    std::error_code error;
    if (written) fs::rename(part, path, error);
    if (written && !error) return;
    row.status = RowStatus::error;
    row.detail =
        written ? path.string() + " cannot be written: " + error.message() : written.error().text();
    row.code = kExitEnvironment;
  }

  const Parts& parts_;
  const Context& ctx_;
  const JudgeFolderSettings& settings_;
  const std::string device_;
  FolderObserver& observer_;
  std::mutex lock_;
  std::vector<FolderRow> rows_;
  std::vector<Group> groups_;
  std::map<std::string, std::shared_mutex> gpus_;  // held exclusively for a third-party solution
  size_t ended_ = 0;
  std::optional<Error> trouble_;
};

}  // namespace

Result<std::vector<FolderRow>> judge_folder(const Parts& parts, const Context& ctx,
                                            const JudgeFolderSettings& settings,
                                            FolderObserver& observer) {
  CG_ASSERT(!settings.evaluators.empty());
  CG_TRY(auto names, names_in(settings.in));
  CG_TRY(std::string device, device_of(settings.evaluators));
  std::error_code error;
  fs::create_directories(settings.out, error);
  if (error)
    return user_error("the folder cannot be created: " + error.message(), settings.out.string(),
                      "give a writable folder");
  return Batch(parts, ctx, settings, std::move(device), observer, std::move(names)).run();
}

}  // namespace cutegen::engine
