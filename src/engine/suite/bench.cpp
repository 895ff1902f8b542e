// SPDX-License-Identifier: Apache-2.0
#include "engine/suite/bench.h"

#include <algorithm>

#include "base/file.h"
#include "base/hash.h"
#include "engine/suite/bench_page.h"
#include "engine/suite/bench_summary.h"
#include "engine/suite/bench_table.h"

namespace cutegen::engine {
namespace fs = std::filesystem;
namespace {

class Bench final : private BatchObserver {
 public:
  Bench(const BenchSettings& settings, BenchObserver& observer)
      : settings_(settings), observer_(observer) {}

  Result<BenchReport> run(const Parts& parts, const Context& ctx, store::Store& store,
                          const std::vector<SuiteTask>& tasks) {
    CG_CHECK(private_dir(settings_.out / "programs"));
    CG_CHECK(plan(tasks));
    CG_CHECK(save());
    CG_CHECK(run_batch(
        parts, ctx, store,
        {.jobs = settings_.jobs, .evaluators = settings_.evaluators, .trace = settings_.trace},
        items_, *this));
    report_.interrupted = ctx.stopped();
    CG_CHECK(save());
    return std::move(report_);
  }

 private:
  fs::path state_file() const { return settings_.out / "bench.json"; }

  Result<void> plan(const std::vector<SuiteTask>& tasks) {
    std::vector<BenchRow> before;
    if (settings_.resume) {
      CG_TRY(before, rows_before());
    }
    for (const SuiteTask& task : tasks) {
      BenchRow row;
      row.task = task;
      CG_TRY(std::string text, read_file(task.file));
      row.task_hash = sha256(text);
      bool known = false;
      for (const BenchRow& old : before)
        if (old.task.key() == task.key() && old.task_hash == row.task_hash) {
          row = old;
          row.task.file = task.file;
          known = true;
        }
      if (!row.ended()) {
        rows_.push_back(report_.rows.size());
        items_.push_back(item_of(task, known));
      }
      report_.rows.push_back(std::move(row));
    }
    return {};
  }

  BatchItem item_of(const SuiteTask& task, bool goes_on) const {
    BatchItem item{.settings = settings_.optimize,
                   .minutes = settings_.per_task_minutes,
                   .goes_on = goes_on,
                   .since = {}};
    item.settings.file = task.file;
    item.settings.out = fs::absolute(settings_.out) / "programs" / task.key();
    return item;
  }

  Result<std::vector<BenchRow>> rows_before() {
    CG_TRY(std::string text, read_file(state_file(), kMostState));
    CG_TRY(Json document, parse_json(text, state_file().string(), kMostState));
    const Json wanted = bench_settings_json(settings_);
    const Json recorded = document.is_object() ? document.value("settings", Json()) : Json();
    if (canonical_json(recorded) != canonical_json(wanted))
      return user_error("the bench in '" + settings_.out.string() +
                            "' has different settings: " + dump_json(recorded).substr(0, 300),
                        "--resume", "give the same settings, or choose another --out");
    return bench_rows_from(document);
  }

  Result<void> on_end(size_t item, RunRow result) override {
    BenchRow& row = report_.rows[rows_[item]];
    static_cast<RunRow&>(row) = std::move(result);
    CG_CHECK(save());
    const auto& rows = report_.rows;
    const auto ended = std::count_if(rows.begin(), rows.end(), [](auto& r) { return r.ended(); });
    observer_.on_row(row, size_t(ended), rows.size());
    return {};
  }

  void on_progress(size_t item, const std::string& line) override {
    observer_.on_progress(report_.rows[rows_[item]].task, line);
  }

  Result<void> save() {
    CG_CHECK(write_file(state_file(), dump_json(bench_json(settings_, report_), 1) + "\n"));
    CG_CHECK(write_file(settings_.out / "bench.csv", bench_csv(report_.rows)));
    CG_CHECK(write_file(settings_.out / "summary.csv", summary_csv(report_.rows)));
    return write_file(settings_.out / "bench.html", bench_html(settings_, report_));
  }

  const BenchSettings& settings_;
  BenchObserver& observer_;
  BenchReport report_;
  std::vector<BatchItem> items_;
  std::vector<size_t> rows_;  // row of each item
};

}  // namespace

int BenchReport::exit_code() const {
  if (interrupted) return kExitInterrupted;
  std::vector<const RunRow*> all;
  all.reserve(rows.size());
  for (const BenchRow& row : rows) all.push_back(&row);
  return engine::exit_code(all);
}

Result<BenchReport> run_bench(const Parts& parts, const Context& ctx, store::Store& store,
                              const BenchSettings& settings, const std::vector<SuiteTask>& tasks,
                              BenchObserver& observer) {
  return Bench(settings, observer).run(parts, ctx, store, tasks);
}

}  // namespace cutegen::engine
