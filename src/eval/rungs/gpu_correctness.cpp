// SPDX-License-Identifier: Apache-2.0
#include "eval/rungs/gpu_correctness.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "base/log.h"
#include "base/units.h"
#include "core/weighted.h"
#include "eval/rungs/correctness.h"
#include "eval/runner/gpu_slot.h"

namespace cutegen::eval {
namespace {

constexpr auto kWorkerLimit = std::chrono::seconds(120);         // for one set of the largest tasks
constexpr auto kOfficialLaunchLimit = std::chrono::seconds(10);  // for one launch
constexpr auto kOfficialCheckLimit = std::chrono::seconds(120);
constexpr int64_t kRunSpare = int64_t{4} << 30;  // memory of a run besides the task's tensors
constexpr double kShare = 0.6;  // share of GPU memory for the sets of all evaluators

void add_once(std::vector<std::string>& marks, const std::string& mark) {
  if (std::find(marks.begin(), marks.end(), mark) == marks.end()) marks.push_back(mark);
}

// Ends the check of a large shape whose outputs cannot be compared. Without test shapes, nothing
// else can show that the program is correct.
RungEnd not_compared(const Evaluation& e, CorrectnessRecord& record, const ShapeCase& shape,
                     const std::string& why) {
  const std::string mark = fmt::format("outputs at {} were not compared: {}", name_of(shape), why);
  if (e.prepared.only_official())
    return rung_ended(Status::unsupported, mark + "; the task has no other shape");
  add_once(record.marks, mark);
  const bool official = shape.kind == ShapeKind::official;
  (official ? record.official_not_compared : record.weighted_not_compared[shape.name]) = why;
  return rung_passed();
}

int64_t tensor_bytes(const Task& task, const ShapeCase& shape) {
  int64_t bytes = 0;
  for (const TensorInfo& info : task.tensors)
    if (auto at = shape.tensors.find(info.name); at != shape.tensors.end())
      bytes += element_count(at->second).value_or(0) * int64_t(size_of(info.dtype));
  return bytes;
}

class OfficialChecker {
 public:
  OfficialChecker(const Evaluation& e, const PreparedShape& shape, CorrectnessRecord& record)
      : e_(e), shape_(shape), record_(record) {}

  Result<RungEnd> run(const GpuSetPtr& set, const JudgedBufferOptions& options) {
    CG_TRY(GpuSlot slot, GpuSlot::share(e_.ctx, e_.services.identity.uuid));
    JudgedBuffers memory;
    CG_TRY(RunnerOutcome outcome, run_in(memory, set, options));
    if (outcome.kind != RunnerOutcome::Kind::reported) {
      CG_TRY(outcome, run_in(memory, set, options));  // tries once more in a new runner
    }
    RungEnd end = end_of(outcome, shape_.shape->name, true);
    if (!end.passed) return end;
    CG_TRY(std::string damage, memory.damage());
    if (!damage.empty())
      return rung_failed(fmt::format("{} (shape {})", damage, shape_.shape->name));
    CG_TRY(GpuFindings found, memory.judge(e_.ctx));
    if (set->family == family::made) count_compat(found);
    for (const std::string& note : set->notes) add_once(record_.marks, note);
    if (found.by_chance > 0)
      add_once(record_.marks,
               fmt::format(
                   "{} of {} elements on inputs '{}' are wrong by more than one rounding explains; "
                   "random draws may miss so few (docs/inputs.md, extremes)",
                   found.by_chance, found.elements, set->family));
    ++record_.sets_judged;
    if (found.mismatches.empty()) return rung_passed();
    return end_of_mismatches(std::move(found.mismatches));
  }

 private:
  Result<RunnerOutcome> run_in(JudgedBuffers& memory, const GpuSetPtr& set,
                               const JudgedBufferOptions& options) {
    if (e_.prepared.has_globals()) CG_CHECK(reload(e_.ctx, e_.services, e_.prepared));
    CG_TRY(memory, JudgedBuffers::make(e_.ctx, e_.services.official->gpu(), set,
                                       shape_.plan.scratch, options));
    RunRequest request;
    request.shared = memory.buffers();
    request.steps = shape_.all_steps();
    request.settings.limit = kOfficialLaunchLimit;
    request.limit = kOfficialCheckLimit;
    return e_.services.runner->run(e_.ctx, request);
  }

  void count_compat(const GpuFindings& found) {
    if (!record_.compat)
      record_.compat =
          Compat{.rule = fmt::format("allclose {:.0e}", compat_tolerance(e_.task.math_mode)),
                 .elements = 0,
                 .wrong = 0};
    record_.compat->elements += found.elements;
    record_.compat->wrong += found.not_close;
  }

  const Evaluation& e_;
  const PreparedShape& shape_;
  CorrectnessRecord& record_;
};

}  // namespace

GpuTruths::GpuTruths(Options options) : options_(std::move(options)) {
  pool_ = std::make_unique<GpuTruthPool>([this](const Context& ctx, const Task& task,
                                                const ShapeCase& shape, const std::string& family,
                                                uint64_t seed) -> Result<GpuSetPtr> {
    if (!missing().empty()) return unsupported_error(missing_);
    CG_TRY(GpuSlot slot, GpuSlot::share(ctx, gpu_->uuid()));
    const auto begin = Clock::now();
    auto set = make_gpu_set(ctx, *gpu_, *worker_, task, shape, family, seed);
    log_info("official set '{}' of {}: {} in {}", family, task.name,
             set ? human(Bytes{(*set)->bytes}) : set.error().text(),
             human_ns(double((Clock::now() - begin).count())));
    return set;
  });
  started_ = std::async(std::launch::async, [this] {
    auto started = start();
    if (!started) missing_ = started.error().text();
    if (!missing_.empty()) log_info("outputs at official shapes are not compared: {}", missing_);
  });
}

GpuTruths::GpuTruths(std::unique_ptr<GpuJudge> gpu, GpuTruthPool::Source source, int64_t most_bytes)
    : gpu_(std::move(gpu)), pool_(std::make_unique<GpuTruthPool>(std::move(source))) {
  pool_->allow(most_bytes);
}

GpuTruths::~GpuTruths() {
  stop_.request_stop();
  static_cast<void>(missing());  // waits for the end of the start
  pool_.reset();                 // its thread uses the other members
}

Result<void> GpuTruths::start() {
  Context ctx(stop_.get_token());
  CG_TRY(gpu_, GpuJudge::open(options_.device));
  CG_CHECK(gpu_->prepare(ctx, *options_.toolchain));
  torch::TorchWorkerOptions torch;
  torch.python = options_.python;
  torch.device = options_.device.text();
  torch.require_sandbox = options_.require_sandbox;
  torch.call_timeout = kWorkerLimit;
  CG_CHECK(ctx.check("starting the torch worker"));
  CG_TRY(worker_, torch::TorchWorker::open(std::move(torch)));
  const double all = kShare * double(gpu_->total_bytes());
  pool_->allow(int64_t(all / options_.sharing));
  return {};
}

const std::string& GpuTruths::missing() {
  std::lock_guard one_at_a_time(waiting_);
  if (started_.valid()) started_.get();
  return missing_;
}

Result<GpuSetPtr> GpuTruths::draw(const Context& ctx, const Task& task, const ShapeCase& shape,
                                  const std::string& family, const std::string& program_id) {
  return pool_->draw(ctx, task, shape, family, program_id);
}

GpuSetPtr GpuTruths::ready(const Task& task, const std::string& shape, const std::string& family,
                           const std::string& program_id) {
  return pool_->ready(task.id, shape, family, program_id);
}

int64_t GpuTruths::sets_kept(const Task& task, const ShapeCase& shape) {
  auto needs = gpu_set_needs(task, shape);
  return needs && needs->set_bytes > 0 ? pool_->allowed() / needs->set_bytes : INT64_MAX;
}

Result<GpuSetPtr> GpuTruths::fresh(const Context& ctx, const Task& task, const ShapeCase& shape,
                                   const std::string& family) {
  return pool_->fresh(ctx, task, shape, family);
}

void GpuTruths::open_task(const Task& task, const std::vector<std::string>& families) {
  for (const ShapeCase* shape : timed_shapes(task))
    if (!is_test_shape(*shape)) pool_->want(task, *shape, families);
}

void GpuTruths::close_task(const std::string& task_id) {
  pool_->forget(task_id);
}

void GpuTruths::pause() {
  pool_->pause();
}

void GpuTruths::resume() {
  pool_->resume();
}

void GpuTruths::make_room(const Task& task) {
  int64_t largest = 0;
  for (const ShapeCase* shape : timed_shapes(task))
    largest = std::max(largest, tensor_bytes(task, *shape));
  const int64_t bytes = kRunSpare + largest;
  if (!missing().empty()) return;
  for (;;) {
    auto free = gpu_->free_bytes();
    if (!free || *free >= bytes) return;
    const int64_t held = pool_->bytes();
    gpu_->trim();
    if (held == 0) return;
    pool_->shrink(std::max<int64_t>(0, held - (bytes - *free)));
    gpu_->trim();
  }
}

Result<std::optional<int64_t>> GpuTruths::room_for(const Task& task) {
  make_room(task);
  if (!gpu_) return std::nullopt;
  CG_TRY(int64_t free, gpu_->free_bytes());
  return free;
}

std::vector<std::string> gpu_families(const std::vector<std::string>& all, int64_t kept,
                                      uint64_t chance) {
  if (kept >= int64_t(all.size())) return all;
  std::vector<std::string> out, others;
  for (const std::string& family : all)
    (family == family::made || family == family::outliers ? out : others).push_back(family);
  if (!others.empty()) out.push_back(others[chance % others.size()]);
  return out;
}

std::string remark_on_families(const ShapeCase& shape, const std::vector<std::string>& selected,
                               const std::vector<std::string>& all) {
  if (selected.size() >= all.size()) return {};
  return fmt::format(
      "outputs at {} were compared on {} of {} input families ({}), because GPU memory cannot hold "
      "a set of each",
      name_of(shape), selected.size(), all.size(), fmt::join(selected, ", "));
}

namespace {

// Checks one large shape on all of its families.
Result<RungEnd> check_large(const Evaluation& e, const PreparedShape& shape,
                            const std::string& program_id, CorrectnessRecord& record) {
  if (const std::string& why = e.services.official->missing(); !why.empty())
    return not_compared(e, record, *shape.shape, why);
  const auto begin = Clock::now();
  OfficialChecker checker(e, shape, record);
  JudgedBufferOptions options;
  options.at_the_end = std::random_device()() % 2 != 0;
  const int64_t kept =
      e.prepared.only_official() ? INT64_MAX : e.services.official->sets_kept(e.task, *shape.shape);
  const std::vector<std::string> families =
      gpu_families(e.services.families, kept, std::random_device()());
  for (const std::string& family : families) {
    e.progress(fmt::format("correctness: {} shape, {}", shape.shape->name, family));
    auto set = e.services.official->draw(e.ctx, e.task, *shape.shape, family, program_id);
    if (!set) {
      CG_CHECK(e.ctx.check("making a set"));
      return not_compared(e, record, *shape.shape, set.error().text());
    }
    record.official.emplace(shape.shape->name, *set);
    CG_TRY(RungEnd end, checker.run(*set, options));
    if (!end.passed) return end;
    options = {.poison = PoisonKind::plausible, .at_the_end = !options.at_the_end};
  }
  if (const std::string remark = remark_on_families(*shape.shape, families, e.services.families);
      !remark.empty())
    add_once(record.marks, remark);
  log_info("{} shape: judged in {}", shape.shape->name,
           human_ns(double((Clock::now() - begin).count())));
  return rung_passed();
}

}  // namespace

Result<RungEnd> check_on_gpu(const Evaluation& e, const std::string& program_id,
                             CorrectnessRecord& record) {
  if (!e.services.official) return rung_passed();
  for (const PreparedShape* shape : timed_shapes(e.prepared)) {
    if (is_test_shape(*shape->shape)) continue;
    CG_TRY(RungEnd end, check_large(e, *shape, program_id, record));
    if (!end.passed) return end;
  }
  return rung_passed();
}

}  // namespace cutegen::eval
