// SPDX-License-Identifier: Apache-2.0
#include "engine/baselines/baseline_suite.h"

#include <algorithm>

#include "base/log.h"
#include "store/run_lock.h"

namespace cutegen::engine {
namespace {

eval::SuiteRequest request_of(const BaselineSuiteSettings& settings, const BaselineCache& cache,
                              const std::vector<SuiteTask>& tasks) {
  eval::SuiteRequest out;
  for (const SuiteTask& task : tasks)
    out.tasks.push_back({.number = int(out.tasks.size()), .name = task.name, .file = task.file});
  out.asked = settings.asked, out.baselines = settings.baselines;
  out.jobs = settings.jobs, out.limits = settings.limits, out.minutes = settings.minutes;
  if (!settings.again) out.known = cache.with_times_of(settings.baselines);
  return out;
}

// Collects the evaluator's messages in a report, and keeps measured times in the cache.
class Collector {
 public:
  Collector(const BaselineCache& cache, const std::vector<SuiteTask>& tasks,
            BaselineObserver& observer)
      : cache_(cache), observer_(observer) {
    for (const SuiteTask& task : tasks) report_.rows.push_back({.task = task});
  }

  void take(const eval::SuiteNews& news) {
    if (!news.gpu.empty()) report_.gpu = news.gpu, report_.uuid = news.uuid;
    if (!news.gpu.empty()) report_.driver = news.driver;
    if (!news.torch.empty()) report_.torch = news.torch;
    if (news.controls) take_controls(*news.controls);
    if (!news.trouble.empty()) report_.trouble = news.trouble;
    if (news.row && news.row->number >= 0 && size_t(news.row->number) < report_.rows.size())
      take_row(*news.row, report_.rows[size_t(news.row->number)]);
  }

  BaselineReport report(const Context& ctx) && {
    for (BaselineRow& row : report_.rows)
      if (row.status == BaselineStatus::pending) {
        row.status = BaselineStatus::unfinished;
        row.reason = ctx.stopped() ? "interrupted" : "the time was up";
      }
    report_.interrupted = ctx.stopped();
    report_.seconds = std::chrono::duration<double>(Clock::now() - start_).count();
    return std::move(report_);
  }

 private:
  void take_controls(const std::vector<ControlTime>& controls) {
    report_.controls = controls;
    if (auto kept = cache_.keep_controls(report_.gpu, report_.driver, controls); !kept)
      report_.trouble = kept.error().text();
  }

  void take_row(const eval::SuiteRow& from, BaselineRow& to) {
    const std::string measured = to.record.measured;
    to.status = from.status, to.reason = from.reason;
    to.record = from.record, to.describe_s = from.describe_s;
    if (!to.record.task_id.empty())
      to.record.measured = measured.empty() ? store::utc_now() : measured;
    if (to.status == BaselineStatus::pending) return;
    if (to.status == BaselineStatus::cached) take_cached(to);
    if (to.record.name.empty()) to.record.name = to.task.name;
    if (to.status == BaselineStatus::measured) keep(to.record);
    observer_.on_row(to, ++ended_, report_.rows.size());
  }

  void take_cached(BaselineRow& row) {
    const BaselineRecord& r = row.record;
    if (auto found = cache_.find(r.task_id, r.gpu, r.driver, r.torch)) {
      row.record = std::move(*found);
    } else {
      row.status = BaselineStatus::unfinished;
      row.reason = "another process removed its times from the cache";
    }
  }

  void keep(const BaselineRecord& record) {
    if (auto kept = cache_.keep(record); !kept)
      log_warning("baselines of {} are not kept: {}", record.name, kept.error().text());
  }

  const BaselineCache& cache_;
  BaselineObserver& observer_;
  BaselineReport report_;
  const Clock::time_point start_ = Clock::now();
  size_t ended_ = 0;
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

Result<BaselineReport> measure_baselines(const StartEvaluator& start, const Context& ctx,
                                         const BaselineCache& cache,
                                         const BaselineSuiteSettings& settings,
                                         const std::vector<SuiteTask>& tasks,
                                         BaselineObserver& observer) {
  eval::EvaluatorOptions options;
  options.device = settings.device, options.python = settings.python;
  options.require_sandbox = settings.require_sandbox, options.suites = true;
  CG_TRY(auto evaluator, start(ctx, options));
  Collector collector(cache, tasks, observer);
  bool begun = false;
  auto done = evaluator->measure_suite(
      ctx, request_of(settings, cache, tasks),
      [&](const eval::SuiteNews& news) { begun = true, collector.take(news); },
      [&](const std::string& line) { observer.on_progress(line); });
  if (!done && !(begun && ctx.done())) return fail(done.error());
  return std::move(collector).report(ctx);
}

}  // namespace cutegen::engine
