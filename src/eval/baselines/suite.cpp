// SPDX-License-Identifier: Apache-2.0
#include "eval/baselines/suite.h"

#include <fmt/format.h>

#include <algorithm>
#include <list>
#include <thread>

#include "base/text.h"
#include "eval/baselines/baselines.h"
#include "eval/baselines/suite_queue.h"
#include "eval/rungs/timing.h"
#include "eval/sets/admission.h"
#include "eval/sets/gpu_set.h"
#include "eval/sets/lazy.h"

namespace cutegen::eval {
namespace {

constexpr auto kDescribeLimit = std::chrono::seconds(90);
constexpr auto kSetLimit = std::chrono::seconds(60);
constexpr int64_t kGiB = int64_t{1} << 30;
constexpr int64_t kContext = kGiB;  // one worker's GPU memory, with its libraries
constexpr double kUsable = 0.93;    // share of the GPU's memory that a suite uses
constexpr auto kLook = std::chrono::milliseconds(50);

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

int64_t budget_of(const SuiteGpu& gpu, int jobs) {
  const auto usable = int64_t(kUsable * double(gpu.memory_bytes));
  return std::max(kGiB, usable - kContext * (jobs + 3));
}

int64_t build_bytes(const Task& task) {
  return open_bytes(task.official()) + kGiB;
}

int64_t truth_bytes(const Task& task) {
  auto needs = gpu_set_needs(task, task.official());
  if (!needs) return INT64_MAX;
  return needs->set_bytes + needs->work_bytes + open_bytes(task.official()) + kGiB;
}

// Describes and admits a task, unless the cache has its times.
class Describer {
 public:
  Describer(const Context& ctx, const SuiteRequest& request, const SuiteGpu& gpu)
      : ctx_(ctx), request_(request), gpu_(gpu) {}

  // Returns true if the cache has the requested times.
  Result<bool> describe(torch::TorchWorker& worker, SuiteItem& item) {
    BaselineRecord& record = item.row.record;
    torch::DescribeOptions options;
    options.asked = request_.asked;
    CG_TRY(item.task, worker.describe(ctx_.with_timeout(kDescribeLimit), item.file->file, options));
    const Task& task = item.task;
    record.task_id = task.id, record.name = task.name, record.workload = task.workload;
    record.math_mode = task.math_mode;
    record.gpu = gpu_.spec.id, record.uuid = gpu_.uuid, record.driver = gpu_.driver;
    record.torch = worker.version();
    record.policy_version = Verdict().policy_version;
    if (known(record)) return true;
    item.build_bytes = build_bytes(task), item.truth_bytes = truth_bytes(task);
    TruthPool pool(task, [&](const Context& c, const ShapeCase& shape, const std::string& family,
                             uint64_t seed) {
      return worker.make_set(c.with_timeout(kSetLimit), task, shape, family, seed);
    });
    auto admission = admission_of(ctx_, item.task, pool);
    if (!admission) CG_CHECK(ctx_.check("admitting a task"));
    if (admission) count_reads(item.task, *admission);
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
  bool known(const BaselineRecord& r) const {
    const KnownBaselines key{
        .task_id = r.task_id, .gpu = r.gpu, .driver = r.driver, .torch = r.torch};
    return std::ranges::find(request_.known, key) != request_.known.end();
  }

  const Context& ctx_;
  const SuiteRequest& request_;
  const SuiteGpu& gpu_;
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
  Suite(const SuiteParts& parts, const Context& ctx, const SuiteRequest& request,
        const SuiteGpu& gpu, const OnSuiteNews& news,
        const std::function<void(const std::string&)>& progress)
      : parts_(parts),
        ctx_(request.minutes > 0 ? ctx.with_timeout(Nanoseconds(int64_t(request.minutes * 60e9)))
                                 : ctx),
        request_(request),
        gpu_(gpu),
        news_(news),
        progress_(progress),
        describer_(ctx_, request, gpu),
        budget_(budget_of(gpu, request.jobs)) {}

  Result<void> run() {
    news_({.gpu = gpu_.spec.id, .uuid = gpu_.uuid, .driver = gpu_.driver});
    for (const SuiteFile& file : request_.tasks) {
      items_.push_back({.file = &file, .row = {.number = file.number}});
      queue_.add(items_.back());
    }
    {
      std::jthread truths([this] { make_truths(); });
      std::vector<std::jthread> workers;
      workers.reserve(size_t(request_.jobs));
      for (int i = 0; i < request_.jobs; ++i) workers.emplace_back([this] { work(); });
    }
    if (fatal_) return fail(*fatal_);
    return {};
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
    item.row.describe_s = seconds_since(start);
    queue_.described(item, found && !*found);
    if (found && *found)
      end(item, BaselineStatus::cached, {});
    else if (!found && !ctx_.done())
      end(item, BaselineStatus::error, found.error().text());
    else if (found)
      tell_row(item);
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
      item.row.record.times = std::move(timed->times);
      item.row.record.cut = timed->cut;
      part_done(item);
    } else if (!ctx_.done()) {
      end(item, BaselineStatus::error, timed.error().text());
    }
    wake_.notify_all();
  }

  Result<BaselinesTimed> build_in(torch::TorchWorker& worker, const SuiteItem& item) {
    CG_TRY(auto held, budget_.claim(ctx_, item.build_bytes, item.alone));
    return time_baselines(ctx_, worker, item.task, request_.baselines, request_.limits,
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
      item->row.record.truth =
          truth ? std::move(*truth)
                : TruthMade{.seconds = 0, .bytes = 0, .notes = {}, .why = truth.error().message};
      part_done(*item);
      wake_.notify_all();
    }
  }

  void time_the_controls() {
    auto controls = parts_.controls(ctx_.with_timeout(parts_.controls_limit));
    std::unique_lock hold(lock_);
    if (controls) {
      controls_ = std::move(*controls);
      news_({.controls = controls_});
    } else {
      news_({.trouble = controls.error().message});
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
    if (--item.left > 0) {
      if (item.row.status == BaselineStatus::pending) tell_row(item);
      return;
    }
    BaselineRecord& record = item.row.record;
    record.controls = controls_;
    take_accuracy(record);
    end(item, BaselineStatus::measured, {});
  }

  void end(SuiteItem& item, BaselineStatus status, const std::string& reason) {
    item.row.status = status, item.row.reason = sanitize(reason, 600);
    queue_.drop(item);
    tell_row(item);
  }

  void tell_row(const SuiteItem& item) { news_({.row = item.row}); }

  void note_torch(const std::string& version) {
    std::lock_guard hold(lock_);
    news_({.torch = version});
  }
  // Ends the suite with an error that would affect every task.
  void end_with(const Error& error) {
    std::lock_guard hold(lock_);
    if (!fatal_ && !ctx_.done()) fatal_ = error;
    wake_.notify_all();
  }
  void tell(const SuiteItem& item, const std::string& what) {
    if (!progress_) return;
    std::lock_guard hold(lock_);
    progress_(item.task.name + ": " + what);
  }

  const SuiteParts& parts_;
  const Context ctx_;
  const SuiteRequest& request_;
  const SuiteGpu& gpu_;
  const OnSuiteNews& news_;
  const std::function<void(const std::string&)>& progress_;
  Describer describer_;
  MemoryBudget budget_;
  std::mutex lock_;  // guards all below, and the callbacks
  std::condition_variable wake_;
  std::vector<ControlTime> controls_;
  std::list<SuiteItem> items_;
  SuiteQueue queue_;
  std::optional<Error> fatal_;
};

}  // namespace

Result<void> measure_suite(const SuiteParts& parts, const Context& ctx, const SuiteRequest& request,
                           const OnSuiteNews& news,
                           const std::function<void(const std::string&)>& progress) {
  CG_TRY(SuiteGpu gpu, parts.gpu(ctx));
  return Suite(parts, ctx, request, gpu, news, progress).run();
}

}  // namespace cutegen::eval
