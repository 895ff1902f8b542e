// SPDX-License-Identifier: Apache-2.0
#include "eval/evaluator.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "base/log.h"
#include "device/device.h"
#include "eval/ladder.h"
#include "eval/lazy.h"
#include "eval/prepare.h"
#include "eval/timing.h"

namespace cutegen {
namespace {

const std::vector<std::string> kFamilies{"made", "signed", "heavy", "outliers", "special"};

// The architecture that programs for this device usually name: the exact one, else what it says.
std::string warm_arch(const DeviceFacts& device) {
  return device.arch;
}

std::string gpu_of(const std::string& device) {
  size_t colon = device.find(':');
  return colon == std::string::npos ? device : device.substr(colon + 1);
}

}  // namespace

Evaluator::Evaluator(EvaluatorOptions options)
    : options_(std::move(options)),
      runner_({options_.device, options_.runner_threads, options_.require_sandbox}) {}

Evaluator::~Evaluator() {
  warm_stop_.request_stop();
  if (warm_.valid()) warm_.wait();
}

Result<std::unique_ptr<Evaluator>> Evaluator::open(const Context& ctx, EvaluatorOptions options) {
  std::unique_ptr<Evaluator> e(new Evaluator(std::move(options)));
  CG_CHECK(e->prepare(ctx));
  return e;
}

Result<void> Evaluator::prepare(const Context& ctx) {
  CG_CHECK(ctx.check("starting the evaluator"));
  CG_TRY(services_.device, device_facts(options_.device));
  CG_TRY(services_.gpu, find_gpu(gpu_of(options_.device)));
  CG_TRY(ToolPaths paths, find_tools());
  ToolchainOptions tools{paths};
  tools.use_cache = options_.use_cache;
  tools.require_sandbox = options_.require_sandbox;
  AssemblerOptions assembler{std::move(paths)};
  assembler.use_cache = options_.use_cache;
  CG_TRY(assembler_, Assembler::open(std::move(assembler)));
  CG_TRY(toolchain_, Toolchain::open(std::move(tools)));
  TorchWorkerOptions torch;
  torch.python = options_.python;
  torch.require_sandbox = options_.require_sandbox;
  CG_TRY(worker_, TorchWorker::open(std::move(torch)));
  services_.toolchain = toolchain_.get();
  services_.assembler = assembler_.get();
  services_.runner = &runner_;
  services_.threads = options_.runner_threads;
  services_.families = kFamilies;
  return {};
}

void Evaluator::warm_up(const Context&) {
  if (warm_.valid()) return;
  warm_ = std::async(std::launch::async, [this, ctx = Context(warm_stop_.get_token())] {
    // A failure here is met again, and reported, by the first candidate.
    if (auto ready = toolchain_->warm_up(ctx, warm_arch(services_.device)); !ready)
      log_info("the compile server is not warm: {}", ready.error().text());
  });
}

std::vector<const ShapeCase*> Evaluator::test_shapes() const {
  std::vector<const ShapeCase*> out;
  for (const ShapeCase& s : task_.shapes)
    if (is_test_shape(s)) out.push_back(&s);
  return out;
}

Result<Admission> Evaluator::judge_lazy_answers(const Context& ctx) {
  std::vector<SetPtr> sets, replayed;
  for (const ShapeCase* shape : test_shapes()) {
    for (const std::string& family : kFamilies) {
      CG_TRY(SetPtr set, pool_->draw(ctx, *shape, family, "admission"));
      sets.push_back(set);
    }
    if (!replayed.empty()) continue;  // one shape is enough for the replayed answer
    CG_TRY(SetPtr other, pool_->make(ctx, *shape, kFamilies.front()));
    replayed.push_back(other);
  }
  return admit(task_, sets, replayed);
}

Result<OpenedTask> Evaluator::open_task(const Context& ctx, const std::string& file) {
  pool_.reset();
  services_.pool = nullptr;
  warm_up(ctx);
  CG_TRY(task_, worker_->describe(ctx, file, {}));
  pool_ = std::make_unique<TruthPool>(
      task_, [this](const Context& c, const ShapeCase& shape, const std::string& family,
                    uint64_t seed) { return worker_->make_set(c, task_, shape, family, seed); });
  services_.pool = pool_.get();
  services_.sample_seed = std::random_device()() & 0x7fffffff;
  runner_.allow_addresses(large_addresses(task_));
  CG_CHECK(runner_.start(ctx));
  OpenedTask out;
  CG_TRY(admission_, judge_lazy_answers(ctx));
  services_.precision_tells = admission_.precision_tells;
  std::vector<std::pair<ShapeCase, std::string>> wanted;
  for (const ShapeCase* shape : test_shapes())
    for (const std::string& family : kFamilies) wanted.emplace_back(*shape, family);
  pool_->refill_in_background(wanted);
  Roofline floor = floor_of(services_.gpu, task_);
  out.task = task_;
  out.admission = admission_;
  out.floor_ns = floor.floor_ns;
  out.floor_bound_by = floor.bound_by;
  out.toolchain = toolchain_->version();
  out.torch = worker_->version();
  out.device = services_.device.name;
  out.sandbox = weakest({runner_.grade(), worker_->grade()});
  return out;
}

Result<Verdict> Evaluator::evaluate(const Context& ctx, const EvaluateRequest& request,
                                    const Progress& progress) {
  if (!pool_) return user_error("no task is open", {}, "open a task first");
  auto verdict = climb(ctx, services_, task_, request, progress);
  pool_->resume();
  if (!verdict) return verdict;
  if (!admission_.admitted) verdict->marks.push_back("task " + admission_.remark);
  for (const std::string& note : task_.notes) verdict->marks.push_back(note);
  return verdict;
}

}  // namespace cutegen
