// SPDX-License-Identifier: Apache-2.0
#include "eval/baselines/suite_parts.h"

#include <algorithm>
#include <mutex>
#include <random>

#include "device/device.h"
#include "eval/api/controls.h"
#include "eval/baselines/baseline_accuracy.h"
#include "eval/baselines/baselines.h"
#include "eval/runner/gpu_slot.h"
#include "eval/sets/gpu_set.h"
#include "eval/sets/judge_kernels.h"

namespace cutegen::eval {
namespace {

constexpr auto kTruthLimit = std::chrono::seconds(120), kJudgeLimit = std::chrono::seconds(60);
constexpr int64_t kWorkerMemory = int64_t{64} << 30;
constexpr int kCompileThreads = 1;  // the workers already run in parallel

// Computes truths. This process owns their memory; a worker writes into it.
class Truths {
 public:
  Truths(const EvaluatorOptions& options, const SuiteRequest& request)
      : options_(options), baselines_(request.baselines) {}

  Result<TruthMade> make(const Context& ctx, const SuiteGpu& gpu, const Task& task) {
    if (!judge_) CG_CHECK(start(ctx, gpu));
    TruthMade out;
    CG_TRY(GpuSlot slot, GpuSlot::acquire(ctx, gpu.uuid));
    const auto start = Clock::now();
    auto set =
        make_gpu_set(ctx, *judge_, *worker_, task, task.official(), "made", std::random_device()());
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
                                                         const GpuSetPtr& set) {
    std::vector<torch::BaselineWanted> wanted;
    for (const torch::BaselineWanted& w : baselines_)
      if (is_eager(w.kind) && (w.kind != BaselineKind::eager_fp32 || same_as_eager(task).empty()))
        wanted.push_back(w);
    std::map<BaselineKind, BaselineAccuracy> out;
    if (wanted.empty()) return out;
    BaselineSets sets;
    sets.missing = no_kernels_;
    sets.gpu = judge_.get(), sets.families = {set->family}, sets.lock = false;
    sets.draw = [&](const Context&, const std::string&) { return Result<GpuSetPtr>(set); };
    const Context limited = ctx.with_timeout(kJudgeLimit);
    auto opened = worker_->open_baselines(limited, task, task.official(), wanted);
    CG_CHECK(ctx.check("judging baselines"));
    if (!opened) sets.missing = opened.error().message;
    auto found = judge_baselines(limited, sets, *worker_, task, task.official(), wanted);
    CG_CHECK(ctx.check("judging baselines"));
    for (size_t i = 0; i < wanted.size() && found; ++i)
      out.emplace(wanted[i].kind, std::move((*found)[i]));
    for (size_t i = 0; i < wanted.size() && found && opened; ++i)
      if (!(*opened)[i].why.empty()) out[wanted[i].kind].why = (*opened)[i].why;
    broken_ = !worker_->close_baselines(ctx.with_timeout(kJudgeLimit));
    return out;
  }

  Result<void> start(const Context& ctx, const SuiteGpu& gpu) {
    torch::TorchWorkerOptions torch;
    torch.python = options_.python, torch.device = options_.device.text();
    torch.require_sandbox = options_.require_sandbox;
    torch.call_timeout = kTruthLimit;
    CG_TRY(worker_, torch::TorchWorker::open(std::move(torch)));
    CG_TRY(judge_, GpuJudge::open(options_.device));
    auto ready = prepare_judge(ctx, *judge_,
                               {.python = options_.python,
                                .cuda_version = gpu.cuda_version,
                                .require_sandbox = options_.require_sandbox});
    CG_CHECK(ctx.check("starting the judge"));
    if (!ready) no_kernels_ = ready.error().message;  // truths do not need the judge's kernels
    return {};
  }

  const EvaluatorOptions options_;
  const std::vector<torch::BaselineWanted> baselines_;
  std::unique_ptr<torch::TorchWorker> worker_;
  std::unique_ptr<GpuJudge> judge_;
  std::string no_kernels_;  // why no baseline can be judged
  bool broken_ = false;     // the worker could not close its baselines
};

Result<SuiteGpu> look_at(const Context& ctx, const DeviceName& device) {
  if (!device.is_gpu())
    return world_error("baselines need a GPU, and " + device.text() + " is not one",
                       "use --device cuda:0");
  Runner runner({.device = device});
  CG_CHECK(runner.start(ctx));
  const device::DeviceIdentity& id = runner.identity();
  CG_TRY(GpuSpec spec, gpu_of_product(id.gpu));
  return SuiteGpu{.spec = std::move(spec),
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

Result<std::unique_ptr<torch::TorchWorker>> open_worker(const EvaluatorOptions& options,
                                                        bool compiles, const SuiteGpu& gpu,
                                                        Shared& shared) {
  CG_TRY(UniqueFd file, GpuSlot::file(gpu.uuid));
  torch::TorchWorkerOptions torch;
  torch.python = options.python, torch.device = options.device.text();
  torch.require_sandbox = options.require_sandbox;
  torch.compiles = compiles;
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

// An evaluator of its own judges the control kernels, so that their GPU memory is free afterwards.
SuiteParts real_suite_parts(const EvaluatorOptions& options, const SuiteRequest& request) {
  auto shared = std::make_shared<Shared>();
  auto truths = std::make_shared<Truths>(options, request);
  const bool compiles = std::any_of(request.baselines.begin(), request.baselines.end(),
                                    [](auto& b) { return !is_eager(b.kind); });
  return {
      .gpu = [options](const Context& ctx) { return look_at(ctx, options.device); },
      .worker = [options, compiles, shared](
                    const SuiteGpu& gpu) { return open_worker(options, compiles, gpu, *shared); },
      .controls = [options](const Context& ctx) -> Result<std::vector<ControlTime>> {
        EvaluatorOptions own;
        own.device = options.device, own.python = options.python;
        own.require_sandbox = options.require_sandbox;
        CG_TRY(auto evaluator, EvaluatorClient::start(ctx, own));
        return time_controls(ctx, *evaluator);
      },
      .truth = [truths](const Context& ctx, const SuiteGpu& gpu,
                        const Task& task) { return truths->make(ctx, gpu, task); }};
}

}  // namespace cutegen::eval
