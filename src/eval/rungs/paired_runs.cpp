// SPDX-License-Identifier: Apache-2.0
#include "eval/rungs/paired_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <random>
#include <set>

#include "base/units.h"
#include "core/weighted.h"
#include "eval/rungs/audit.h"
#include "eval/rungs/correctness.h"
#include "eval/sets/failing_shapes.h"

namespace cutegen::eval {
namespace {

constexpr int kMostOutputCopies = 8;                    // copies of the outputs
constexpr auto kStepsLimit = std::chrono::seconds(10);  // for one run of all steps
constexpr auto kOfficialRunLimit = std::chrono::seconds(120);
constexpr auto kLongestWait = std::chrono::seconds(4);  // total wait for other work on the GPU
constexpr int64_t kSpare = int64_t{2} << 30;            // GPU memory for everything else

// The outcome if a run failed, or nothing.
PairedRuns::End trouble_of(const RunnerOutcome& outcome, const std::string& shape) {
  RungEnd end = end_of(outcome, shape, true);
  if (end.passed) return std::nullopt;
  return failed(std::move(end));
}

double sum(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

BlockTimes times_of(RunnerOutcome outcome) {
  BlockTimes out;
  out.own = std::move(outcome.report.samples_ns), out.other = std::move(outcome.report.against_ns);
  out.state = std::move(outcome.report.state);
  out.claimed_ns = sum(out.own) + sum(out.other);
  out.seen_ns = double(outcome.elapsed.count());
  return out;
}

Result<void> check_times(const BlockTimes& block, size_t samples, bool paired) {
  if (block.own.size() != samples || block.other.size() != (paired ? samples : 0))
    return world_error("the runner reports fewer runs than requested");
  for (const auto* list : {&block.own, &block.other})
    if (std::any_of(list->begin(), list->end(), [](double ns) { return !(ns > 0); }))
      return world_error("the runner reports a run that took no time");
  return {};
}

// Reserves memory for the outputs. A mutated tensor needs a second buffer for the other program.
void reserve_outputs(const GpuSet& set, bool paired, TimedBuffers& buffers) {
  for (const GpuExpected& e : set.outputs) {
    const int64_t bytes = e.elements * int64_t(size_of(e.spec.dtype));
    buffers.reserve(bytes);
    if (paired && set.initial(e.spec.name)) buffers.reserve(bytes);
  }
}

int64_t bytes_of_inputs(const GpuSet& set) {
  int64_t bytes = 0;
  for (const SharedBuffer& b : set.inputs) bytes += b.mapped_bytes;
  return bytes;
}

TimingOutcome does_not_fit(const Task& task, const ShapeCase& shape, int64_t bytes,
                           const device::DeviceIdentity& gpu) {
  TimingOutcome out;
  out.result = RungResult::skipped;
  out.end = rung_passed(fmt::format("no time: {} needs {}, {} has {}; {}", name_of(shape),
                                    human(Bytes{bytes}), gpu.gpu, human(Bytes{gpu.memory_bytes}),
                                    advice_to_shrink(task, shape)));
  return out;
}

// Assembles the program, so that the runs use the machine code that was judged.
Result<RungEnd> prepare_program(const Context& ctx, const Services& services,
                                const KernelProgram& program, const Task& task, Prepared& out) {
  RungEnd end = lint_rung(program, task);
  if (!end.passed) return end;
  CG_TRY(end, out.compile(ctx, services));
  if (!end.passed) return end;
  CG_TRY(AuditOutcome audited, audit_binaries(ctx, services, task, out.images()));
  out.keep_code(std::move(audited.code));
  return out.load(ctx, services);
}

// Prepares the program to time alternately. Returns why it cannot be prepared, or an empty text.
Result<std::string> prepare_beside(const Context& ctx, const Services& services,
                                   const KernelProgram& program, const Task& task,
                                   const std::string& shape, std::optional<Prepared>& out) {
  out.emplace(program, task);
  CG_TRY(const RungEnd end, prepare_program(ctx, services, program, task, *out));
  if (end.passed && shape_of(*out, shape)) return std::string();
  out.reset();
  return "not timed alternately with the other program, which cannot be prepared: " + end.headline;
}

Result<void> load_both(const Context& ctx, Runner& runner, const Prepared& own,
                       const Prepared* other) {
  std::vector<std::string> ptx, code;
  for (const Prepared* program : {&own, other}) {
    if (!program) continue;
    for (const KernelImage& image : program->images()) ptx.push_back(image.ptx);
    code.insert(code.end(), program->code().begin(), program->code().end());
    code.resize(ptx.size());
  }
  CG_TRY(LoadOutcome loaded, runner.load(ctx, ptx, code));
  if (!loaded.ok) return world_error("two programs cannot be loaded: " + loaded.error.message);
  return {};
}

// Without an official set: checks that probed places no longer hold the initial pattern.
Result<RungEnd> look_at_outputs(const Context& ctx, Runner& runner, const Task& task,
                                const ShapeCase& shape, TimedBuffers& buffers, int runs) {
  auto probes = buffers.draw_probes(task, runs);
  CG_CHECK(runner.read(ctx, probes));
  for (const TensorInfo* out : task.with_role(TensorRole::output)) {
    int64_t looked_at = 0;
    if (int64_t left = buffers.unwritten(probes, *out, looked_at); left > 0)
      return rung_failed(
          fmt::format("at {} the output '{}' is not written: {} of the {} checked elements",
                      name_of(shape), out->name, left, looked_at));
  }
  return rung_passed();
}

device::TimeRequest request_for(const PreparedShape& shape, TimeMode mode, int samples) {
  device::TimeRequest out;
  out.mode = mode;
  out.steps = shape.all_steps();
  out.samples = samples;
  out.seed = std::random_device()() & 0x7fffffff;
  out.limit = kStepsLimit;
  return out;
}

// Repeats empty runs until the memory is quiet, for kLongestWait at most in all.
Result<PairedRuns::End> wait_until_quiet(const QuietMemory& memory, Nanoseconds& waited,
                                         const std::function<Result<PairedRuns::End>()>& runs) {
  for (const auto start = Clock::now();;) {
    CG_TRY(PairedRuns::End end, runs());
    if (end || (memory.is_known() && memory.is_quiet())) return end;
    if (waited + (Clock::now() - start) <= kLongestWait) continue;
    waited = kLongestWait;
    return end;
  }
}

// A program's steps for a runner that first loaded `modules` other modules. Uses separate buffers.
device::PlanSteps beside(const Task& task, const PreparedShape& official, size_t modules) {
  std::set<std::string> own;
  for (const TensorInfo* out : results_of(task)) own.insert(out->name);
  for (const ScratchBuffer& s : official.plan.scratch) own.insert(s.name);
  auto rename = [&](std::string& name) {
    if (own.contains(name)) name = TimedBuffers::other_name(name);
  };
  device::PlanSteps steps = official.all_steps();
  for (auto& step : steps) {
    if (auto* launch = std::get_if<Launch>(&step)) {
      launch->module += modules;
      for (LaunchArg& arg : launch->args) rename(arg.buffer);
    } else {
      rename(std::get<Fill>(step).buffer);
    }
  }
  return steps;
}

// Returns the GPU memory that timed runs may use.
Result<int64_t> room_of(const Services& services, const Task& task) {
  const int64_t most = services.identity.memory_bytes - kSpare;
  if (!services.official) return most;
  CG_TRY(auto free, services.official->room_for(task));
  return free ? std::min(most, *free - kSpare) : most;
}

// The request of the run before timing, without its buffers.
RunRequest first_run(const PreparedShape& official) {
  RunRequest out;
  out.steps = official.all_steps();
  out.settings.limit = kStepsLimit;
  out.keep = true;
  out.limit = kOfficialRunLimit;
  return out;
}

}  // namespace

Result<SetPtr> small_set(const Context& ctx, const Services& services, const Prepared& prepared,
                         const std::string& program_id) {
  std::vector<const ShapeCase*> shapes;
  for (const PreparedShape& s : prepared.shapes())
    if (is_test_shape(*s.shape)) shapes.push_back(s.shape);
  std::ranges::stable_sort(shapes, std::greater(),
                           [](const ShapeCase* s) { return s->least_bytes.value; });
  Result<SetPtr> set = world_error("no test shape provides values");
  for (const ShapeCase* shape : shapes) {
    set = draw_twice(ctx, *services.pool, *shape, services.families.front(), program_id);
    if (set || !may_omit(*shape, set.error())) return set;
  }
  return set;
}

Result<void> PairedRuns::prepare(const Context& ctx, const std::string& program_id, GpuSetPtr set,
                                 const KernelProgram* against) {
  sets_.use(std::move(set), program_id);
  program_id_ = program_id;
  if (against) {
    other_id_ = cutegen::program_id(*against);
    CG_TRY(note_, prepare_beside(ctx, services_, *against, task_, official_.shape->name, other_));
    CG_CHECK(load_both(ctx, *services_.runner, prepared_, other_ ? &*other_ : nullptr));
  }
  CG_CHECK(add_buffers(ctx));
  if (fits_ || !sets_.set()) return {};
  note_ = "the GPU's memory cannot hold the truth and the copies for timed runs";
  sets_.drop();
  return add_buffers(ctx);
}

Result<void> PairedRuns::add_buffers(const Context& ctx) {
  buffers_ = TimedBuffers();
  SetPtr small;
  if (sets_.set()) {
    CG_CHECK(buffers_.add_scratch(official_));
  } else {
    CG_TRY(small, small_set(ctx, services_, prepared_, program_id_));
    CG_CHECK(buffers_.add(task_, official_, *small));
  }
  if (other_)
    CG_CHECK(buffers_.add_other(task_, *shape_of(*other_, official_.shape->name), small.get()));
  return fit();
}

// Computes how many copies of the outputs fit in the free GPU memory. Without a set, one copy may
// need memory that other processes hold now: the runner then reports that it is out of memory.
Result<void> PairedRuns::fit() {
  const int64_t most = services_.identity.memory_bytes - kSpare;
  CG_TRY(const int64_t room, room_of(services_, task_));
  const GpuSet* set = sets_.set();
  if (set) reserve_outputs(*set, paired(), buffers_);
  const int64_t inputs = set ? bytes_of_inputs(*set) : 0;
  // A second copy of the outputs takes precedence over a copy of the inputs.
  room_for_inputs_ = buffers_.fit(room - inputs, kMostOutputCopies) && buffers_.copies() > 1;
  fits_ =
      room_for_inputs_ || buffers_.fit(room, kMostOutputCopies) || (!set && buffers_.fit(most, 1));
  return {};
}

PairedRuns::End PairedRuns::too_large() const {
  if (fits_) return std::nullopt;
  return does_not_fit(task_, *official_.shape, buffers_.total(), services_.identity);
}

PairedRuns::End PairedRuns::noted(const RunnerOutcome& outcome) {
  died_ = outcome.kind == RunnerOutcome::Kind::died;
  return trouble_of(outcome, official_.shape->name);
}

Result<PairedRuns::End> PairedRuns::begin(const Context& ctx) {
  if (!slot_) {
    CG_TRY(GpuSlot slot, GpuSlot::acquire(ctx, services_.identity.uuid));
    slot_.emplace(std::move(slot));
  }
  inputs_ = {};
  RunRequest first = first_run(official_);
  CG_CHECK(share_memory(ctx, first));
  CG_CHECK(buffers_.put(first));
  CG_TRY(RunnerOutcome outcome, services_.runner->run(ctx, first));
  kernels_ = std::move(outcome.report.kernels);
  return noted(outcome);
}

// Maps the evaluator's memory for the run. If that fails, outputs are not compared.
Result<void> PairedRuns::share_memory(const Context& ctx, RunRequest& request) {
  sets_.unmap();
  if (!sets_.set()) return {};
  auto mapped = sets_.map(
      ctx,
      {.copies = buffers_.copies(), .own_inputs = room_for_inputs_, .against = other_.has_value()});
  if (!mapped) {
    CG_CHECK(ctx.check("measuring"));
    note_ = "outputs of timed runs are not compared: " + mapped.error().message;
    sets_.drop();
    return add_buffers(ctx);
  }
  for (SharedBuffer& b : *mapped)
    if (!buffers_.holds(b.name)) request.shared.push_back(std::move(b));
  return {};
}

device::TimeRequest PairedRuns::request(TimeMode mode, int samples) const {
  device::TimeRequest out = request_for(official_, mode, samples);
  out.paired = other_.has_value();
  if (other_)
    out.against =
        beside(task_, *shape_of(*other_, official_.shape->name), prepared_.images().size());
  return out;
}

Result<PairedRuns::End> PairedRuns::empty_runs(const Context& ctx, int samples) {
  device::TimeRequest nothing = request(TimeMode::cold, samples);
  nothing.control = true;
  CG_TRY(RunnerOutcome outcome, services_.runner->time(ctx, nothing, kOfficialRunLimit));
  if (auto end = noted(outcome)) return end;
  control_ = times_of(std::move(outcome));
  return End();
}

// The first runs are a warm-up. Memory that a process has just freed is one cause of a busy GPU:
// the driver overwrites it.
Result<PairedRuns::End> PairedRuns::control(const Context& ctx, int samples) {
  CG_TRY(End end, empty_runs(ctx, 1));
  if (end) return end;
  return wait_until_quiet(services_.runner->memory(), waited_,
                          [&] { return empty_runs(ctx, samples); });
}

Result<std::map<std::string, double>> PairedRuns::watch(const Context& ctx) {
  device::TimeRequest nothing = request(TimeMode::cold, 0);
  nothing.control = nothing.watch = true;
  CG_TRY(RunnerOutcome outcome, services_.runner->time(ctx, nothing, kOfficialRunLimit));
  return std::move(outcome.report.state);
}

std::string RepeatedInputs::remark() const {
  if (repeated == 0) return {};
  return fmt::format("{} of {} timed blocks repeated earlier inputs", repeated, timed);
}

Result<PairedRuns::End> PairedRuns::block(const Context& ctx, TimeMode mode, int samples) {
  for (;;) {
    CG_TRY(End end, timed_runs(ctx, mode, samples));
    if (end || services_.runner->memory().is_quiet()) return end;
    if (waited_ >= kLongestWait) break;
    const auto start = Clock::now();
    CG_TRY(end, control(ctx, samples));
    if (end) return end;
    waited_ += Clock::now() - start;
  }
  ++busy_blocks_;
  return End();
}

Result<PairedRuns::End> PairedRuns::timed_runs(const Context& ctx, TimeMode mode, int samples) {
  CG_CHECK(ctx.check("measuring"));
  bool fresh = inputs_.timed == 0;
  if (sets_.mapped()) {
    CG_TRY(fresh, sets_.next(ctx));
  }
  inputs_.add(fresh);
  CG_TRY(RunnerOutcome outcome,
         services_.runner->time(ctx, request(mode, samples), kOfficialRunLimit));
  if (auto end = noted(outcome)) return end;
  last_ = times_of(std::move(outcome));
  CG_CHECK(check_times(last_, size_t(samples), paired()));
  last_.claimed_ns -= control_.claimed_ns, last_.seen_ns -= control_.seen_ns;
  const int copies = std::min(mode == TimeMode::graph ? 1 : samples, buffers_.copies());
  CG_TRY(RungEnd outputs, sets_.mapped() ? sets_.compare(ctx, copies)
                                         : look_at_outputs(ctx, *services_.runner, task_,
                                                           *official_.shape, buffers_, copies));
  return outputs.passed ? End() : End(failed(std::move(outputs)));
}

}  // namespace cutegen::eval
