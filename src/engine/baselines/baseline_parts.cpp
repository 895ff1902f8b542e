// SPDX-License-Identifier: Apache-2.0
#include "engine/baselines/baseline_parts.h"

#include <algorithm>
#include <mutex>
#include <random>

#include "device/device.h"
#include "engine/run/controls.h"
#include "eval/judge/baseline_accuracy.h"
#include "eval/runner/gpu_slot.h"
#include "eval/sets/gpu_set.h"
#include "eval/sets/judge_kernels.h"

namespace cutegen::engine {
namespace {

constexpr auto kTruthLimit = std::chrono::seconds(120), kJudgeLimit = std::chrono::seconds(60);
constexpr int64_t kWorkerMemory = int64_t{64} << 30;
constexpr int kCompileThreads = 1;  // the workers already run in parallel

// Computes truths. This process owns their memory; a worker writes into it.
class Truths {
 public:
  explicit Truths(const BaselineSuiteSettings& settings) : settings_(settings) {}

  Result<TruthMade> make(const Context& ctx, const BaselineGpu& gpu, const Task& task) {
    if (!judge_) CG_CHECK(start(ctx, gpu));
    TruthMade out;
    CG_TRY(eval::GpuSlot slot, eval::GpuSlot::acquire(ctx, gpu.uuid));
    const auto start = Clock::now();
    auto set = eval::make_gpu_set(ctx, *judge_, *worker_, task, task.official(), "made",
                                  std::random_device()());
    out.seconds = std::chrono::duration<double>(Clock::now() - start).count();
    if (set) {
      out.bytes = (*set)->bytes;
      out.notes = (*set)->notes;
      CG_TRY(out.accuracy, judge(ctx, task, *set));
    } else {
      CG_CHECK(ctx.check("making a truth"));
      out.why = set.error().message;
    }
    set = fail(Error{});  // free the set before its memory is trimmed
    judge_->trim();
    if (broken_) worker_.reset(), judge_.reset();
    broken_ = false;
    return out;
  }

 private:
  // Judges only eager baselines, because this worker may not start a compiler.
  Result<std::map<BaselineKind, BaselineAccuracy>> judge(const Context& ctx, const Task& task,
                                                         const eval::GpuSetPtr& set) {
    std::vector<torch::BaselineWanted> wanted;
    for (const torch::BaselineWanted& w : settings_.baselines)
      if (is_eager(w.kind) &&
          (w.kind != BaselineKind::eager_fp32 || eval::same_as_eager(task).empty()))
        wanted.push_back(w);
    std::map<BaselineKind, BaselineAccuracy> out;
    if (wanted.empty()) return out;
    eval::BaselineSets sets;
    sets.missing = no_kernels_;
    sets.gpu = judge_.get(), sets.families = {set->family}, sets.lock = false;
    sets.draw = [&](const Context&, const std::string&) { return Result<eval::GpuSetPtr>(set); };
    const Context limited = ctx.with_timeout(kJudgeLimit);
    auto opened = worker_->open_baselines(limited, task, task.official(), wanted);
    CG_CHECK(ctx.check("judging baselines"));
    if (!opened) sets.missing = opened.error().message;
    auto found = eval::judge_baselines(limited, sets, *worker_, task, task.official(), wanted);
    CG_CHECK(ctx.check("judging baselines"));
    for (size_t i = 0; i < wanted.size() && found; ++i)
      out.emplace(wanted[i].kind, std::move((*found)[i]));
    for (size_t i = 0; i < wanted.size() && found && opened; ++i)
      if (!(*opened)[i].why.empty()) out[wanted[i].kind].why = (*opened)[i].why;
    broken_ = !worker_->close_baselines(ctx.with_timeout(kJudgeLimit));
    return out;
  }

  Result<void> start(const Context& ctx, const BaselineGpu& gpu) {
    torch::TorchWorkerOptions torch;
    torch.python = settings_.python, torch.device = settings_.device.text();
    torch.require_sandbox = settings_.require_sandbox;
    torch.call_timeout = kTruthLimit;
    CG_TRY(worker_, torch::TorchWorker::open(std::move(torch)));
    CG_TRY(judge_, eval::GpuJudge::open(settings_.device));
    auto ready = eval::prepare_judge(ctx, *judge_,
                                     {.python = settings_.python,
                                      .cuda_version = gpu.cuda_version,
                                      .require_sandbox = settings_.require_sandbox});
    CG_CHECK(ctx.check("starting the judge"));
    if (!ready) no_kernels_ = ready.error().message;  // truths do not need the judge's kernels
    return {};
  }

  const BaselineSuiteSettings settings_;
  std::unique_ptr<torch::TorchWorker> worker_;
  std::unique_ptr<eval::GpuJudge> judge_;
  std::string no_kernels_;  // why no baseline can be judged
  bool broken_ = false;     // the worker could not close its baselines
};

Result<BaselineGpu> look_at(const Context& ctx, const DeviceName& device) {
  if (!device.is_gpu())
    return world_error("baselines need a GPU, and " + device.text() + " is not one",
                       "use --device cuda:0");
  eval::Runner runner({.device = device});
  CG_CHECK(runner.start(ctx));
  const device::DeviceIdentity& id = runner.identity();
  CG_TRY(GpuSpec spec, gpu_of_product(id.gpu));
  return BaselineGpu{.spec = std::move(spec),
                     .uuid = id.uuid,
                     .driver = id.driver,
                     .memory_bytes = id.memory_bytes,
                     .cuda_version = id.cuda_version};
}

// What all workers of a suite use: the GPU's lock files, and the times that max-autotune measured.
struct Shared {
  std::mutex lock;
  std::vector<UniqueFd> files;
  std::shared_ptr<torch::TunedTimes> tuned = std::make_shared<torch::TunedTimes>();
};

Result<std::unique_ptr<torch::TorchWorker>> open_worker(const BaselineSuiteSettings& settings,
                                                        const BaselineGpu& gpu, Shared& shared) {
  CG_TRY(UniqueFd file, eval::GpuSlot::file(gpu.uuid));
  torch::TorchWorkerOptions torch;
  torch.python = settings.python, torch.device = settings.device.text();
  torch.require_sandbox = settings.require_sandbox;
  torch.compiles = std::any_of(settings.baselines.begin(), settings.baselines.end(),
                               [](auto& b) { return !is_eager(b.kind); });
  torch.compile_threads = kCompileThreads;
  torch.memory_bytes = kWorkerMemory;
  torch.call_timeout = std::chrono::hours(1);  // every call has its own limit
  torch.slot = file.get();
  torch.tuned = shared.tuned;
  std::unique_lock hold(shared.lock);
  shared.files.push_back(std::move(file));
  hold.unlock();
  return torch::TorchWorker::open(std::move(torch));
}

}  // namespace

BaselineParts real_baseline_parts(const BaselineSuiteSettings& settings) {
  auto shared = std::make_shared<Shared>();
  auto truths = std::make_shared<Truths>(settings);
  return {.gpu = [settings](const Context& ctx) { return look_at(ctx, settings.device); },
          .worker = [settings, shared](
                        const BaselineGpu& gpu) { return open_worker(settings, gpu, *shared); },
          .controls = [settings](const Context& ctx) -> Result<std::vector<ControlTime>> {
            eval::EvaluatorOptions options;
            options.device = settings.device, options.python = settings.python;
            options.require_sandbox = settings.require_sandbox;
            CG_TRY(auto evaluator, eval::EvaluatorClient::start(ctx, options));
            return time_controls(ctx, *evaluator);
          },
          .truth = [truths](const Context& ctx, const BaselineGpu& gpu,
                            const Task& task) { return truths->make(ctx, gpu, task); }};
}

}  // namespace cutegen::engine
