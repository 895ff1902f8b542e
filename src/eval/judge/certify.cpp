// SPDX-License-Identifier: Apache-2.0
#include "eval/judge/certify.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <thread>

#include "base/text.h"
#include "core/weighted.h"
#include "eval/diagnosis/statistics.h"
#include "eval/judge/baseline_accuracy.h"
#include "eval/judge/baselines.h"
#include "eval/judge/ladder.h"
#include "eval/rungs/audit.h"
#include "eval/rungs/official.h"
#include "eval/rungs/official_runs.h"

namespace cutegen::eval {
namespace {

constexpr int kBlock = 5;  // runs of one participant in a round
constexpr size_t kLeastRounds = 8, kMostRounds = 24;
constexpr auto kMostTime = std::chrono::seconds(8);  // of one mode in one process
// Of the GPU's memory: what modules may take that are opened side by side.
constexpr double kTogether = 0.3;
constexpr device::TimeMode kModes[] = {device::TimeMode::cold, device::TimeMode::warm,
                                       device::TimeMode::graph, device::TimeMode::call};
constexpr const char* kModeNames[] = {"cold", "warm", "graph", "call"};

const char* name_of(device::TimeMode mode) {
  return kModeNames[static_cast<size_t>(mode)];
}

std::string name_of(const torch::BaselineWanted& wanted) {
  return wanted.target.empty() ? wanted.kind : wanted.target;
}

// A fresh process with its baselines.
struct Fresh {
  std::unique_ptr<torch::TorchWorker> worker;
  std::vector<torch::BaselineOpened> told;
};

class Certification {
 public:
  Certification(const Context& ctx, const Services& services, const Task& task,
                const CertifyRequest& request, const WorkerSource& open_worker,
                const Progress& progress)
      : ctx_(ctx),
        services_(services),
        task_(task),
        request_(request),
        open_worker_(open_worker),
        progress_(progress),
        prepared_(request.program, task) {}

  Result<Certificate> run() {
    const auto start = Clock::now();
    CG_CHECK(judge());
    for (const ShapeCase* shape : timed_shapes(task_)) CG_CHECK(one_shape(*shape));
    out_.modes = headline_modes(out_.shapes);
    if (out_.shapes.size() == 1) out_.shapes.clear();
    if (out_.modes.empty())
      return world_error("nothing could be measured: " +
                         (out_.missing.empty() ? std::string("no mode ran") : out_.missing[0]));
    if (!clocks_hz_.empty()) out_.sm_clock_hz = median_of(clocks_hz_).value;
    out_.elapsed = Clock::now() - start;
    return std::move(out_);
  }

 private:
  Result<void> one_shape(const ShapeCase& shape) {
    shape_ = &shape;
    rounds_.clear(), ready_.clear();
    for (int p = 0; p < request_.processes; ++p) CG_CHECK(one_process(p));
    CertifiedShape out{shape.name, shape.weight, floor_of(services_.gpu, task_, shape).floor_ns};
    for (device::TimeMode mode : kModes) {
      auto at = rounds_.find(mode);
      if (at != rounds_.end() && !at->second.front().own.empty())
        out.modes.push_back(pooled(name_of(mode), at->second, request_.precise, out_.apart));
    }
    out_.shapes.push_back(std::move(out));
    return {};
  }

  Result<void> judge() {
    shape_ = &task_.official();
    wanted_ = request_.baselines;
    if (const std::string same = same_as_eager(task_); !same.empty())
      if (std::erase_if(wanted_, [](auto& w) { return w.kind == kStrictEager; }))
        out_.missing.push_back(std::string(kStrictEager) + ": " + same);
    progress_("judging the program");
    EvaluateRequest whole{.program = request_.program};
    CG_TRY(Verdict verdict, climb(ctx_, services_, task_, whole, progress_));
    if (verdict.status == Status::aborted) return world_error(verdict.feedback.headline);
    if (verdict.status != Status::correct)
      return user_error(
          fmt::format("this program is not correct ({}): {}", to_string(verdict.status),
                      verdict.feedback.headline),
          {}, "run cutegen eval for the details; cutegen certifies only correct programs");
    out_.program_id = verdict.program_id;
    out_.task_id = task_.id;
    out_.shape = task_.official().name;
    out_.gpu = services_.identity.gpu, out_.uuid = services_.identity.uuid;
    out_.driver = services_.identity.driver;
    const Roofline floor = floor_of(services_.gpu, task_);
    out_.floor_ns = floor.floor_ns, out_.bound_by = floor.bound_by;
    out_.processes = request_.processes;
    CG_TRY(const RungEnd end, prepared_.compile(ctx_, services_));
    if (!end.passed) return world_error("the program does not compile again: " + end.headline);
    CG_TRY(AuditOutcome audited, audit_binaries(ctx_, services_, task_, prepared_.images()));
    prepared_.keep_code(std::move(audited.code));
    return {};
  }

  Result<void> one_process(int number) {
    services_.runner->stop();
    CG_TRY(RungEnd loaded, prepared_.load(ctx_, services_));
    if (!loaded.passed) return world_error("the program does not load again: " + loaded.headline);
    CG_CHECK(next_worker(number));
    out_.torch = worker_->version(), out_.cudnn = worker_->cudnn();
    out_.sandbox = weakest({services_.runner->grade(), worker_->grade()});
    const PreparedShape* prepared = shape_of(prepared_, shape_->name);
    if (!prepared) return world_error("the program does not accept " + eval::name_of(*shape_));
    runs_.emplace(services_, task_, prepared_, *prepared);
    const std::string user = fmt::format("{} certified {}", out_.program_id, number);
    CG_CHECK(runs_->prepare(ctx_, user, official_set(user), nullptr));
    if (auto end = runs_->too_large()) return world_error(end->end.detail);
    CG_TRY(auto end, runs_->begin(ctx_));
    if (end) return world_error("the program does not run again: " + end->end.headline);
    CG_TRY(end, runs_->control(ctx_, kBlock));
    if (end) return world_error("the program does not run again: " + end->end.headline);
    for (device::TimeMode mode : kModes) {
      progress_(fmt::format("{}process {} of {}: {}", at_shape(), number + 1, request_.processes,
                            name_of(mode)));
      CG_CHECK(one_mode(mode, number));
    }
    CG_CHECK(note_memory_clock());
    runs_.reset();
    worker_.reset();
    return {};
  }

  // The truth at the official shape, if it can be computed.
  OfficialSetPtr official_set(const std::string& user) {
    if (!services_.official || !services_.official->missing().empty()) return nullptr;
    auto set = services_.official->draw(ctx_, task_, *shape_, services_.families.front(), user);
    if (set) return std::move(*set);
    note(fmt::format("values at {}: {}", eval::name_of(*shape_), set.error().message));
    return nullptr;
  }

  // In front of what is said of one of several shapes.
  std::string at_shape() const {
    return timed_shapes(task_).size() > 1 ? eval::name_of(*shape_).substr(4) + ": " : std::string();
  }

  // Behind the last block, while the GPU is still warm.
  Result<void> note_memory_clock() {
    auto state = runs_->watch(ctx_);
    CG_CHECK(ctx_.check("certifying"));
    if (!state) return {};
    if (auto at = state->find("memory_clock_hz"); at != state->end() && at->second > 0)
      out_.memory_clock_hz = std::min(out_.memory_clock_hz.value_or(at->second), at->second);
    return {};
  }

  void note_clocks(const std::map<std::string, double>& state) {
    if (auto at = state.find("sm_clock_hz"); at != state.end() && at->second > 0)
      clocks_hz_.push_back(at->second);
    if (auto at = state.find("sm_clock_least_hz"); at != state.end() && at->second > 0)
      out_.sm_clock_least_hz = std::min(out_.sm_clock_least_hz.value_or(at->second), at->second);
  }

  // Opens all wanted baselines in parallel, if they fit, before it times any of them, because
  // torch.compile's builds take most of a certificate's time.
  Result<void> next_worker(int number) {
    if (ready_.empty()) {
      const int left = request_.processes - number, count = fit_together(left) ? left : 1;
      progress_(at_shape() + (count > 1
                                  ? fmt::format("opening the baselines of {} processes", count)
                                  : fmt::format("process {} of {}: opening the baselines",
                                                number + 1, request_.processes)));
      ready_.resize(static_cast<size_t>(count));
      std::vector<std::jthread> threads;
      threads.reserve(ready_.size());
      for (auto& fresh : ready_) threads.emplace_back([&] { fresh.emplace(open_fresh()); });
    }
    auto next = std::move(ready_.back());
    ready_.pop_back();
    CG_TRY(Fresh fresh, std::move(*next));
    worker_ = std::move(fresh.worker);
    open_.clear();
    for (size_t i = 0; i < fresh.told.size(); ++i) {
      if (fresh.told[i].why.empty())
        open_.push_back(wanted_[i]);
      else
        note(name_of(wanted_[i]) + ": " + fresh.told[i].why);
    }
    return judge_open();
  }

  // Once for each shape; a baseline passes if it does at every shape.
  Result<void> judge_open() {
    if (judged_ == shape_) return {};
    judged_ = shape_;
    progress_(at_shape() + "judging the baselines");
    const BaselineSets sets = sets_of(services_.official, task_, *shape_, services_.families);
    CG_TRY(auto found, judge_baselines(ctx_, sets, *worker_, task_, *shape_, open_));
    for (size_t i = 0; i < open_.size(); ++i) merge(name_of(open_[i]), std::move(found[i]));
    return {};
  }

  void merge(const std::string& kind, BaselineAccuracy found) {
    if (!found.passes || !*found.passes) found.why = at_shape() + found.why;
    for (CertifiedBaseline& b : out_.baselines) {
      if (b.kind != kind) continue;
      keep_worse(b.accuracy, found);
      return;
    }
    out_.baselines.push_back({kind, std::move(found)});
  }

  Result<Fresh> open_fresh() {
    Fresh out;
    CG_TRY(out.worker, open_worker_());
    CG_TRY(out.told, out.worker->open_baselines(ctx_, task_, *shape_, wanted_));
    return out;
  }

  bool fit_together(int processes) const {
    return processes * static_cast<double>(open_bytes(*shape_)) <=
           kTogether * static_cast<double>(services_.identity.memory_bytes);
  }

  void note(std::string what) {
    what = sanitize(at_shape() + what, 400);
    if (std::find(out_.missing.begin(), out_.missing.end(), what) == out_.missing.end())
      out_.missing.push_back(std::move(what));
  }

  Result<void> one_mode(device::TimeMode mode, int number) {
    auto& processes = rounds_[mode];
    processes.resize(static_cast<size_t>(number) + 1);
    Rounds& rounds = processes.back();
    std::vector<torch::BaselineWanted> others = open_;
    const auto start = Clock::now();
    while (rounds.own.size() < kMostRounds && Clock::now() - start < kMostTime) {
      CG_CHECK(ctx_.check("certifying"));
      if (rounds.own.size() >= kLeastRounds && precise_enough(rounds, request_.precise)) break;
      CG_TRY(bool going, one_round(mode, others, rounds));
      if (!going) break;
    }
    return {};
  }

  // Everybody once, in random order. False: the program itself cannot run in this mode.
  Result<bool> one_round(device::TimeMode mode, std::vector<torch::BaselineWanted>& others,
                         Rounds& rounds) {
    std::vector<size_t> order(others.size() + 1);
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::shuffle(order.begin(), order.end(), random_);
    std::map<std::string, double> medians;
    double own = 0;
    for (size_t who : order) {
      if (who == others.size()) {
        auto end = runs_->block(ctx_, mode, kBlock);
        if (!end && ctx_.done()) return fail(end.error());
        if (!end || *end) {
          note(fmt::format("{}: {}", name_of(mode),
                           !end ? end.error().message : (*end)->end.headline));
          return false;
        }
        own = median_of(runs_->own()).value;
        note_clocks(runs_->state());
        continue;
      }
      auto times = worker_->time_baseline(ctx_, others[who].kind, name_of(mode), kBlock);
      if (!times && ctx_.done()) return fail(times.error());
      if (times)
        medians[name_of(others[who])] = median_of(*times).value;
      else
        note(fmt::format("{}, {}: {}", name_of(others[who]), name_of(mode), times.error().message));
    }
    std::erase_if(others, [&](auto& o) { return !medians.contains(name_of(o)); });
    std::erase_if(rounds.others, [&](auto& o) { return !medians.contains(o.first); });
    rounds.own.push_back(own);
    for (const auto& [name, ns] : medians) rounds.others[name].push_back(ns);
    return true;
  }

  const Context& ctx_;
  const Services& services_;
  const Task& task_;
  const CertifyRequest& request_;
  const WorkerSource& open_worker_;
  const Progress& progress_;
  Prepared prepared_;
  Certificate out_;
  const ShapeCase* shape_ = nullptr;           // that is certified now
  const ShapeCase* judged_ = nullptr;          // at which the baselines were judged last
  std::vector<double> clocks_hz_;              // of the SMs, a median for each block
  std::vector<torch::BaselineWanted> wanted_;  // without those that are the same as another
  std::unique_ptr<torch::TorchWorker> worker_;
  std::vector<std::optional<Result<Fresh>>> ready_;
  std::optional<OfficialRuns> runs_;
  std::vector<torch::BaselineWanted> open_;
  std::map<device::TimeMode, std::vector<Rounds>> rounds_;
  std::mt19937_64 random_{std::random_device()()};
};

}  // namespace

bool precise_enough(const Rounds& rounds, double precise) {
  return std::all_of(rounds.others.begin(), rounds.others.end(), [&](const auto& other) {
    if (other.second.size() != rounds.own.size()) return false;
    const Median m = speedup_of(rounds.own, other.second);
    return (m.high - m.low) / 2 <= precise * m.value;
  });
}

CertifiedMode pooled(const std::string& mode, const std::vector<Rounds>& processes, double precise,
                     double& apart) {
  CertifiedMode out;
  out.mode = mode;
  std::vector<double> own;
  for (const Rounds& r : processes) own.insert(own.end(), r.own.begin(), r.own.end());
  const Median m = median_of(own);
  out.time_ns = m.value, out.low_ns = m.low, out.high_ns = m.high;
  for (const auto& [name, first] : processes.front().others) {
    std::vector<double> mine, theirs;
    double lowest = 0, highest = 0;
    for (const Rounds& r : processes) {
      auto at = r.others.find(name);
      if (at == r.others.end() || at->second.size() != r.own.size() || r.own.empty()) continue;
      const double ratio = speedup_of(r.own, at->second).value;
      lowest = lowest == 0 ? ratio : std::min(lowest, ratio);
      highest = std::max(highest, ratio);
      mine.insert(mine.end(), r.own.begin(), r.own.end());
      theirs.insert(theirs.end(), at->second.begin(), at->second.end());
    }
    if (mine.empty()) continue;
    const Median s = speedup_of(mine, theirs);
    const bool known = (s.high - s.low) / 2 <= precise * s.value;
    out.against.push_back({name,
                           {},
                           s.value,
                           s.low,
                           s.high,
                           median_of(theirs).value,
                           static_cast<int>(mine.size()),
                           known ? "precise" : "enough"});
    if (mode == kModeNames[0]) apart = std::max(apart, highest / lowest - 1);
  }
  return out;
}

Result<Certificate> certify(const Context& ctx, const Services& services, const Task& task,
                            const CertifyRequest& request, const WorkerSource& open_worker,
                            const Progress& progress) {
  return Certification(ctx, services, task, request, open_worker, progress).run();
}

}  // namespace cutegen::eval
