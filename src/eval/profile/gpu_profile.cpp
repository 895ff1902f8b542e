// SPDX-License-Identifier: Apache-2.0
#include "eval/profile/gpu_profile.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "eval/diagnosis/diagnose.h"
#include "eval/diagnosis/measured_remarks.h"
#include "eval/diagnosis/ncu_counters.h"
#include "eval/profile/hardware_counters.h"
#include "eval/rungs/gpu_correctness.h"
#include "eval/rungs/paired_runs.h"
#include "eval/rungs/timing.h"
#include "eval/runner/gpu_slot.h"

namespace cutegen::eval {
namespace {

constexpr auto kGpuLimit = std::chrono::seconds(60);  // for all passes of ncu over one launch
constexpr int64_t kSpare = int64_t{2} << 30;          // GPU memory for ncu and the context

constexpr const char* kFill = "fill ";  // a device's name for a fill step begins with it

// The kernels with their counters, or why there are no counters.
struct Counted {
  std::vector<KernelProfile> kernels;
  CounterSource source = {};
  std::string problem, remedy;
  std::optional<sandbox::Grade> grade = std::nullopt;
};

Counted without(std::string problem, std::string remedy = {}) {
  return {.kernels = {}, .source = {}, .problem = std::move(problem), .remedy = std::move(remedy)};
}

std::vector<std::string> launched(const PreparedShape& shape) {
  std::vector<std::string> out;
  for (const auto& step : shape.all_steps())
    if (const auto* launch = std::get_if<Launch>(&step)) out.push_back(launch->kernel);
  return out;
}

// Runs the same launches on a simulator of this GPU.
Result<Counted> simulate(const Evaluation& e) {
  const DeviceName device = DeviceName::simulator_of(e.services.gpu.id);
  auto facts = device::device_facts(device);
  if (!facts) return without(facts.error().message);
  Services simulated = e.services;
  simulated.runner =
      std::make_shared<Runner>(RunnerOptions{.device = device, .threads = e.services.threads});
  simulated.runner->allow_addresses(large_addresses(e.task));
  simulated.device_name = device;
  simulated.device = *facts;
  auto outcome = [&]() -> Result<TimingOutcome> {
    CG_TRY(LoadOutcome loaded, e.prepared.load_modules(e.ctx, simulated));
    if (!loaded.ok) return fail(loaded.error);
    return time_official(e.on(simulated), {.coverage = nullptr, .program_id = {}, .lines = true});
  }();
  CG_CHECK(e.ctx.check("simulating for a profile"));
  if (!outcome) return without(outcome.error().message);
  if (outcome->kernels.empty())
    return without(outcome->end.headline.empty() ? outcome->end.detail : outcome->end.headline);
  Counted out;
  out.source = {.kind = CounterSource::Kind::simulator};
  out.kernels = std::move(outcome->kernels);
  std::erase_if(out.kernels, [](const KernelProfile& k) { return k.kernel.starts_with(kFill); });
  return out;
}

Result<CountRequest> count_request(const Evaluation& e, const PreparedShape& official,
                                   const std::string& program_id, TimedBuffers& buffers) {
  CountRequest out;
  for (const KernelImage& image : e.prepared.images()) out.ptx.push_back(image.ptx);
  out.code = e.prepared.code();
  out.code.resize(out.ptx.size());
  CG_TRY(SetPtr set, small_set(e.ctx, e.services, e.prepared, program_id));
  CG_CHECK(buffers.add(e.task, official, *set));
  if (!buffers.fit(e.services.identity.memory_bytes - kSpare, 1))
    return world_error("the official shape does not fit the GPU");
  CG_CHECK(buffers.put(out.run));
  out.run.steps = official.all_steps();
  out.run.settings.limit = kGpuLimit;
  out.run.limit = out.limit;
  out.metrics = ncu_metrics();
  return out;
}

// Reads hardware counters from a separate runner under ncu. Everything else that holds GPU memory
// releases it first.
Result<Counted> count(const Evaluation& e, const PreparedShape& official,
                      const std::string& program_id) {
  if (!e.services.counters) return without("this evaluator does not read hardware counters");
  TimedBuffers buffers;
  auto request = count_request(e, official, program_id, buffers);
  CG_CHECK(e.ctx.check("preparing a profile"));
  if (!request) return without(request.error().message, request.error().remedy);
  e.services.runner->release();
  if (e.services.official) e.services.official->make_room(e.task);
  CG_TRY(GpuSlot slot, GpuSlot::acquire(e.ctx, e.services.identity.uuid));
  CG_TRY(auto answer, e.services.counters->count(e.ctx, std::move(*request)));
  Counted out = without(answer.problem, answer.remedy);
  if (!answer.grade.held.empty()) out.grade = answer.grade;
  if (answer.kernels.empty()) return out;
  out.source = {.kind = CounterSource::Kind::tool, .tool = answer.tool};
  for (const auto& kernel : answer.kernels) out.kernels.push_back(measured_profile(kernel));
  const std::vector<std::string> names = launched(official);
  const bool same =
      std::equal(names.begin(), names.end(), out.kernels.begin(), out.kernels.end(),
                 [](const std::string& name, const KernelProfile& k) { return name == k.kernel; });
  if (same) return out;
  out.problem = fmt::format("{} reports {} launches that differ from the {} of the plan",
                            answer.tool, out.kernels.size(), names.size());
  out.kernels.clear();
  return out;
}

// Adds the simulator's counters, lines and remarks to the measured kernels.
void put_beside(std::vector<KernelProfile>& kernels, std::vector<KernelProfile> modelled) {
  if (kernels.size() != modelled.size()) return;
  for (size_t i = 0; i < kernels.size(); ++i) {
    KernelProfile &k = kernels[i], &m = modelled[i];
    if (k.kernel != m.kernel) continue;
    k.modelled = std::move(m.counters);
    k.modelled["time_ns"] = m.time_ns;
    k.lines = std::move(m.lines);
    k.sampled_share = m.sampled_share, k.sample_error = m.sample_error;
    if (!m.diagnosis.summary.empty())
      k.remarks.push_back({.kind = to_string(CounterSource::Kind::simulator),
                           .line = 0,
                           .message = m.diagnosis.summary});
    for (ProfileRemark& remark : m.remarks)  // hardware counters describe the whole kernel better
      if (remark.line > 0) k.remarks.push_back(std::move(remark));
  }
}

// Splits the program's measured time among its launches by their times in a single run.
std::vector<double> launch_times(const GpuProfileInput& input) {
  std::vector<double> out;
  double all = 0;
  for (const KernelProfile& k : input.timed) {
    all += k.time_ns;
    if (!k.kernel.starts_with(kFill)) out.push_back(k.time_ns);
  }
  if (input.timing && all > 0)
    for (double& ns : out) ns *= input.timing->time_ns / all;
  return out;
}

// Profiles from measured times and the assembler's resource counts alone, without counters.
std::vector<KernelProfile> from_resources(const Services& services, const Task& task,
                                          const PreparedShape& official,
                                          const GpuProfileInput& input) {
  std::vector<KernelProfile> out;
  LeastWork least;
  least.bytes = double(official.shape->least_bytes.value);
  least.flops = official.shape->flops.value;
  least.math_mode = task.math_mode;
  for (const KernelProfile& k : input.timed) least.time_ns += k.time_ns;
  if (input.timing) least.time_ns = input.timing->time_ns;
  for (const KernelProfile& timed : input.timed) {
    if (timed.kernel.starts_with(kFill)) continue;
    KernelProfile k = timed;
    if (input.audit)
      for (const KernelAudit& a : input.audit->kernels) {
        if (a.kernel != k.kernel) continue;
        k.counters["registers"] = a.registers;
        k.counters["spill_bytes"] = double(a.spill_store_bytes + a.spill_load_bytes);
        if (a.spill_store_bytes + a.spill_load_bytes > 0)
          k.remarks.push_back(
              {.kind = "spills",
               .line = 0,
               .message = fmt::format("registers spill: each thread stores {} bytes and loads "
                                      "{}: use fewer live values, or smaller blocks",
                                      a.spill_store_bytes, a.spill_load_bytes),
               .origin = Origin::measured});
      }
    diagnose_by_roofline(k, services.gpu, least);
    out.push_back(std::move(k));
  }
  return out;
}

std::string told(const std::string& what, const Counted& counted) {
  std::string out = what + ": " + sanitize(counted.problem, 300);
  return counted.remedy.empty() ? out : out + "; " + sanitize(counted.remedy, 400);
}

}  // namespace

Result<GpuProfile> profile_on_gpu(const Evaluation& e, const GpuProfileInput& input) {
  const PreparedShape* official = official_of(e.prepared);
  if (!official) return world_error("the official shape was not prepared");
  CG_TRY(Counted hardware, count(e, *official, input.program_id));
  CG_TRY(Counted modelled, simulate(e));
  Profile out;
  out.shape = official->shape->name;
  if (!hardware.problem.empty()) out.note = told("no hardware counters", hardware);
  if (!modelled.problem.empty())
    out.note += (out.note.empty() ? "" : "; ") + told("no counters of the simulator", modelled);
  const std::vector<double> times = launch_times(input);
  for (size_t i = 0; i < modelled.kernels.size(); ++i)
    diagnose(modelled.kernels[i], e.services.gpu, i < times.size() ? times[i] : 0);
  if (!hardware.kernels.empty()) {
    out.source = hardware.source;
    out.kernels = std::move(hardware.kernels);
    put_beside(out.kernels, std::move(modelled.kernels));
  } else if (!modelled.kernels.empty()) {
    out.source = modelled.source;
    out.kernels = std::move(modelled.kernels);
  } else {
    out.source = {.kind = CounterSource::Kind::resources};
    out.kernels = from_resources(e.services, e.task, *official, input);
  }
  for (KernelProfile& k : out.kernels) {
    if (k.origin != Origin::measured) continue;
    if (out.source.kind != CounterSource::Kind::resources) diagnose(k, e.services.gpu);
    remark_on_measured(k);
  }
  return GpuProfile{.profile = std::move(out), .grade = hardware.grade};
}

}  // namespace cutegen::eval
