// SPDX-License-Identifier: Apache-2.0
#include "engine/baselines/baseline_suite.h"

#include <fmt/format.h>

#include <algorithm>
#include <list>
#include <thread>

#include "base/log.h"
#include "base/text.h"
#include "engine/baselines/suite_queue.h"
#include "eval/rungs/timing.h"
#include "eval/sets/admission.h"
#include "eval/sets/gpu_set.h"
#include "eval/sets/lazy.h"
#include "store/run_lock.h"

namespace cutegen::engine {
namespace {

constexpr auto kDescribeLimit = std::chrono::seconds(90);
constexpr auto kSetLimit = std::chrono::seconds(60);
constexpr int64_t kGiB = int64_t{1} << 30;
constexpr int64_t kContext = kGiB;  // one worker's GPU memory, with its libraries
constexpr double kUsable = 0.93;    // share of the GPU's memory
constexpr auto kLook = std::chrono::milliseconds(50);

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

int64_t budget_of(const BaselineGpu& gpu, int jobs) {
  const auto usable = int64_t(kUsable * double(gpu.memory_bytes));
  return std::max(kGiB, usable - kContext * (jobs + 3));
}

int64_t build_bytes(const Task& task) {
  return eval::open_bytes(task.official()) + kGiB;
}

int64_t truth_bytes(const Task& task) {
  auto needs = eval::gpu_set_needs(task, task.official());
  if (!needs) return INT64_MAX;
  return needs->set_bytes + needs->work_bytes + eval::open_bytes(task.official()) + kGiB;
}

// Describes and admits a task, unless the cache has its times.
class Describer {
 public:
  Describer(const Context& ctx, const BaselineCache& cache, const BaselineSuiteSettings& settings,
            const BaselineGpu& gpu)
      : ctx_(ctx), cache_(cache), settings_(settings), gpu_(gpu) {}

  // Returns true if the cache has the requested times.
  Result<bool> describe(torch::TorchWorker& worker, SuiteItem& item) {
    BaselineRecord& record = item.row->record;
    torch::DescribeOptions options;
    options.asked = settings_.asked;
    CG_TRY(item.task,
           worker.describe(ctx_.with_timeout(kDescribeLimit), item.row->task.file, options));
    const Task& task = item.task;
    if (!settings_.again && known(task, worker.version(), record)) return true;
    record.task_id = task.id, record.name = task.name, record.workload = task.workload;
    record.math_mode = task.math_mode;
    record.gpu = gpu_.spec.id, record.uuid = gpu_.uuid, record.driver = gpu_.driver;
    record.torch = worker.version(), record.measured = store::utc_now();
    item.build_bytes = build_bytes(task), item.truth_bytes = truth_bytes(task);
    eval::TruthPool pool(task, [&](const Context& c, const ShapeCase& shape,
                                   const std::string& family, uint64_t seed) {
      return worker.make_set(c.with_timeout(kSetLimit), task, shape, family, seed);
    });
    auto admission = eval::admission_of(ctx_, task, pool);
    if (!admission) CG_CHECK(ctx_.check("admitting a task"));
    if (admission) eval::count_reads(item.task, *admission);
    const Roofline bounds = floor_of(gpu_.spec, task);
    record.floor_ns = bounds.floor_ns, record.bound_by = to_string(bounds.bound_by);
    record.admitted = admission && admission->admitted;
    record.remark = admission ? admission->remark : "not judged: " + admission.error().message;
    for (const std::string& note : task.notes)
      record.remark += (record.remark.empty() ? "" : "; ") + note;
    record.remark = sanitize(record.remark, 600);
    return false;
  }

 private:
  // Whether the cache has the requested times.
  bool known(const Task& task, const std::string& torch, BaselineRecord& record) const {
    auto found = cache_.find(task.id, gpu_.spec.id, gpu_.driver, torch);
    if (!found || found->cut) return false;
    for (const torch::BaselineWanted& w : settings_.baselines)
      if (std::none_of(found->times.begin(), found->times.end(),
                       [&](const BaselineTime& t) { return t.kind == w.name(); }))
        return false;
    record = std::move(*found);
    return true;
  }

  const Context& ctx_;
  const BaselineCache& cache_;
  const BaselineSuiteSettings& settings_;
  const BaselineGpu& gpu_;
};

// Takes each baseline's accuracy from the worker that computed the truth, or says why it is
// missing.
void take_accuracy(BaselineRecord& record) {
  for (BaselineTime& t : record.times) {
    auto judged = record.truth.accuracy.find(baseline_kind(t.kind));
    if (judged != record.truth.accuracy.end())
      t.accuracy = judged->second;
    else if (t.known() && t.accuracy.why.empty())
      t.accuracy.why =
          "not judged: another process built it with torch.compile; cutegen certify judges it";
  }
}

class Suite {
 public:
  Suite(const BaselineParts& parts, const Context& ctx, const BaselineCache& cache,
        const BaselineSuiteSettings& settings, const BaselineGpu& gpu, BaselineObserver& observer)
      : parts_(parts),
        outer_(ctx),
        ctx_(settings.minutes > 0 ? ctx.with_timeout(Nanoseconds(int64_t(settings.minutes * 60e9)))
                                  : ctx),
        cache_(cache),
        settings_(settings),
        gpu_(gpu),
        observer_(observer),
        describer_(ctx_, cache, settings, gpu),
        budget_(budget_of(gpu, settings.jobs)) {}

  Result<BaselineReport> run(const std::vector<SuiteTask>& tasks) {
    const auto start = Clock::now();
    report_.gpu = gpu_.spec.id, report_.uuid = gpu_.uuid, report_.driver = gpu_.driver;
    for (const SuiteTask& task : tasks) report_.rows.push_back({.task = task});
    for (BaselineRow& row : report_.rows) items_.push_back({&row, {}, 0, 0, 2, false});
    for (SuiteItem& item : items_) queue_.add(item);
    {
      std::jthread truths([this] { make_truths(); });
      std::vector<std::jthread> workers;
      workers.reserve(size_t(settings_.jobs));
      for (int i = 0; i < settings_.jobs; ++i) workers.emplace_back([this] { work(); });
    }
    if (fatal_) return fail(*fatal_);
    for (BaselineRow& row : report_.rows)
      if (row.status == BaselineStatus::pending) {
        row.status = BaselineStatus::unfinished;
        row.reason = outer_.stopped() ? "interrupted" : "the time was up";
      }
    report_.interrupted = outer_.stopped();
    report_.seconds = seconds_since(start);
    return std::move(report_);
  }

 private:
  // --- the workers ---------------------------------------------------------------------------
  void work() {
    std::unique_ptr<torch::TorchWorker> worker;
    while (auto job = take()) {
      if (!worker) {
        auto opened = parts_.worker(gpu_);
        if (!opened) return end_with(opened.error());
        worker = std::move(*opened);
        note_torch(worker->version());
      }
      if (job->describe)
        describe(*worker, *job->item);
      else
        build(worker, *job->item);
    }
  }

  std::optional<SuiteJob> take() {
    std::unique_lock hold(lock_);
    for (;;) {
      if (ctx_.done() || fatal_) return std::nullopt;
      if (auto job = queue_.next_job()) return job;
      if (!queue_.has_jobs_under_way()) return std::nullopt;
      wake_.wait_for(hold, kLook);
    }
  }

  void describe(torch::TorchWorker& worker, SuiteItem& item) {
    const auto start = Clock::now();
    auto found = describer_.describe(worker, item);
    std::unique_lock hold(lock_);
    item.row->describe_s = seconds_since(start);
    queue_.described(item, found && !*found);
    if (found && *found)
      end(item, BaselineStatus::cached, {});
    else if (!found && !ctx_.done())
      end(item, BaselineStatus::error, found.error().text());
    wake_.notify_all();
  }

  void build(std::unique_ptr<torch::TorchWorker>& worker, SuiteItem& item) {
    auto timed = build_in(*worker, item);
    if (!timed || timed->broken) worker.reset();
    std::unique_lock hold(lock_);
    queue_.built();
    if (timed && timed->out_of_memory && !item.alone) {
      queue_.build_alone(item, budget_.total());
    } else if (timed) {
      item.row->record.times = std::move(timed->times);
      item.row->record.cut = timed->cut;
      part_done(item);
    } else if (!ctx_.done()) {
      end(item, BaselineStatus::error, timed.error().text());
    }
    wake_.notify_all();
  }

  Result<eval::BaselinesTimed> build_in(torch::TorchWorker& worker, const SuiteItem& item) {
    CG_TRY(auto held, budget_.claim(ctx_, item.build_bytes, item.alone));
    return eval::time_baselines(ctx_, worker, item.task, settings_.baselines, settings_.limits,
                                [&](const std::string& what) { tell(item, what); });
  }

  // --- controls and truths -------------------------------------------------------------------
  void make_truths() {
    time_the_controls();
    while (auto begun = take_truth()) {
      SuiteItem* item = begun->item;
      tell(*item, "making the truth");
      auto truth = parts_.truth(ctx_, gpu_, item->task);
      begun.reset();
      std::unique_lock hold(lock_);
      if (!truth && ctx_.done()) return;
      item->row->record.truth =
          truth ? std::move(*truth)
                : TruthMade{.seconds = 0, .bytes = 0, .notes = {}, .why = truth.error().message};
      part_done(*item);
      wake_.notify_all();
    }
  }

  void time_the_controls() {
    auto controls = parts_.controls(ctx_);
    std::unique_lock hold(lock_);
    if (controls) {
      report_.controls = std::move(*controls);
      if (auto kept = cache_.keep_controls(gpu_.spec.id, gpu_.driver, report_.controls); !kept)
        report_.trouble = kept.error().text();
    } else {
      report_.trouble = controls.error().message;
    }
  }

  std::optional<SuiteTruth> take_truth() {
    std::unique_lock hold(lock_);
    for (;;) {
      if (ctx_.done() || fatal_) return std::nullopt;
      if (auto truth = queue_.next_truth(budget_)) return truth;
      if (!queue_.has_truths_to_come()) return std::nullopt;
      wake_.wait_for(hold, kLook);
    }
  }

  // --- rows; all under the lock --------------------------------------------------------------
  void part_done(SuiteItem& item) {
    if (--item.left > 0) return;
    BaselineRecord& record = item.row->record;
    record.controls = report_.controls;
    take_accuracy(record);
    if (auto kept = cache_.keep(record); !kept)
      log_warning("baselines of {} are not kept: {}", record.name, kept.error().text());
    end(item, BaselineStatus::measured, {});
  }

  void end(SuiteItem& item, BaselineStatus status, const std::string& reason) {
    item.row->status = status, item.row->reason = sanitize(reason, 600);
    if (item.row->record.name.empty()) item.row->record.name = item.row->task.name;
    queue_.drop(item);
    observer_.on_row(*item.row, ++ended_, report_.rows.size());
  }

  void note_torch(const std::string& version) {
    std::lock_guard hold(lock_);
    report_.torch = version;
  }
  // Ends the suite with an error that would affect every task.
  void end_with(const Error& error) {
    std::lock_guard hold(lock_);
    if (!fatal_ && !ctx_.done()) fatal_ = error;
    wake_.notify_all();
  }
  void tell(const SuiteItem& item, const std::string& what) {
    std::lock_guard hold(lock_);
    observer_.on_progress(item.task.name + ": " + what);
  }

  const BaselineParts& parts_;
  Context outer_, ctx_;
  const BaselineCache& cache_;
  const BaselineSuiteSettings& settings_;
  const BaselineGpu& gpu_;
  BaselineObserver& observer_;
  Describer describer_;
  MemoryBudget budget_;
  std::mutex lock_;  // guards all below, and the observer
  std::condition_variable wake_;
  BaselineReport report_;
  std::list<SuiteItem> items_;
  SuiteQueue queue_;
  size_t ended_ = 0;
  std::optional<Error> fatal_;
};

}  // namespace

int BaselineReport::exit_code() const {
  if (interrupted) return kExitInterrupted;
  const bool some = std::any_of(rows.begin(), rows.end(), [](const BaselineRow& r) {
    return std::any_of(r.record.times.begin(), r.record.times.end(),
                       [](const BaselineTime& t) { return t.known(); });
  });
  return some ? kExitOk : kExitFailed;
}

Result<BaselineReport> measure_baselines(const BaselineParts& parts, const Context& ctx,
                                         const BaselineCache& cache,
                                         const BaselineSuiteSettings& settings,
                                         const std::vector<SuiteTask>& tasks,
                                         BaselineObserver& observer) {
  CG_TRY(BaselineGpu gpu, parts.gpu(ctx));
  return Suite(parts, ctx, cache, settings, gpu, observer).run(tasks);
}

}  // namespace cutegen::engine
