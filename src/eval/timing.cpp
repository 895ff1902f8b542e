// SPDX-License-Identifier: Apache-2.0
#include "eval/timing.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "eval/diagnose.h"

namespace cutegen {
namespace {

constexpr int64_t kFirstCtas = 8, kMostCtas = 128;  // of the sample of each launch
constexpr double kSampleError = 0.02;
constexpr uint64_t kInstructionBudget = 60'000'000;
constexpr auto kRunLimit = std::chrono::seconds(60);
constexpr int64_t kLargeBytes = int64_t{16} << 20;
constexpr int64_t kMostSharedBytes = int64_t{256} << 20;
constexpr size_t kRingBytes = size_t{32} << 20;
constexpr int64_t kAlign = 256;

// Buffers at official size: the small ones share one memory file, the large ones are addresses.
class OfficialMemory {
 public:
  void add(const std::string& name, int64_t bytes, bool read_only) {
    int64_t padded = (bytes + kAlign - 1) / kAlign * kAlign + kAlign;
    bool large = bytes > kLargeBytes || shared_ + padded > kMostSharedBytes;
    buffers_.push_back({name, bytes, large ? -1 : shared_, read_only});
    if (!large) shared_ += padded;
  }
  Result<void> make() {
    CG_TRY(memory_, make_memfd("official", static_cast<size_t>(shared_)));
    CG_TRY(ring_, make_memfd("ring", kRingBytes));
    return {};
  }
  void put(RunRequest& request) const {
    request.buffers = buffers_;
    request.memory = memory_.get();
    request.ring = ring_.get();
  }

 private:
  std::vector<RunBuffer> buffers_;
  int64_t shared_ = kAlign;
  UniqueFd memory_, ring_;
};

Result<int64_t> bytes_of(const TensorInfo& info, const ShapeCase& shape) {
  auto at = shape.tensors.find(info.name);
  if (at == shape.tensors.end()) return world_error("the official shape lacks '" + info.name + "'");
  CG_TRY(int64_t count, element_count(at->second));
  return count * static_cast<int64_t>(size_of(info.dtype));
}

TimingOutcome skipped(std::string why) {
  TimingOutcome out;
  out.result = RungResult::skipped;
  out.end = rung_passed(std::move(why));
  return out;
}

TimingOutcome failed(RungEnd end) {
  TimingOutcome out;
  out.result = RungResult::failed;
  out.end = std::move(end);
  return out;
}

// The output that no step of the official shape is given, or none.
const TensorInfo* unwritten_output(const Task& task, const PlanSteps& steps) {
  auto writes = [](const std::string& name) {
    return [&name](const auto& step) {
      if (const auto* fill = std::get_if<Fill>(&step)) return fill->buffer == name;
      const auto& args = std::get<Launch>(step).args;
      return std::any_of(args.begin(), args.end(), [&](auto& a) { return a.buffer == name; });
    };
  };
  for (const TensorInfo* out : task.with_role(TensorRole::output))
    if (std::none_of(steps.begin(), steps.end(), writes(out->name))) return out;
  return nullptr;
}

// Bytes that the launches move to and from global memory, scaled from the sample.
double moved_bytes(const std::vector<KernelProfile>& kernels) {
  double total = 0;
  auto counter = [](const KernelProfile& k, const char* name) {
    auto at = k.counters.find(name);
    return at == k.counters.end() ? 0.0 : at->second;
  };
  for (const KernelProfile& k : kernels)
    total += std::max(counter(k, "global_load_bytes"), 32 * counter(k, "global_load_sectors")) +
             std::max(counter(k, "global_store_bytes"), 32 * counter(k, "global_store_sectors")) +
             32 * counter(k, "global_atomic_sectors");
  return total;
}

// Values are not judged at the official shape, so a program might do nothing there. Faster than the
// physical floor and with a fraction of its traffic is no doubtful case any more.
std::optional<RungEnd> leaves_work_out(const TimingOutcome& timed, const ShapeCase& official,
                                       double modelled_ns) {
  constexpr double kShare = 0.25;
  double moved = moved_bytes(timed.kernels);
  auto least = static_cast<double>(official.least_bytes.value);
  if (modelled_ns >= timed.timing->floor_ns || moved >= kShare * least) return std::nullopt;
  return rung_ended(
      Status::rejected,
      fmt::format("at the official shape the program moves {} of at least {}: it leaves work out",
                  human(Bytes{static_cast<int64_t>(moved)}), human(official.least_bytes)),
      "Nothing runs faster than the floor. A sample of the blocks was counted.");
}

// The text that a kernel was compiled from.
std::string source_of(const std::string& kernel, const Prepared& prepared,
                      const PreparedShape& shape) {
  for (const auto& step : shape.all_steps()) {
    const auto* launch = std::get_if<Launch>(&step);
    if (!launch || launch->kernel != kernel) continue;
    const std::string& name = prepared.images()[launch->module].build.source;
    auto at = prepared.program().sources.find(name);
    return at == prepared.program().sources.end() ? std::string() : at->second;
  }
  return {};
}

// The sum of the kernels' modelled times against the floor.
TimingOutcome summed(const Roofline& floor, RunReport report, const ShapeCase& shape) {
  TimingOutcome out;
  Timing t;
  t.origin = Origin::modelled;
  t.shape = shape.name;
  t.floor_ns = floor.floor_ns;
  double slowest = -1, error_ns = 0;
  for (KernelProfile& k : report.kernels) {
    k.origin = Origin::modelled;
    t.time_ns += k.time_ns;
    error_ns += k.time_ns * std::clamp(k.sample_error, 0.0, 1.0);
    if (k.time_ns <= slowest) continue;
    slowest = k.time_ns;
    t.bound_by = k.bound_by;
  }
  out.kernels = std::move(report.kernels);
  const double error = t.time_ns > 0 ? error_ns / t.time_ns : 0;
  const std::string spread =
      error >= 0.0005 ? fmt::format(" +-{:.1f}% by the sample", 100 * error) : std::string();
  out.end =
      rung_passed(fmt::format("{} modelled{}, floor {} ({:.2f}x)", human_ns(t.time_ns), spread,
                              human_ns(t.floor_ns), t.time_ns / std::max(t.floor_ns, 1e-9)));
  out.timing = t;
  if (auto lazy = leaves_work_out(out, shape, t.time_ns)) return failed(std::move(*lazy));
  if (t.time_ns < t.floor_ns) {
    out.end.detail = fmt::format(
        "the model says {}, below the floor of {}: the time model is "
        "inconsistent here, the floor is reported",
        human_ns(t.time_ns), human_ns(t.floor_ns));
    t.time_ns = t.floor_ns;
    t.bound_by = floor.bound_by;
  }
  t.low_ns = std::max(t.floor_ns, t.time_ns - error_ns);
  t.high_ns = t.time_ns + error_ns;
  out.timing = t;
  return out;
}

}  // namespace

Roofline floor_of(const GpuSpec& gpu, const Task& task) {
  const ShapeCase& official = task.official();
  return roofline(gpu, official.flops, official.least_bytes, to_string(task.math_mode));
}

int64_t large_addresses(const Task& task) {
  int64_t total = 0;
  for (const TensorInfo& info : task.tensors)
    if (auto bytes = bytes_of(info, task.official()))
      if (__builtin_add_overflow(total, *bytes, &total)) return INT64_MAX / 4;
  return std::min(total, INT64_MAX / 8) * 2;  // as much again for scratch
}

Result<TimingOutcome> time_official(const Context& ctx, const Services& services, const Task& task,
                                    const Prepared& prepared, bool lines) {
  auto official = std::find_if(prepared.shapes().begin(), prepared.shapes().end(),
                               [](auto& s) { return s.shape->kind == ShapeKind::official; });
  if (official == prepared.shapes().end()) return skipped("the official shape is not there");
  OfficialMemory memory;
  for (const TensorInfo& info : task.tensors) {
    CG_TRY(int64_t bytes, bytes_of(info, *official->shape));
    memory.add(info.name, bytes, info.role != TensorRole::output);
  }
  for (const ScratchBuffer& s : official->plan.scratch) memory.add(s.name, s.bytes, false);
  CG_CHECK(memory.make());
  RunRequest request;
  memory.put(request);
  request.steps = official->all_steps();
  if (const TensorInfo* out = unwritten_output(task, request.steps))
    return failed(rung_failed(
        fmt::format("nothing writes the output '{}' at the official shape", out->name)));
  RunSettings& settings = request.settings;
  settings.sample_ctas = kFirstCtas, settings.sample_most = kMostCtas;
  settings.sample_error = kSampleError, settings.sample_seed = services.sample_seed;
  settings.instruction_budget = kInstructionBudget, settings.threads = services.threads;
  settings.lines = lines;
  request.limit = kRunLimit;
  CG_TRY(RunnerOutcome outcome, services.runner->run(ctx, request));
  if (outcome.kind == RunnerOutcome::Kind::hung)
    return skipped(fmt::format("no modelled time: {}", outcome.text));
  if (outcome.kind == RunnerOutcome::Kind::died) {
    CG_TRY(outcome, services.runner->run(ctx, request));
    if (outcome.kind != RunnerOutcome::Kind::reported)
      return failed(rung_failed(fmt::format(
          "the runner died ({}) while running this program at the official shape", outcome.text)));
  }
  RunReport& report = outcome.report;
  std::string on = fmt::format("{} (official shape)", report.message);
  switch (report.status) {
    case RunReport::Status::ok:
      break;
    case RunReport::Status::finding:
      return failed(rung_failed(on, report.detail));
    case RunReport::Status::unsupported:
      return failed(rung_ended(Status::unsupported, on, report.detail));
    case RunReport::Status::out_of_budget:
      return skipped("no modelled time: the sample of the official shape is out of budget");
  }
  if (report.kernels.empty()) return skipped("no modelled time: the plan launches no kernel");
  if (lines)
    for (KernelProfile& k : report.kernels) explain(k, source_of(k.kernel, prepared, *official));
  return summed(floor_of(services.gpu, task), std::move(report), *official->shape);
}

}  // namespace cutegen
