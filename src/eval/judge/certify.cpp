// SPDX-License-Identifier: Apache-2.0
#include "eval/judge/certify.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "base/text.h"
#include "core/weighted.h"
#include "eval/baselines/baseline_accuracy.h"
#include "eval/baselines/baselines.h"
#include "eval/diagnosis/statistics.h"
#include "eval/judge/ladder.h"
#include "eval/judge/turns.h"
#include "eval/rungs/audit.h"
#include "eval/rungs/gpu_correctness.h"

namespace cutegen::eval {
namespace {

// The share of GPU memory that modules of concurrent processes may use.
constexpr double kTogether = 0.3;
constexpr TimeMode kModes[] = {TimeMode::cold, TimeMode::warm, TimeMode::graph, TimeMode::call};

// A new process and what it reported about its baselines.
struct Fresh {
  std::unique_ptr<torch::TorchWorker> worker;
  std::vector<torch::BaselineOpened> told;
};

// A prefix with the shape's name, if the task has several timed shapes.
std::string at_shape(const Task& task, const ShapeCase& shape) {
  return timed_shapes(task).size() > 1 ? name_of(shape).substr(4) + ": " : std::string();
}

void merge(const std::string& kind, BaselineAccuracy found, std::vector<CertifiedBaseline>& into) {
  for (CertifiedBaseline& b : into) {
    if (b.kind != kind) continue;
    keep_worse(b.accuracy, found);
    return;
  }
  into.push_back({.kind = kind, .accuracy = std::move(found)});
}

bool fit_together(int processes, const ShapeCase& shape, const device::DeviceIdentity& gpu) {
  return processes * double(open_bytes(shape)) <= kTogether * double(gpu.memory_bytes);
}

// Opens the wanted baselines at one shape in fresh processes.
class FreshProcesses {
 public:
  FreshProcesses(const Context& ctx, const WorkerSource& open_worker, const Task& task,
                 const ShapeCase& shape, const std::vector<torch::BaselineWanted>& wanted)
      : ctx_(ctx), open_worker_(open_worker), task_(task), shape_(shape), wanted_(wanted) {}

  bool empty() const { return ready_.empty(); }

  // Opens `count` processes in parallel.
  void open(size_t count) {
    ready_.resize(count);
    std::vector<std::jthread> threads;
    threads.reserve(count);
    for (auto& fresh : ready_) threads.emplace_back([&] { fresh.emplace(open_one()); });
  }

  Result<Fresh> take() {
    auto next = std::move(ready_.back());
    ready_.pop_back();
    return std::move(*next);
  }

 private:
  Result<Fresh> open_one() const {
    Fresh out;
    CG_TRY(out.worker, open_worker_());
    CG_TRY(out.told, out.worker->open_baselines(ctx_, task_, shape_, wanted_));
    return out;
  }

  const Context& ctx_;
  const WorkerSource& open_worker_;
  const Task& task_;
  const ShapeCase& shape_;
  const std::vector<torch::BaselineWanted>& wanted_;
  std::vector<std::optional<Result<Fresh>>> ready_;
};

// Judges the program and fills in the certificate's head: the verdict's ids, the GPU, the floor.
Result<Certificate> judge(const Context& ctx, const Services& services, const Task& task,
                          const CertifyRequest& request, const Progress& progress) {
  progress("judging the program");
  EvaluateRequest whole{.program = request.program};
  CG_TRY(Verdict verdict, climb(ctx, services, task, whole, progress));
  if (verdict.status == Status::aborted) return world_error(verdict.feedback.headline);
  if (verdict.status != Status::correct)
    return user_error(fmt::format("this program is not correct ({}): {}", to_string(verdict.status),
                                  verdict.feedback.headline),
                      {},
                      "run cutegen eval for the details; cutegen certifies only correct programs");
  Certificate out;
  out.program_id = verdict.program_id;
  out.task_id = task.id;
  out.shape = task.official().name;
  out.gpu = services.identity.gpu, out.uuid = services.identity.uuid;
  out.driver = services.identity.driver;
  const Roofline floor = floor_of(services.gpu, task);
  out.floor_ns = floor.floor_ns, out.bound_by = to_string(floor.bound_by);
  out.processes = request.processes;
  return out;
}

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
    CG_TRY(out_, judge(ctx_, services_, task_, request_, progress_));
    choose_baselines();
    CG_CHECK(prepare());
    for (const ShapeCase* shape : timed_shapes(task_)) CG_CHECK(one_shape(*shape));
    out_.modes = headline_modes(out_.shapes);
    if (out_.shapes.size() == 1) out_.shapes.clear();
    if (out_.modes.empty())
      return world_error("nothing could be measured: " +
                         (out_.missing.empty() ? std::string("no mode ran") : out_.missing[0]));
    clocks_.write(out_);
    out_.elapsed = Clock::now() - start;
    return std::move(out_);
  }

 private:
  void choose_baselines() {
    wanted_ = request_.baselines;
    if (const std::string same = same_as_eager(task_); !same.empty())
      if (std::erase_if(wanted_, [](auto& w) { return w.kind == BaselineKind::eager_fp32; }))
        out_.missing.push_back(to_string(BaselineKind::eager_fp32) + (": " + same));
  }

  Result<void> prepare() {
    CG_TRY(const RungEnd end, prepared_.compile(ctx_, services_));
    if (!end.passed) return world_error("the program does not compile again: " + end.headline);
    CG_TRY(AuditOutcome audited, audit_binaries(ctx_, services_, task_, prepared_.images()));
    prepared_.keep_code(std::move(audited.code));
    return {};
  }

  Result<void> one_shape(const ShapeCase& shape) {
    shape_ = &shape;
    rounds_.clear();
    fresh_.emplace(ctx_, open_worker_, task_, shape, wanted_);
    for (int p = 0; p < request_.processes; ++p) CG_CHECK(one_process(p));
    CertifiedShape out{.shape = shape.name,
                       .weight = shape.weight,
                       .floor_ns = floor_of(services_.gpu, task_, shape).floor_ns};
    for (TimeMode mode : kModes) {
      auto at = rounds_.find(mode);
      if (at != rounds_.end() && !at->second.front().own.empty())
        out.modes.push_back(pooled(mode, at->second, request_.precise, out_.apart));
    }
    out_.shapes.push_back(std::move(out));
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
    if (!prepared) return world_error("the program does not accept " + name_of(*shape_));
    runs_.emplace(services_, task_, prepared_, *prepared);
    const std::string user = fmt::format("{} certified {}", out_.program_id, number);
    CG_CHECK(runs_->prepare(ctx_, user, official_set(user), nullptr));
    if (auto end = runs_->too_large()) return world_error(end->end.detail);
    CG_TRY(auto end, runs_->begin(ctx_));
    if (end) return world_error("the program does not run again: " + end->end.headline);
    CG_TRY(end, runs_->control(ctx_, Turns::kBlock));
    if (end) return world_error("the program does not run again: " + end->end.headline);
    for (TimeMode mode : kModes) {
      progress_(fmt::format("{}process {} of {}: {}", at_shape(task_, *shape_), number + 1,
                            request_.processes, to_string(mode)));
      CG_CHECK(one_mode(mode, number));
    }
    CG_CHECK(note_memory_clock());
    runs_.reset();
    worker_.reset();
    return {};
  }

  // A set with the truth at the official shape; null if the evaluator cannot compute one.
  GpuSetPtr official_set(const std::string& user) {
    if (!services_.official || !services_.official->missing().empty()) return nullptr;
    auto set = services_.official->draw(ctx_, task_, *shape_, services_.families.front(), user);
    if (set) return std::move(*set);
    note(fmt::format("values at {}: {}", name_of(*shape_), set.error().message));
    return nullptr;
  }

  // Call it after the last block, while the GPU still runs at full clocks.
  Result<void> note_memory_clock() {
    auto state = runs_->watch(ctx_);
    CG_CHECK(ctx_.check("certifying"));
    if (!state) return {};
    clocks_.note_memory(*state);
    return {};
  }

  // If all processes fit in GPU memory, opens the rest in parallel before it times any, because
  // builds of torch.compile take most of a certificate's time.
  Result<void> next_worker(int number) {
    if (fresh_->empty()) {
      const int left = request_.processes - number;
      const int count = fit_together(left, *shape_, services_.identity) ? left : 1;
      progress_(at_shape(task_, *shape_) +
                (count > 1 ? fmt::format("opening the baselines of {} processes", count)
                           : fmt::format("process {} of {}: opening the baselines", number + 1,
                                         request_.processes)));
      fresh_->open(size_t(count));
    }
    CG_TRY(Fresh fresh, fresh_->take());
    worker_ = std::move(fresh.worker);
    open_.clear();
    for (size_t i = 0; i < fresh.told.size(); ++i) {
      if (fresh.told[i].why.empty())
        open_.push_back(wanted_[i]);
      else
        note(wanted_[i].name() + ": " + fresh.told[i].why);
    }
    return judge_open();
  }

  // Judges the baselines once per shape. A baseline passes if it passes at every shape.
  Result<void> judge_open() {
    if (judged_ == shape_) return {};
    judged_ = shape_;
    progress_(at_shape(task_, *shape_) + "judging the baselines");
    const BaselineSets sets = sets_of(services_.official.get(), task_, *shape_, services_.families);
    CG_TRY(auto found, judge_baselines(ctx_, sets, *worker_, task_, *shape_, open_));
    for (size_t i = 0; i < open_.size(); ++i) {
      if (!found[i].passes || !*found[i].passes)
        found[i].why = at_shape(task_, *shape_) + found[i].why;
      merge(open_[i].name(), std::move(found[i]), out_.baselines);
    }
    return {};
  }

  void note(std::string what) {
    what = sanitize(at_shape(task_, *shape_) + what, 400);
    if (std::find(out_.missing.begin(), out_.missing.end(), what) == out_.missing.end())
      out_.missing.push_back(std::move(what));
  }

  Result<void> one_mode(TimeMode mode, int number) {
    Turns turns(ctx_, *runs_, *worker_, mode, open_, clocks_);
    CG_CHECK(turns.run(request_.precise));
    for (const std::string& why : turns.notes()) note(why);
    auto& processes = rounds_[mode];
    processes.resize(size_t(number) + 1);
    processes.back() = turns.rounds();
    return {};
  }

  const Context& ctx_;
  const Services& services_;
  const Task& task_;
  const CertifyRequest& request_;
  const WorkerSource& open_worker_;
  const Progress& progress_;
  Prepared prepared_;
  Certificate out_;
  const ShapeCase* shape_ = nullptr;   // the shape being certified
  const ShapeCase* judged_ = nullptr;  // the shape at which the baselines were last judged
  Clocks clocks_;
  std::vector<torch::BaselineWanted> wanted_;  // each distinct baseline once
  std::unique_ptr<torch::TorchWorker> worker_;
  std::optional<FreshProcesses> fresh_;
  std::optional<PairedRuns> runs_;
  std::vector<torch::BaselineWanted> open_;
  std::map<TimeMode, std::vector<Rounds>> rounds_;
};

}  // namespace

CertifiedMode pooled(TimeMode mode, const std::vector<Rounds>& processes, double precise,
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
    out.against.push_back({.against = name,
                           .speedup = s.value,
                           .low = s.low,
                           .high = s.high,
                           .other_ns = median_of(theirs).value,
                           .pairs = int(mine.size()),
                           .stopped = known ? "precise" : "enough"});
    if (mode == TimeMode::cold) apart = std::max(apart, highest / lowest - 1);
  }
  return out;
}

Result<Certificate> certify(const Context& ctx, const Services& services, const Task& task,
                            const CertifyRequest& request, const WorkerSource& open_worker,
                            const Progress& progress) {
  return Certification(ctx, services, task, request, open_worker, progress).run();
}

}  // namespace cutegen::eval
