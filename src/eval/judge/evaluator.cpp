// SPDX-License-Identifier: Apache-2.0
#include "eval/judge/evaluator.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <mutex>
#include <random>

#include "base/log.h"
#include "core/kernel_side.h"
#include "device/device.h"
#include "eval/api/expect_children.h"
#include "eval/baselines/baselines.h"
#include "eval/judge/certify.h"
#include "eval/judge/foreign.h"
#include "eval/judge/ladder.h"
#include "eval/profile/counters_outlook.h"
#include "eval/rungs/prepare.h"
#include "eval/rungs/timing.h"
#include "eval/runner/gpu_slot.h"
#include "eval/sets/admission.h"
#include "eval/sets/lazy.h"
#include "eval/sets/test_shapes.h"
#include "eval/source/start_program.h"
#include "toolchain/compile_memory.h"

namespace cutegen::eval {
namespace {

constexpr auto kBaselineLimit = std::chrono::minutes(10);  // torch.compile tries many kernels
constexpr int64_t kBaselineMemory = int64_t{64} << 30;

// Programs for a device usually name the device's exact architecture.
std::string warm_arch(const DeviceFacts& device) {
  return device.arch;
}

// Pauses the compiler's background work as long as the object lives.
class Quiet {
 public:
  explicit Quiet(toolchain::Toolchain& toolchain) : toolchain_(toolchain) {
    toolchain_.hold_background(true);
  }
  ~Quiet() { toolchain_.hold_background(false); }
  Quiet(const Quiet&) = delete;
  Quiet& operator=(const Quiet&) = delete;

 private:
  toolchain::Toolchain& toolchain_;
};

}  // namespace

Evaluator::Evaluator(EvaluatorOptions options)
    : options_(std::move(options)),
      runner_(std::make_shared<Runner>(RunnerOptions{.device = options_.device,
                                                     .threads = options_.runner_threads,
                                                     .require_sandbox = options_.require_sandbox,
                                                     .spare = options_.device.is_gpu()})) {}

Evaluator::~Evaluator() {
  warm_stop_.request_stop();
  if (warm_.valid()) warm_.wait();
  if (outlook_.valid()) outlook_.wait();
}

Result<std::unique_ptr<Evaluator>> Evaluator::open(const Context& ctx, EvaluatorOptions options) {
  std::unique_ptr<Evaluator> e(new Evaluator(std::move(options)));
  CG_CHECK(e->prepare(ctx));
  return e;
}

Result<void> Evaluator::prepare(const Context& ctx) {
  CG_CHECK(ctx.check("starting the evaluator"));
  CG_CHECK(know_device(ctx));
  CG_TRY(toolchain::ToolPaths paths,
         toolchain::find_tools(
             {.python = options_.python, .most_cuda = services_.identity.cuda_version}));
  toolchain::ToolchainOptions tools{.paths = paths};
  tools.use_cache = options_.use_cache;
  tools.require_sandbox = options_.require_sandbox;
  tools.warm_memory_bytes = toolchain::granted_compile_memory();
  // The tools start while the compiler works. Programs in the cache were audited before, so they
  // need no tools.
  tools.before_compile = [this] { assembler_->warm_up(warm_arch(services_.device)); };
  toolchain::AssemblerOptions assembler{.paths = std::move(paths)};
  assembler.use_cache = options_.use_cache;
  CG_TRY(assembler_, toolchain::Assembler::open(std::move(assembler)));
  CG_TRY(toolchain_, toolchain::Toolchain::open(std::move(tools)));
  torch::TorchWorkerOptions torch;
  torch.python = options_.python;
  torch.require_sandbox = options_.require_sandbox;
  CG_TRY(worker_, torch::TorchWorker::open(std::move(torch)));
  services_.toolchain = toolchain_;
  services_.assembler = assembler_;
  services_.runner = runner_;
  services_.threads = options_.runner_threads;
  services_.families = input_families();
  if (!options_.device.is_gpu()) return {};
  official_ =
      std::make_shared<GpuTruths>(GpuTruths::Options{.device = options_.device,
                                                     .python = options_.python,
                                                     .require_sandbox = options_.require_sandbox,
                                                     .toolchain = toolchain_,
                                                     .sharing = options_.sharing});
  services_.official = official_;
  outlook_ = std::async(std::launch::async, [this, ctx = Context(warm_stop_.get_token())] {
    return counters_outlook(ctx, options_.require_sandbox);
  });
  services_.counters =
      std::make_shared<HardwareCounters>(options_.device, options_.require_sandbox);
  services_.simulator =
      std::make_shared<Runner>(RunnerOptions{.device = DeviceName::simulator_of(services_.gpu.id),
                                             .threads = options_.runner_threads,
                                             .require_sandbox = options_.require_sandbox});
  return {};
}

// The runner queries a GPU before it sees any program. A simulated GPU's facts are known.
Result<void> Evaluator::know_device(const Context& ctx) {
  services_.device_name = options_.device;
  if (options_.device.is_gpu()) {
    CG_CHECK(runner_->start(ctx));
    services_.device = runner_->facts();
    services_.identity = runner_->identity();
    CG_TRY(services_.gpu, gpu_of_product(services_.identity.gpu));
    return {};
  }
  CG_TRY(services_.device, device::device_facts(options_.device));
  CG_TRY(services_.gpu, find_gpu(options_.device.model));
  return {};
}

void Evaluator::warm_up() {
  if (warm_.valid() || !options_.read_cute_ahead) return;
  warm_ = std::async(std::launch::async, [this, ctx = Context(warm_stop_.get_token())] {
    // If this fails, the first candidate fails in the same way and reports it.
    if (auto ready = toolchain_->warm_up(ctx, warm_arch(services_.device), options_.programs);
        !ready)
      log_info("the compile server is not warm: {}", ready.error().text());
  });
}

Result<OpenedTask> Evaluator::open_task(const Context& ctx, const std::string& file,
                                        const AskedAccuracy& asked) {
  warm_up();
  Quiet quiet(*toolchain_);
  for (auto& open : open_) open->pause();
  auto opened = open_file(ctx, file, asked);
  for (auto& open : open_) open->resume();
  return opened;
}

Result<OpenedTask> Evaluator::open_file(const Context& ctx, const std::string& file,
                                        const AskedAccuracy& asked) {
  std::unique_lock hold(worker_lock_);
  torch::DescribeOptions options;
  options.asked = asked;
  CG_TRY(Task task, worker_->describe(ctx, file, options));
  hold.unlock();
  if (!options_.device.is_gpu()) {
    const auto side_file = std::filesystem::path(file).replace_extension(".toml");
    CG_CHECK(drop_large_test_shapes(task, side_file.string()));
  }
  std::optional<KernelProgram> start;
  if (is_kernel_file(file)) {
    CG_TRY(start, start_program(file, task));
  }
  auto same = std::ranges::find(open_, task.id, [](const auto& open) { return open->task.id; });
  if (same != open_.end()) {
    std::rotate(same, same + 1, open_.end());
  } else {
    make_room();
    CG_CHECK(open_new(ctx, std::move(task)));
  }
  open_.back()->told.start = std::move(start);
  return open_.back()->told;
}

// Closes the least recently used tasks until one more fits.
void Evaluator::make_room() {
  while (!open_.empty() && open_.size() >= size_t(std::max(options_.tasks, 1))) {
    close(open_.front());
    open_.erase(open_.begin());
  }
}

void Evaluator::close(std::unique_ptr<Open>& open) {
  if (official_) official_->close_task(open->task.id);
}

Result<void> Evaluator::open_new(const Context& ctx, Task described) {
  auto open = std::make_unique<Open>();
  open->task = std::move(described);
  const Task& task = open->task;
  open->pool =
      std::make_shared<TruthPool>(task, [this, &task](const Context& c, const ShapeCase& shape,
                                                      const std::string& family, uint64_t seed) {
        std::lock_guard one_at_a_time(worker_lock_);
        return worker_->make_set(c, task, shape, family, seed);
      });
  open->derived = std::make_shared<DerivedShapes>(
      task, [this, &task](const Context& c, const std::vector<torch::ShapeConstants>& shapes) {
        std::lock_guard one_at_a_time(worker_lock_);
        return worker_->describe_shapes(c, task, shapes);
      });
  open->sample_seed = std::random_device()() & 0x7fffffff;
  int64_t addresses = large_addresses(task);
  for (const auto& other : open_) addresses = std::max(addresses, large_addresses(other->task));
  runner_->allow_addresses(addresses);
  CG_CHECK(options_.device.is_gpu() ? runner_->ready(ctx) : runner_->start(ctx));
  OpenedTask& out = open->told;
  CG_TRY(out.admission, admission_of(ctx, open->task, *open->pool));
  open->precision_tells = out.admission.precision_tells;
  open->families = out.admission.families;
  if (open->families.empty()) open->families = input_families();  // the task has no test shape
  count_reads(open->task, out.admission);
  std::vector<std::pair<ShapeCase, std::string>> wanted;
  for (const ShapeCase* shape : test_shapes(task))
    for (const std::string& family : stocked_families(*shape))
      if (std::ranges::find(open->families, family) != open->families.end())
        wanted.emplace_back(*shape, family);
  open->pool->refill_in_background(wanted);
  if (official_) official_->open_task(task, open->families);
  if (!options_.device.is_gpu()) open_excerpts(ctx, *open);
  const Roofline bounds = floor_of(services_.gpu, task);
  out.task = task;
  out.floor_ns = bounds.floor_ns, out.floor_bound_by = bounds.bound_by;
  out.reachable_ns = bounds.reachable_ns, out.roofline_ns = bounds.roofline_ns;
  out.toolchain = toolchain_->version();
  out.torch = worker_->version();
  out.device = services_.device.name;
  out.gpu = services_.gpu.id;
  out.driver = services_.identity.driver;
  out.product = services_.identity.gpu;
  if (outlook_.valid()) out.counters = outlook_.get();
  out.sandbox = weakest({runner_->grade(), worker_->grade()});
  open_.push_back(std::move(open));
  return {};
}

void Evaluator::open_excerpts(const Context& ctx, Open& open) {
  open.excerpts = std::make_shared<Excerpts>(
      open.task, [this, &task = open.task](const Context& c, const torch::Excerpt& excerpt,
                                           const std::string& family, uint64_t seed) {
        std::lock_guard one_at_a_time(worker_lock_);
        return worker_->make_excerpt(c, task, excerpt, family, seed);
      });
  for (const ShapeCase* shape : timed_shapes(open.task)) {
    if (is_test_shape(*shape)) continue;
    std::unique_lock hold(worker_lock_);
    auto planned = worker_->plan_excerpt(ctx, open.task, *shape);
    hold.unlock();
    open.excerpts->add(*shape, std::move(planned));
  }
}

Result<Evaluator::Open*> Evaluator::find(const std::string& id) {
  if (open_.empty()) return user_error("no task is open", {}, "open a task first");
  for (auto& open : open_)
    if (id.empty() ? &open == &open_.back() : open->task.id == id) {
      std::rotate(&open, &open + 1, open_.data() + open_.size());
      return open_.back().get();
    }
  return user_error("another task is open", {}, "open the task again");
}

void Evaluator::close_task(const std::string& id) {
  for (auto& open : open_)
    if (open->task.id == id) close(open);
  std::erase_if(open_, [&](const auto& open) { return open->task.id == id; });
}

void Evaluator::expect_children(const KernelProgram& program, int children,
                                const std::string& task) {
  auto open = find(task);
  if (!open) return;
  for (const toolchain::CompileRequest& request :
       compile_requests(program, (*open)->task, services_.device))
    toolchain_->expect_children(request, children);
}

Services Evaluator::services_of(const Open& open) const {
  Services out = services_;
  out.pool = open.pool;
  out.derived = open.derived;
  out.excerpts = open.excerpts;
  out.sample_seed = open.sample_seed;
  out.precision_tells = open.precision_tells;
  out.families = open.families;
  return out;
}

void Evaluator::pause_others(const Open& open) {
  for (auto& other : open_)
    if (other.get() != &open) other->pause();
}

Result<Certificate> Evaluator::certify(const Context& ctx, const CertifyRequest& request,
                                       const Progress& progress) {
  if (!options_.device.is_gpu())
    return unsupported_error("certificates hold measured times, which " + options_.device.text() +
                             " does not measure: use --device cuda:0");
  CG_TRY(Open * open, find(request.task));
  Quiet quiet(*toolchain_);
  pause_others(*open);
  const Services services = services_of(*open);
  baselines_.reset();  // ends the worker that timed baselines, which frees its GPU memory
  torch::TorchWorkerOptions torch;
  torch.python = options_.python;
  torch.device = options_.device.text();
  torch.compiles = std::any_of(request.baselines.begin(), request.baselines.end(),
                               [](const torch::BaselineWanted& b) { return !is_eager(b.kind); });
  torch.require_sandbox = options_.require_sandbox;
  torch.call_timeout = kBaselineLimit;
  torch.memory_bytes = kBaselineMemory;
  std::mutex mutex;
  std::vector<UniqueFd> slots;  // a lock file for each worker, so that they open one at a time
  auto open_worker = [&]() -> Result<std::unique_ptr<torch::TorchWorker>> {
    CG_TRY(UniqueFd slot, GpuSlot::file(services_.identity.uuid));
    torch::TorchWorkerOptions own = torch;
    own.slot = slot.get(), own.slot_for_opening = true;
    {
      std::scoped_lock lock(mutex);
      slots.push_back(std::move(slot));
    }
    return torch::TorchWorker::open(std::move(own));
  };
  auto certificate = eval::certify(ctx, services, open->task, request, open_worker, progress);
  runner_->release();
  for (auto& each : open_) each->resume();
  if (official_) official_->resume();
  return certificate;
}

// Keeps the worker for later tasks, because its start takes longer than timing most modules.
Result<std::vector<BaselineTime>> Evaluator::time_baselines(const Context& ctx,
                                                            const BaselinesRequest& request,
                                                            const Progress& progress) {
  if (!options_.device.is_gpu())
    return unsupported_error("baselines need a GPU, and " + options_.device.text() +
                             " is not one: use --device cuda:0");
  CG_TRY(Open * open, find(request.task));
  Quiet quiet(*toolchain_);
  pause_others(*open);
  const Services services = services_of(*open);
  if (!baselines_) {
    CG_TRY(slot_, GpuSlot::file(services_.identity.uuid));
    torch::TorchWorkerOptions torch;
    torch.python = options_.python, torch.device = options_.device.text();
    torch.require_sandbox = options_.require_sandbox;
    torch.compiles = !options_.require_sandbox;
    torch.call_timeout = kBaselineLimit, torch.memory_bytes = kBaselineMemory;
    torch.slot = slot_.get();
    CG_TRY(baselines_, torch::TorchWorker::open(std::move(torch)));
  }
  if (official_) official_->pause(), official_->make_room(open->task);
  BaselineLimits limits;
  limits.build = Nanoseconds(int64_t(request.build_seconds * 1e9));
  auto timed =
      eval::time_baselines(ctx, *baselines_, open->task, request.baselines, limits, progress,
                           [&](const ShapeCase& shape) {
                             return sets_of(official_.get(), open->task, shape, services.families);
                           });
  if (!timed || timed->broken) baselines_.reset();
  for (auto& each : open_) each->resume();
  if (official_) official_->resume();
  if (!timed) return fail(timed.error());
  return std::move(timed->times);
}

Result<Verdict> Evaluator::evaluate(const Context& ctx, const EvaluateRequest& request,
                                    const Progress& progress) {
  CG_TRY(Open * open, find(request.task));
  if (!request.tests.empty()) CG_CHECK(check_test_cases(request.tests, open->task));
  Quiet quiet(*toolchain_);
  pause_others(*open);
  Services services = services_of(*open);
  services.proposed = request.tests;
  auto verdict = climb(ctx, services, open->task, request, progress);
  runner_->release();
  for (auto& each : open_) each->resume();
  if (official_) official_->resume();
  if (verdict) mark(*open, *verdict);
  return verdict;
}

// Adds the marks that apply to every verdict on this task.
void Evaluator::mark(const Open& open, Verdict& verdict) const {
  const Admission& admission = open.told.admission;
  if (!admission.admitted) verdict.marks.push_back("task " + admission.remark);
  for (const std::string& note : open.task.notes) verdict.marks.push_back(note);
}

Result<Verdict> Evaluator::judge_foreign(const Context& ctx, const ForeignRequest& request,
                                         const Progress& progress) {
  CG_TRY(Open * open, find(request.task));
  Quiet quiet(*toolchain_);
  pause_others(*open);
  const Services services = services_of(*open);
  const bool on_gpu = options_.device.is_gpu();
  ForeignOpeners openers;
  openers.answer = [&] {
    torch::ForeignOptions foreign;
    foreign.python = options_.python;
    if (on_gpu) foreign.device = options_.device.text(), foreign.arch = services_.device.arch;
    foreign.tf32 = open->task.math_mode == MathMode::tf32;
    foreign.tf32_convolutions = open->task.tf32_convolutions;
    foreign.require_sandbox = options_.require_sandbox;
    foreign.load_limit = Nanoseconds(int64_t(request.seconds * 1e9));
    foreign.call_limit = std::min(foreign.call_limit, foreign.load_limit);
    return torch::ForeignWorker::open(ctx, std::move(foreign));
  };
  openers.baseline = [&]() -> Result<torch::TorchWorker*> {
    if (beside_) return beside_.get();
    torch::TorchWorkerOptions torch;
    torch.python = options_.python, torch.device = options_.device.text();
    torch.require_sandbox = options_.require_sandbox;
    torch.call_timeout = kBaselineLimit, torch.memory_bytes = kBaselineMemory;
    CG_TRY(beside_, torch::TorchWorker::open(std::move(torch)));
    return beside_.get();
  };
  if (on_gpu) runner_->release();
  auto verdict = eval::judge_foreign(ctx, services, open->task, request, openers, progress);
  if (beside_ && !beside_->close_baselines(ctx)) beside_.reset();
  for (auto& each : open_) each->resume();
  if (official_) official_->resume();
  if (verdict) mark(*open, *verdict);
  return verdict;
}

}  // namespace cutegen::eval
