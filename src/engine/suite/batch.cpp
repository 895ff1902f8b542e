// SPDX-License-Identifier: Apache-2.0
#include "engine/suite/batch.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "engine/suite/evaluator_pool.h"

namespace cutegen::engine {
namespace fs = std::filesystem;
namespace {

// Folds a run's events into its view and its curve, and puts its questions into the trace.
class RunWatch final : public RunObserver {
 public:
  using Progress = std::function<void(const std::string&)>;
  RunWatch(Progress progress, Trace* trace, std::string track)
      : progress_(std::move(progress)), trace_(trace), track_(std::move(track)) {}

  Result<void> seed(const std::vector<Event>& events) {
    for (const Event& event : events) CG_CHECK(fold(event));
    return {};
  }
  void on_event(const Event& event) override {
    if (event.type == EventType::asked) {
      asked_ = Clock::now();
      role_ = event.data.value("role", "");
    } else if (event.type == EventType::answered && trace_) {
      trace_->add(track_, role_, asked_, Clock::now());
    }
    if (auto folded = fold(event); !folded) broken = folded.error().message;
  }
  void on_progress(const std::string& line) override { progress_(line); }

  RunView view;
  std::vector<std::optional<double>> curve;
  std::string broken;

 private:
  Result<void> fold(const Event& event) {
    const int64_t before = view.evaluations;
    CG_CHECK(view.apply(event));
    const RunStep* best = view.incumbent();
    auto ns = best ? best->time_ns() : std::nullopt;
    if (view.evaluations > before) curve.push_back(ns);
    if (event.type == EventType::accepted && !curve.empty()) curve.back() = ns;
    return {};
  }

  Progress progress_;
  Trace* trace_;
  std::string track_, role_;
  Clock::time_point asked_;
};

// Adds the fault of the program judged first, unless the reason already names it.
void add_headline(RunRow& row, const RunView& view) {
  if (view.steps.empty() || !view.steps.front().verdict) return;
  const std::string& headline = view.steps.front().verdict->feedback.headline;
  if (!headline.empty() && row.reason.find(headline) == std::string::npos)
    row.reason += ": " + headline;
}

std::string diagnosis_of(const RunView& view) {
  const Profile* profile = view.best_profile();
  if (!profile || profile->kernels.empty())
    return view.profiled && !view.profiled->why.empty() ? "no profile: " + view.profiled->why : "";
  const auto& kernels = profile->kernels;
  auto slowest = std::max_element(kernels.begin(), kernels.end(),
                                  [](auto& a, auto& b) { return a.time_ns < b.time_ns; });
  return slowest->diagnosis.summary;
}

RunRow row_of(const RunView& view, const RunResult& outcome, bool stopped, double minutes) {
  RunRow row;
  row.run = outcome.run_id;
  row.reason = outcome.reason;
  row.evaluations = outcome.evaluations;
  row.first_ns = outcome.first_ns;
  row.seconds = double(view.clock_ms) / 1e3;
  row.models = view.models;
  if (view.task) row.workload = view.task->task.workload, row.floor_ns = view.task->floor_ns;
  if (view.task && view.baselines) row.math_mode = to_string(view.task->task.math_mode);
  row.baselines = view.baselines;
  row.diagnosis = diagnosis_of(view);
  if (outcome.best_verdict && outcome.best_verdict->timing) {
    row.best_ns = outcome.best_verdict->timing->time_ns;
    row.time_origin = to_string(outcome.best_verdict->timing->origin);
  }
  if (!view.steps.empty())
    row.rewrites = (outcome.best ? *outcome.best : view.steps.front().candidate).edit.rewrites;
  if (outcome.interrupted && stopped) {
    row.status = RowStatus::interrupted;
    return row;
  }
  if (outcome.interrupted) row.reason = fmt::format("cut off after {} minutes", 2 * minutes);
  if (outcome.best)
    row.status = RowStatus::correct;
  else if (outcome.reason.starts_with("no recipe"))
    row.status = RowStatus::no_recipe;
  else
    row.status = outcome.all_verdicts ? row_status(*outcome.all_verdicts) : RowStatus::failed;
  if (!outcome.best) add_headline(row, view);
  return row;
}

class Batch {
 public:
  Batch(const Parts& parts, const Context& ctx, store::Store& store, const BatchSettings& settings,
        const std::vector<BatchItem>& items, BatchObserver& observer)
      : given_(parts),
        parts_(parts),
        ctx_(ctx),
        store_(store),
        settings_(settings),
        items_(items),
        observer_(observer),
        pool_(given_, {.evaluators = evaluators_of(settings.jobs, settings.evaluators),
                       .runs = settings.jobs,
                       .trace = settings.trace}) {
    parts_.start_evaluator = [this](const Context& c, const eval::EvaluatorOptions& o) {
      auto lease = pool_.lease(c, o);
      if (!lease && lease.error().kind == ErrorKind::user) end_with(lease.error());
      return lease;
    };
    if (given_.controls)
      parts_.controls = [this](const Context& c, eval::EvaluatorClient&,
                               const eval::OpenedTask& opened) { return controls_once(c, opened); };
  }

  Result<void> run() {
    if (std::any_of(items_.begin(), items_.end(), [](auto& i) { return i.goes_on; })) {
      CG_TRY(stored_, store_.list());
    }
    std::vector<std::jthread> helpers;
    for (int i = 1; i < settings_.jobs; ++i) helpers.emplace_back([this] { work(); });
    work();
    helpers.clear();
    if (fatal_) return fail(*fatal_);
    return {};
  }

 private:
  // Takes the next item; empty if all are taken or the batch ends.
  std::optional<size_t> take() {
    std::lock_guard hold(lock_);
    if (fatal_ || ctx_.stopped() || next_ == items_.size()) return std::nullopt;
    return next_++;
  }

  void work() {
    while (auto item = take()) {
      RunRow row = run_item(*item);
      std::lock_guard hold(lock_);
      if (fatal_) return;
      if (auto told = observer_.on_end(*item, std::move(row)); !told) fatal_ = told.error();
    }
  }

  // Times the controls once for all runs, on an evaluator of its own, because those of the pool
  // hold the runs' tasks.
  Result<std::vector<ControlTime>> controls_once(const Context& ctx,
                                                 const eval::OpenedTask& opened) {
    std::lock_guard one_at_a_time(controls_lock_);
    if (!controls_) {
      auto evaluator = given_.start_evaluator(ctx, items_.front().settings.evaluator);
      if (!evaluator) return fail(evaluator.error());
      auto timed = given_.controls(ctx, **evaluator, opened);
      if (!timed && ctx.done()) return timed;
      controls_ = std::move(timed);
    }
    return *controls_;
  }

  // Ends the batch with a user error that would affect every item.
  void end_with(const Error& error) {
    std::lock_guard hold(lock_);
    if (!fatal_) fatal_ = error;
  }

  RunRow run_item(size_t number) {
    const BatchItem& item = items_[number];
    const auto start = Clock::now();
    Context ctx = ctx_;
    if (item.minutes > 0) ctx = ctx.with_timeout(Nanoseconds(int64_t(item.minutes * 2 * 60e9)));
    auto progress = [&](const std::string& line) {
      std::lock_guard hold(lock_);
      observer_.on_progress(number, line);
    };
    RunWatch watch(progress, settings_.trace,
                   fmt::format("{} {}", number + 1, item.settings.file.stem().string()));
    auto outcome = start_or_resume(ctx, item, watch);
    if (outcome && !watch.broken.empty()) outcome = world_error(watch.broken);
    RunRow row;
    if (outcome) {
      row = row_of(watch.view, *outcome, ctx_.stopped(), item.minutes);
      row.curve = std::move(watch.curve);
    } else {
      row.status = ctx_.stopped() ? RowStatus::interrupted : RowStatus::error;
      row.reason = outcome.error().text();
      row.error_code = cutegen::exit_code(outcome.error());
      row.seconds = std::chrono::duration<double>(Clock::now() - start).count();
      row.models = watch.view.models;
    }
    return row;
  }

  Result<RunResult> start_or_resume(const Context& ctx, const BatchItem& item, RunWatch& watch) {
    OptimizeSettings settings = item.settings;
    settings.search.budget.minutes = item.minutes;
    CG_TRY(auto earlier, unfinished_run(item));
    if (!earlier) return optimize_with(parts_, ctx, store_, settings, watch);
    CG_TRY(auto events, store_.read(*earlier));
    CG_CHECK(watch.seed(events));
    return resume_with(parts_, ctx, store_, *earlier, watch);
  }

  // Whether an earlier session may have started this run for the item. A finished run lacks its row
  // if the process was killed before it wrote the row.
  static bool may_be(const store::RunInfo& info, const BatchItem& item) {
    const bool finished = info.state == store::RunState::finished && !item.since.empty();
    return (finished || info.state == store::RunState::interrupted) && info.created >= item.since &&
           info.strategy == to_string(item.settings.strategy) &&
           info.task_file == fs::absolute(item.settings.file).string();
  }

  Result<std::optional<std::string>> unfinished_run(const BatchItem& item) {
    const OptimizeSettings& wanted = item.settings;
    for (const store::RunInfo& info : stored_) {
      if (!item.goes_on || !may_be(info, item)) continue;
      CG_TRY(auto events, store_.read(info.id));
      CG_TRY(RunView view, view_run(events));
      if (other_policy(view)) continue;  // no run may mix verdicts of two versions of the rules
      if (view.settings.out == fs::absolute(wanted.out)) return std::optional<std::string>(info.id);
    }
    return std::optional<std::string>();
  }

  const Parts given_;
  Parts parts_;  // with the pool's evaluators
  Context ctx_;
  store::Store& store_;
  const BatchSettings& settings_;
  const std::vector<BatchItem>& items_;
  BatchObserver& observer_;
  EvaluatorPool pool_;
  std::mutex lock_;  // guards all below, and the observer
  std::mutex controls_lock_;
  std::optional<Result<std::vector<ControlTime>>> controls_;
  std::vector<store::RunInfo> stored_;  // runs from before this session
  size_t next_ = 0;
  std::optional<Error> fatal_;
};

// Holds back items that ran out of GPU memory and passes on everything else.
class HoldLarge final : public BatchObserver {
 public:
  HoldLarge(const Context& ctx, BatchObserver& to) : ctx_(ctx), to_(to) {}
  Result<void> on_end(size_t item, RunRow row) override {
    const bool large = row.reason.find("CUDA_ERROR_OUT_OF_MEMORY") != std::string::npos;
    if (row.status == RowStatus::correct || !large || ctx_.done())
      return to_.on_end(item, std::move(row));
    held.push_back(item);
    to_.on_progress(item,
                    "no GPU memory is left beside other tasks: the task runs alone at the end");
    return {};
  }
  void on_progress(size_t item, const std::string& line) override { to_.on_progress(item, line); }

  std::vector<size_t> held;

 private:
  const Context& ctx_;
  BatchObserver& to_;
};

// Passes on the events of a part of a batch under the whole batch's item numbers.
class Numbered final : public BatchObserver {
 public:
  Numbered(const std::vector<size_t>& numbers, BatchObserver& to) : numbers_(numbers), to_(to) {}
  Result<void> on_end(size_t item, RunRow row) override {
    return to_.on_end(numbers_[item], std::move(row));
  }
  void on_progress(size_t item, const std::string& line) override {
    to_.on_progress(numbers_[item], line);
  }

 private:
  const std::vector<size_t>& numbers_;
  BatchObserver& to_;
};

}  // namespace

std::optional<double> RunRow::floor_ratio() const {
  if (!best_ns || !floor_ns || *floor_ns <= 0) return std::nullopt;
  return *best_ns / *floor_ns;
}

std::vector<BaselineGain> RunRow::gains() const {
  auto mode = math_mode_from(math_mode);
  if (!mode || !baselines || !best_ns) return {};
  return engine::gains(*baselines, *mode, *best_ns);
}

std::optional<BaselineGain> RunRow::hardest_gain() const {
  auto mode = math_mode_from(math_mode);
  if (!mode || !baselines || !best_ns) return std::nullopt;
  return engine::hardest_gain(*baselines, *mode, *best_ns);
}

int evaluators_of(int jobs, int asked) {
  const int cores = int(std::max(1U, std::thread::hardware_concurrency()));
  return std::clamp(asked > 0 ? asked : cores, 1, std::max(1, jobs));
}

Result<void> run_batch(const Parts& parts, const Context& ctx, store::Store& store,
                       const BatchSettings& settings, const std::vector<BatchItem>& items,
                       BatchObserver& observer) {
  if (evaluators_of(settings.jobs, settings.evaluators) <= 1)
    return Batch(parts, ctx, store, settings, items, observer).run();
  HoldLarge first(ctx, observer);
  CG_CHECK(Batch(parts, ctx, store, settings, items, first).run());  // ends its evaluators
  std::vector<BatchItem> large;
  large.reserve(first.held.size());
  for (size_t i : first.held) large.push_back(items[i]);
  for (BatchItem& item : large) item.goes_on = false;
  Numbered second(first.held, observer);
  const BatchSettings alone{.jobs = 1, .evaluators = 1, .trace = settings.trace};
  return Batch(parts, ctx, store, alone, large, second).run();
}

int exit_code(const std::vector<const RunRow*>& rows) {
  auto all = [&](auto what) { return std::all_of(rows.begin(), rows.end(), what); };
  if (!all([](const RunRow* r) { return r->status != RowStatus::correct; })) return kExitOk;
  if (rows.empty()) return kExitFailed;
  const RunRow& first = *rows.front();
  const bool alike = all([&](const RunRow* r) {
    return r->status == first.status && r->error_code == first.error_code;
  });
  if (alike && first.status == RowStatus::error) return first.error_code;
  for (Status s : {Status::rejected, Status::unsupported, Status::aborted})
    if (alike && first.status == row_status(s)) return cutegen::exit_code(s);
  return kExitFailed;
}

}  // namespace cutegen::engine
