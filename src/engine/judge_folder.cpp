// SPDX-License-Identifier: Apache-2.0
#include "engine/judge_folder.h"

#include <algorithm>
#include <mutex>
#include <thread>

#include "base/file.h"
#include "base/hash.h"
#include "device/cuda/gpu_info.h"

namespace cutegen {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSchema = "cutegen.entry.v1";
constexpr size_t kMostEntries = 100'000;
constexpr int kOpenTasks = 16;

// What an entry is, apart from its name: a verdict belongs to one of these.
struct Entry {
  std::string name;
  fs::path task;
  KernelProgram program;
  Json key;
};

// What times are of: a simulator's name, or the model that the named GPUs all are.
Result<std::string> device_of(const std::vector<EvaluatorOptions>& evaluators) {
  std::string out;
  for (const EvaluatorOptions& one : evaluators) {
    std::string name = one.device;
    if (is_cuda(one.device)) {
      CG_TRY(const cuda::Driver* driver, cuda::load_driver());
      CG_TRY(cuda::Found found, cuda::find_device(*driver, one.device));
      name = found.identity.gpu;
    }
    if (!out.empty() && name != out)
      return user_error("times of " + out + " and of " + name + " cannot be compared", "--device",
                        "name devices of one kind");
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
    if (out.size() > kMostEntries)
      return user_error("more entries than are judged at once", folder.string(),
                        "split the folder");
  }
  if (error)
    return user_error("the folder cannot be read: " + error.message(), folder.string(),
                      "give a folder of programs, each a folder with plan.json");
  if (out.empty())
    return user_error("there is no entry in this folder", folder.string(),
                      "an entry is a folder with plan.json, its sources and, unless a task is "
                      "given for all, task.py");
  std::sort(out.begin(), out.end());
  return out;
}

Result<Entry> read_entry(const JudgeFolderSettings& settings, const std::string& device,
                         const std::string& name) {
  Entry e;
  e.name = name;
  const fs::path folder = settings.in / name;
  e.task = fs::exists(folder / "task.py") ? folder / "task.py" : settings.task;
  if (e.task.empty())
    return user_error("the entry has no task", folder.string(),
                      "put task.py into it, or name a task for all");
  CG_TRY(std::string text, read_file(e.task));
  CG_TRY(e.program, load_program(folder));
  e.key = {{"program_id", program_id(e.program)},
           {"task_sha256", sha256(text)},
           {"device", device},
           {"up_to", to_string(settings.up_to)}};
  return e;
}

void put(FolderRow& row, const Verdict& verdict) {
  row.status = to_string(verdict.status);
  row.detail = verdict.feedback.headline;
  if (verdict.timing) row.time_ns = verdict.timing->time_ns;
}

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
  }

  Result<std::vector<FolderRow>> run() {
    std::vector<std::thread> threads;
    for (const EvaluatorOptions& options : settings_.evaluators)
      threads.emplace_back([this, options] { work(options); });
    for (std::thread& t : threads) t.join();
    if (trouble_ && ended_ < rows_.size() && !ctx_.done()) return fail(*trouble_);
    return std::move(rows_);
  }

 private:
  fs::path verdict_of(const std::string& name) const { return settings_.out / (name + ".json"); }

  FolderRow* next() {
    std::lock_guard hold(lock_);
    return next_ < rows_.size() ? &rows_[next_++] : nullptr;
  }

  void end(const FolderRow& row) {
    std::lock_guard hold(lock_);
    observer_.on_row(row, ++ended_, rows_.size());
  }

  void work(EvaluatorOptions options) {
    options.tasks = kOpenTasks;
    std::unique_ptr<EvaluatorClient> evaluator;
    while (!ctx_.done()) {
      FolderRow* row = next();
      if (!row) return;
      const auto begin = Clock::now();
      auto entry = read_entry(settings_, device_, row->name);
      if (entry && !settings_.again && keep(*row, *entry)) {
        end(*row);
        continue;
      }
      if (entry && !evaluator) {
        auto started = parts_.start_evaluator(ctx_, options);
        if (!started) return give_up(*row, started.error());
        evaluator = std::move(*started);
      }
      auto verdict = entry ? judge(*evaluator, *entry) : fail(entry.error());
      if (!verdict && ctx_.done()) return;
      row->seconds = std::chrono::duration<double>(Clock::now() - begin).count();
      note(*row, entry ? entry->key : Json::object(), verdict);
      end(*row);
    }
  }

  // This evaluator does not start; another may, and takes the entry.
  void give_up(FolderRow& row, const Error& error) {
    std::lock_guard hold(lock_);
    trouble_ = error;
    row.detail = error.text();
  }

  Result<Verdict> judge(EvaluatorClient& evaluator, const Entry& entry) {
    CG_TRY(OpenedTask opened, evaluator.open_task(ctx_, entry.task));
    return evaluator.evaluate(
        ctx_, {.program = entry.program, .up_to = settings_.up_to, .task = opened.task.id});
  }

  bool keep(FolderRow& row, const Entry& entry) const {
    auto text = read_file(verdict_of(entry.name));
    if (!text) return false;
    auto json = parse_json(*text, verdict_of(entry.name).string());
    if (!json || !json->is_object() || json->value("key", Json()) != entry.key) return false;
    auto verdict = verdict_from_json(json->value("verdict", Json()));
    if (!verdict || verdict->status == Status::aborted) return false;
    put(row, *verdict);
    row.kept = true;
    return true;
  }

  // The file is whole before it has its name.
  void note(FolderRow& row, const Json& key, const Result<Verdict>& verdict) {
    Json out{{"schema", kSchema}, {"name", row.name}, {"key", key}};
    if (verdict) {
      put(row, *verdict);
      out["verdict"] = to_json(*verdict);
    } else {
      row.status = "error";
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
    row.status = "error";
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
  size_t next_ = 0, ended_ = 0;
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
    return user_error("the folder cannot be made: " + error.message(), settings.out.string(),
                      "give a folder that can be written");
  return Batch(parts, ctx, settings, std::move(device), observer, std::move(names)).run();
}

}  // namespace cutegen
