// SPDX-License-Identifier: Apache-2.0
#include "engine/bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <thread>

#include "base/file.h"
#include "base/hash.h"
#include "engine/bench_table.h"

namespace cutegen {
namespace fs = std::filesystem;
namespace {

constexpr size_t kMostState = size_t{256} << 20;

using EvaluatorPtr = std::unique_ptr<EvaluatorClient>;

// One evaluator for many runs, started anew after it failed.
class SharedEvaluator {
 public:
  // The part of it that a run sees.
  class Lease final : public EvaluatorClient {
   public:
    explicit Lease(SharedEvaluator& shared) : shared_(shared) {}
    Result<OpenedTask> open_task(const Context& ctx, const fs::path& file) override {
      return noted(shared_.client_->open_task(ctx, file));
    }
    Result<Verdict> evaluate(const Context& ctx, const EvaluateRequest& request,
                             const std::function<void(const std::string&)>& progress) override {
      return noted(shared_.client_->evaluate(ctx, request, progress));
    }
    int pid() const override { return shared_.client_->pid(); }

   private:
    template <class T>
    Result<T> noted(Result<T> result) {
      if (!result && result.error().kind != ErrorKind::user &&
          result.error().kind != ErrorKind::unsupported)
        shared_.broken_ = true;
      return result;
    }
    SharedEvaluator& shared_;
  };

  Result<EvaluatorPtr> lease(const Parts& parts, const Context& ctx,
                             const EvaluatorOptions& options) {
    if (!client_ || broken_) {
      client_.reset();
      CG_TRY(client_, parts.start_evaluator(ctx, options));
      broken_ = false;
    }
    return std::make_unique<Lease>(*this);
  }

 private:
  EvaluatorPtr client_;
  bool broken_ = false;
};

class Bench {
 public:
  Bench(const Parts& parts, const Context& ctx, Store& store, const BenchSettings& settings,
        BenchObserver& observer)
      : parts_(parts), ctx_(ctx), store_(store), settings_(settings), observer_(observer) {}

  Result<BenchReport> run(const std::vector<SuiteTask>& tasks) {
    CG_CHECK(private_dir(settings_.out / "programs"));
    CG_CHECK(plan(tasks));
    CG_CHECK(save());
    std::vector<std::jthread> helpers;
    for (int i = 1; i < settings_.jobs; ++i) helpers.emplace_back([this] { work(); });
    work();
    helpers.clear();
    if (fatal_) return fail(*fatal_);
    report_.interrupted = ctx_.stopped();
    CG_CHECK(save());
    return std::move(report_);
  }

 private:
  class RowObserver final : public RunObserver {
   public:
    RowObserver(Bench& bench, const SuiteTask& task) : bench_(bench), task_(task) {}
    void on_event(const Event& event) override {
      if (auto applied = view.apply(event); !applied) broken = applied.error().message;
    }
    void on_progress(const std::string& line) override {
      std::lock_guard hold(bench_.lock_);
      bench_.observer_.on_progress(task_, line);
    }
    RunView view;
    std::string broken;

   private:
    Bench& bench_;
    const SuiteTask& task_;
  };

  [[nodiscard]] fs::path state_file() const { return settings_.out / "bench.json"; }
  [[nodiscard]] fs::path program_folder(const SuiteTask& task) const {
    return fs::absolute(settings_.out) / "programs" / task.key();
  }

  Result<void> plan(const std::vector<SuiteTask>& tasks) {
    std::vector<BenchRow> before;
    if (settings_.resume) {
      CG_TRY(before, rows_before());
      CG_TRY(stored_, store_.list());
    }
    for (const SuiteTask& task : tasks) {
      BenchRow row;
      row.task = task;
      CG_TRY(std::string text, read_file(task.file));
      row.task_hash = sha256(text);
      for (const BenchRow& old : before)
        if (old.task.key() == task.key() && old.task_hash == row.task_hash) {
          row = old;
          row.task.file = task.file;
          if (!row.ended()) goes_on_.push_back(task.key());
        }
      report_.rows.push_back(std::move(row));
    }
    return {};
  }

  Result<std::vector<BenchRow>> rows_before() {
    CG_TRY(std::string text, read_file(state_file(), kMostState));
    CG_TRY(Json document, parse_json(text, state_file().string(), kMostState));
    const Json wanted = bench_settings_json(settings_);
    const Json recorded = document.is_object() ? document.value("settings", Json()) : Json();
    if (canonical_json(recorded) != canonical_json(wanted))
      return user_error("the bench in '" + settings_.out.string() +
                            "' has other settings: " + dump_json(recorded).substr(0, 300),
                        "--resume", "give the same ones, or choose another --out");
    return bench_rows_from(document);
  }

  // The row to do next; null when there is none, or the bench ends.
  BenchRow* take() {
    std::lock_guard hold(lock_);
    if (fatal_ || ctx_.stopped()) return nullptr;
    while (next_ < report_.rows.size() && report_.rows[next_].ended()) ++next_;
    return next_ < report_.rows.size() ? &report_.rows[next_++] : nullptr;
  }

  void work() {
    SharedEvaluator shared;
    Parts parts = parts_;
    parts.start_evaluator = [&](const Context& ctx, const EvaluatorOptions& o) {
      auto lease = shared.lease(parts_, ctx, o);
      if (!lease && lease.error().kind == ErrorKind::user) end_with(lease.error());
      return lease;
    };
    while (BenchRow* row = take()) {
      BenchRow done = run_task(parts, *row);
      std::lock_guard hold(lock_);
      *row = std::move(done);
      if (auto saved = save(); !saved && !fatal_) fatal_ = saved.error();
      const auto& rows = report_.rows;
      const auto ended = std::count_if(rows.begin(), rows.end(), [](auto& r) { return r.ended(); });
      if (!fatal_) observer_.on_row(*row, size_t(ended), rows.size());
    }
  }

  // A user's error that every task would meet.
  void end_with(const Error& error) {
    std::lock_guard hold(lock_);
    if (!fatal_) fatal_ = error;
  }

  Result<void> save() {
    CG_CHECK(write_file(state_file(), dump_json(bench_json(settings_, report_), 1) + "\n"));
    return write_file(settings_.out / "bench.csv", bench_csv(report_.rows));
  }

  BenchRow run_task(const Parts& parts, BenchRow row) {
    const auto start = Clock::now();
    OptimizeSettings settings = settings_.optimize;
    settings.file = row.task.file;
    settings.out = program_folder(row.task);
    settings.search.budget.minutes = settings_.per_task_minutes;
    Context ctx = ctx_;
    if (settings_.per_task_minutes > 0)
      ctx = ctx.with_timeout(Nanoseconds(int64_t(settings_.per_task_minutes * 2 * 60e9)));
    RowObserver observer(*this, row.task);
    auto outcome = start_or_resume(parts, ctx, settings, observer);
    if (outcome && !observer.broken.empty()) outcome = world_error(observer.broken);
    if (outcome) {
      fill(row, observer.view, *outcome);
    } else {
      row.status = ctx_.stopped() ? "interrupted" : "error";
      row.reason = outcome.error().text();
      row.error_code = cutegen::exit_code(outcome.error());
      row.seconds = std::chrono::duration<double>(Clock::now() - start).count();
    }
    return row;
  }

  Result<RunOutcome> start_or_resume(const Parts& parts, const Context& ctx,
                                     const OptimizeSettings& settings, RowObserver& observer) {
    CG_TRY(auto earlier, interrupted_run(settings));
    if (!earlier) return optimize_with(parts, ctx, store_, settings, observer);
    CG_TRY(auto events, store_.read(*earlier));
    for (const Event& event : events) CG_CHECK(observer.view.apply(event));
    return resume_with(parts, ctx, store_, *earlier, observer);
  }

  // The run of this task that an earlier session of the bench left unfinished.
  Result<std::optional<std::string>> interrupted_run(const OptimizeSettings& settings) {
    const std::string key = settings.out.filename().string();
    if (std::find(goes_on_.begin(), goes_on_.end(), key) == goes_on_.end())
      return std::optional<std::string>();
    for (const RunInfo& info : stored_) {
      if (info.state != "interrupted" || info.task_file != fs::absolute(settings.file).string())
        continue;
      CG_TRY(auto events, store_.read(info.id));
      CG_TRY(RunView view, view_run(events));
      if (view.settings.out == settings.out) return std::optional<std::string>(info.id);
    }
    return std::optional<std::string>();
  }

  void fill(BenchRow& row, const RunView& view, const RunOutcome& outcome) const {
    row.run = outcome.run_id;
    row.reason = outcome.reason;
    row.evaluations = outcome.evaluations;
    row.first_ns = outcome.first_ns;
    row.seconds = double(view.clock_ms) / 1e3;
    if (view.task) row.workload = view.task->task.workload, row.floor_ns = view.task->floor_ns;
    if (outcome.best_verdict && outcome.best_verdict->timing) {
      row.best_ns = outcome.best_verdict->timing->time_ns;
      row.time_origin = to_string(outcome.best_verdict->timing->origin);
    }
    if (outcome.interrupted && ctx_.stopped()) {
      row.status = "interrupted";
      return;
    }
    if (outcome.interrupted)
      row.reason = fmt::format("cut off after {} minutes", 2 * settings_.per_task_minutes);
    if (outcome.best)
      row.status = "correct";
    else if (outcome.reason.starts_with("no recipe"))
      row.status = "no_recipe";
    else
      row.status = outcome.all_verdicts ? to_string(*outcome.all_verdicts) : "failed";
    if (!outcome.best) add_headline(row, view);
  }

  // What was wrong with the program judged first, unless the reason says so already.
  static void add_headline(BenchRow& row, const RunView& view) {
    if (view.steps.empty() || !view.steps.front().verdict) return;
    const std::string& headline = view.steps.front().verdict->feedback.headline;
    if (!headline.empty() && row.reason.find(headline) == std::string::npos)
      row.reason += ": " + headline;
  }

  const Parts& parts_;
  Context ctx_;
  Store& store_;
  const BenchSettings& settings_;
  BenchObserver& observer_;
  std::mutex lock_;  // of all below, and of the observer
  BenchReport report_;
  std::vector<RunInfo> stored_;       // runs from before this session
  std::vector<std::string> goes_on_;  // tasks whose run may be among them
  size_t next_ = 0;
  std::optional<Error> fatal_;
};

}  // namespace

std::optional<double> BenchRow::floor_ratio() const {
  if (!best_ns || !floor_ns || *floor_ns <= 0) return std::nullopt;
  return *best_ns / *floor_ns;
}

int BenchReport::exit_code() const {
  if (interrupted) return kExitInterrupted;
  auto all = [&](auto what) { return std::all_of(rows.begin(), rows.end(), what); };
  if (!all([](const BenchRow& r) { return r.status != "correct"; })) return kExitOk;
  if (rows.empty()) return kExitFailed;
  const BenchRow& first = rows.front();
  const bool alike = all([&](const BenchRow& r) {
    return r.status == first.status && r.error_code == first.error_code;
  });
  if (alike && first.status == "error") return first.error_code;
  for (Status s : {Status::rejected, Status::unsupported, Status::aborted})
    if (alike && first.status == to_string(s)) return cutegen::exit_code(s);
  return kExitFailed;
}

Result<BenchReport> run_bench(const Parts& parts, const Context& ctx, Store& store,
                              const BenchSettings& settings, const std::vector<SuiteTask>& tasks,
                              BenchObserver& observer) {
  return Bench(parts, ctx, store, settings, observer).run(tasks);
}

}  // namespace cutegen
