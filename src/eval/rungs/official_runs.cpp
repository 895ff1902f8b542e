// SPDX-License-Identifier: Apache-2.0
#include "eval/rungs/official_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <set>
#include <utility>

#include "base/units.h"
#include "eval/rungs/audit.h"
#include "eval/rungs/correctness.h"

namespace cutegen::eval {
namespace {

constexpr int kMostCopies = 8;                        // of the outputs
constexpr auto kGpuLimit = std::chrono::seconds(10);  // of one run of all steps
constexpr auto kRunLimit = std::chrono::seconds(120);
constexpr int64_t kSpare = int64_t{2} << 30;  // of the GPU's memory, for all else

TimingOutcome failed(RungEnd end) {
  TimingOutcome out;
  out.result = RungResult::failed;
  out.end = std::move(end);
  return out;
}

// What ended a run, if anything did.
OfficialRuns::End trouble_of(const RunnerOutcome& outcome, const std::string& shape) {
  RungEnd end = end_of(outcome, shape, true);
  if (end.passed) return std::nullopt;
  return failed(std::move(end));
}

double sum(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

double ns_of(Nanoseconds t) {
  return static_cast<double>(t.count());
}

// A program's steps for a runner that has loaded it behind `modules` others, on buffers of its own.
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

}  // namespace

Result<SetPtr> small_set(const Context& ctx, const Services& services, const Prepared& prepared,
                         const std::string& program_id) {
  const ShapeCase* best = nullptr;
  for (const PreparedShape& s : prepared.shapes())
    if (is_test_shape(*s.shape) && (!best || s.shape->least_bytes.value > best->least_bytes.value))
      best = s.shape;
  if (!best) return world_error("no test shape provides values");
  return services.pool->draw(ctx, *best, services.families.front(), program_id);
}

Result<void> OfficialRuns::prepare(const Context& ctx, const std::string& program_id,
                                   OfficialSetPtr set, const KernelProgram* against) {
  set_ = std::move(set);
  program_id_ = program_id;
  if (against) {
    CG_CHECK(prepare_other(ctx, *against));
    CG_CHECK(load(ctx));
  }
  CG_CHECK(add_buffers(ctx));
  if (fits_ || !set_) return {};
  note_ = "the GPU's memory cannot hold the truth and the copies for timed runs";
  set_.reset();
  return add_buffers(ctx);
}

Result<void> OfficialRuns::add_buffers(const Context& ctx) {
  buffers_ = TimedBuffers();
  SetPtr small;
  if (set_) {
    CG_CHECK(buffers_.add_scratch(official_));
  } else {
    CG_TRY(small, small_set(ctx, services_, prepared_, program_id_));
    CG_CHECK(buffers_.add(task_, official_, *small));
  }
  if (other_) CG_CHECK(buffers_.add_other(task_, others_shape(), small.get()));
  return fit();
}

// How many copies of the outputs there is room for, in what is free now or in all of the GPU.
Result<void> OfficialRuns::fit() {
  int64_t room = services_.identity.memory_bytes - kSpare;
  if (set_) {
    services_.official->make_room(task_);
    CG_TRY(int64_t free, services_.official->gpu().free_bytes());
    room = free - kSpare;
    for (const GpuExpected& e : set_->outputs) {  // the candidate's own, besides the other's
      const int64_t bytes = e.elements * static_cast<int64_t>(size_of(e.spec.dtype));
      buffers_.reserve(bytes);
      if (other_ && set_->initial(e.spec.name)) buffers_.reserve(bytes);
    }
  }
  int64_t inputs = 0;
  if (set_)
    for (const SharedBuffer& b : set_->inputs) inputs += b.mapped_bytes;
  // A copy of the inputs is worth less than a second copy of the outputs.
  room_for_inputs_ = buffers_.fit(room - inputs, kMostCopies) && buffers_.copies() > 1;
  fits_ = room_for_inputs_ || buffers_.fit(room, kMostCopies);
  return {};
}

Result<void> OfficialRuns::prepare_other(const Context& ctx, const KernelProgram& against) {
  other_.emplace(against, task_);
  other_id_ = program_id(against);
  RungEnd end = lint_rung(against, task_);
  if (end.passed) {
    CG_TRY(end, other_->compile(ctx, services_));
  }
  if (end.passed) {  // the same machine code as when it was judged
    CG_TRY(AuditOutcome audited, audit_binaries(ctx, services_, task_, other_->images()));
    other_->keep_code(std::move(audited.code));
    CG_TRY(end, other_->load(ctx, services_));
  }
  if (end.passed && shape_of(*other_, official_.shape->name)) return {};
  note_ = "not timed alternately with the other program, which cannot be prepared: " + end.headline;
  other_.reset();
  return {};
}

const PreparedShape& OfficialRuns::others_shape() const {
  return *shape_of(*other_, official_.shape->name);
}

Result<void> OfficialRuns::load(const Context& ctx) {
  std::vector<std::string> ptx, code;
  auto add = [&](const Prepared& program) {
    for (const KernelImage& image : program.images()) ptx.push_back(image.ptx);
    code.insert(code.end(), program.code().begin(), program.code().end());
    code.resize(ptx.size());
  };
  add(prepared_);
  if (other_) add(*other_);
  CG_TRY(LoadOutcome loaded, services_.runner->load(ctx, ptx, code));
  if (!loaded.ok) return world_error("two programs cannot be loaded: " + loaded.error.message);
  return {};
}

OfficialRuns::End OfficialRuns::too_large() const {
  if (fits_) return std::nullopt;
  TimingOutcome out;
  out.result = RungResult::skipped;
  const std::string needs = fmt::format("{} needs {}, {} has {}", name_of(*official_.shape),
                                        human(Bytes{buffers_.total()}), services_.identity.gpu,
                                        human(Bytes{services_.identity.memory_bytes}));
  out.end = rung_passed("no time: " + needs +
                        (official_.shape->kind == ShapeKind::user
                             ? "; give it weight = 0 or smaller constants in the side file"
                             : ""));
  return out;
}

OfficialRuns::End OfficialRuns::noted(const RunnerOutcome& outcome) {
  died_ = outcome.kind == RunnerOutcome::Kind::died;
  return trouble_of(outcome, official_.shape->name);
}

Result<OfficialRuns::End> OfficialRuns::begin(const Context& ctx) {
  if (!slot_) {
    CG_TRY(GpuSlot slot, GpuSlot::acquire(ctx, services_.identity.uuid));
    slot_.emplace(std::move(slot));
  }
  RunRequest first;
  CG_CHECK(share_memory(ctx, first));
  CG_CHECK(buffers_.put(first));
  first.steps = official_.all_steps();
  first.settings.limit = kGpuLimit;
  first.keep = true;
  first.limit = kRunLimit;
  CG_TRY(RunnerOutcome outcome, services_.runner->run(ctx, first));
  kernels_ = std::move(outcome.report.kernels);
  return noted(outcome);
}

// The evaluator's own memory, or none if it does not fit.
Result<void> OfficialRuns::share_memory(const Context& ctx, RunRequest& request) {
  memory_.reset();
  if (!set_) return {};
  OfficialRunOptions options;
  options.copies = buffers_.copies();
  options.against = other_.has_value();
  first_block_ = true;
  if (!next_) next_ = services_.official->ready(task_, set_->shape, set_->family, program_id_);
  options.own_inputs = next_ && room_for_inputs_;
  auto made = OfficialRun::make(ctx, services_.official->gpu(), set_, official_, options);
  if (!made) {
    CG_CHECK(ctx.check("measuring"));
    note_ = "outputs of timed runs are not compared: " + made.error().message;
    set_.reset();
    return add_buffers(ctx);
  }
  memory_.emplace(std::move(*made));
  for (SharedBuffer& b : memory_->buffers())
    if (!buffers_.holds(b.name)) request.shared.push_back(std::move(b));
  return {};
}

device::TimeRequest OfficialRuns::request(device::TimeMode mode, int samples) const {
  device::TimeRequest out;
  out.mode = mode;
  out.steps = official_.all_steps();
  if (other_) out.against = beside(task_, others_shape(), prepared_.images().size());
  out.paired = other_.has_value();
  out.samples = samples;
  out.seed = std::random_device()() & 0x7fffffff;
  out.limit = kGpuLimit;
  return out;
}

// Once to get ready, once by the clock.
Result<OfficialRuns::End> OfficialRuns::control(const Context& ctx, int samples) {
  for (int runs : {1, samples}) {
    device::TimeRequest nothing = request(device::TimeMode::cold, runs);
    nothing.control = true;
    CG_TRY(RunnerOutcome outcome, services_.runner->time(ctx, nothing, kRunLimit));
    if (auto end = noted(outcome)) return end;
    control_seen_ = ns_of(outcome.elapsed);
    control_claimed_ = sum(outcome.report.samples_ns) + sum(outcome.report.against_ns);
  }
  return End();
}

Result<std::map<std::string, double>> OfficialRuns::watch(const Context& ctx) {
  device::TimeRequest nothing = request(device::TimeMode::cold, 0);
  nothing.control = nothing.watch = true;
  CG_TRY(RunnerOutcome outcome, services_.runner->time(ctx, nothing, kRunLimit));
  return std::move(outcome.report.state);
}

Result<OfficialRuns::End> OfficialRuns::block(const Context& ctx, device::TimeMode mode,
                                              int samples) {
  CG_CHECK(ctx.check("measuring"));
  if (memory_) {
    CG_CHECK(next_set(ctx));
    CG_CHECK(memory_->poison_again(ctx));
  }
  CG_TRY(RunnerOutcome outcome, services_.runner->time(ctx, request(mode, samples), kRunLimit));
  if (auto end = noted(outcome)) return end;
  own_ = std::move(outcome.report.samples_ns), other_ns_ = std::move(outcome.report.against_ns);
  state_ = std::move(outcome.report.state);
  const auto wanted = static_cast<size_t>(samples);
  if (own_.size() != wanted || other_ns_.size() != (other_ ? wanted : 0))
    return world_error("the runner reports fewer runs than requested");
  for (const auto* list : {&own_, &other_ns_})
    if (std::any_of(list->begin(), list->end(), [](double ns) { return !(ns > 0); }))
      return world_error("the runner reports a run that took no time");
  claimed_ns_ = sum(own_) + sum(other_ns_) - control_claimed_;
  seen_ns_ = ns_of(outcome.elapsed) - control_seen_;
  const int copies = std::min(mode == device::TimeMode::graph ? 1 : samples, buffers_.copies());
  return memory_ ? compare_outputs(ctx, copies) : look_at_outputs(ctx, copies);
}

// The next block's inputs, if the pool has a set that the program has not met: no block waits for
// one.
Result<void> OfficialRuns::next_set(const Context& ctx) {
  if (std::exchange(first_block_, false) || !next_ || !room_for_inputs_) return {};
  CG_CHECK(memory_->renew(ctx, next_));
  set_ = std::exchange(next_,
                       services_.official->ready(task_, set_->shape, set_->family, program_id_));
  return {};
}

Result<OfficialRuns::End> OfficialRuns::compare_outputs(const Context& ctx, int runs) {
  CG_TRY(std::string damage, memory_->damage());
  if (!damage.empty())
    return End(failed(rung_failed(
        fmt::format("out_of_bounds: {} ({}, timed)", damage, name_of(*official_.shape)))));
  for (int copy = 0; copy < runs; ++copy) {
    CG_TRY(OfficialFindings found, memory_->judge(ctx, copy));
    if (found.mismatches.empty()) continue;
    RungEnd end = end_of_mismatches(std::move(found.mismatches));
    end.headline = "in a timed run: " + end.headline;
    return End(failed(std::move(end)));
  }
  return End();
}

Result<OfficialRuns::End> OfficialRuns::look_at_outputs(const Context& ctx, int runs) {
  auto probes = buffers_.draw_probes(task_, runs);
  CG_CHECK(services_.runner->read(ctx, probes));
  for (const TensorInfo* out : task_.with_role(TensorRole::output)) {
    int64_t looked_at = 0;
    if (int64_t left = buffers_.unwritten(probes, *out, looked_at); left > 0)
      return End(failed(rung_failed(
          fmt::format("at {} the output '{}' is not written: {} of the {} checked elements",
                      name_of(*official_.shape), out->name, left, looked_at))));
  }
  return End();
}

}  // namespace cutegen::eval
