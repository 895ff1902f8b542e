// SPDX-License-Identifier: Apache-2.0
#include "eval/rungs/timing.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "core/weighted.h"
#include "eval/diagnosis/explain.h"
#include "eval/rungs/excerpt_memory.h"
#include "eval/rungs/sampled_check.h"
#include "eval/rungs/timed_buffers.h"

namespace cutegen::eval {
namespace {

constexpr int64_t kFirstCtas = 8, kMostCtas = 128;  // CTAs in a launch's sample
constexpr double kSampleError = 0.02;
constexpr uint64_t kTimingBudget = 60'000'000;
// Budget of instructions that distinguishes a long block from an endless one.
constexpr uint64_t kLongTimingBudget = 400'000'000;
// Launches with at most this many warp instructions run all blocks.
constexpr uint64_t kWholeInstructions = 8'000'000;

TimingOutcome skipped(std::string why) {
  TimingOutcome out;
  out.official_not_compared = why;
  out.result = RungResult::skipped;
  out.end = rung_passed(std::move(why));
  return out;
}

// The output or mutated tensor that no step of the official shape gets, or null.
const TensorInfo* unwritten_result(const Task& task, const device::PlanSteps& steps) {
  auto writes = [](const std::string& name) {
    return [&name](const auto& step) {
      if (const auto* fill = std::get_if<Fill>(&step)) return fill->buffer == name;
      const auto& args = std::get<Launch>(step).args;
      return std::any_of(args.begin(), args.end(), [&](auto& a) { return a.buffer == name; });
    };
  };
  for (const TensorInfo* out : results_of(task))
    if (std::none_of(steps.begin(), steps.end(), writes(out->name))) return out;
  return nullptr;
}

// Bytes that the launches move to and from global memory, extrapolated from the sample.
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

// Rejects a program that beats the floor and moves less than a quarter of the least bytes: it omits
// work, and its values at the official shape may not have been compared.
std::optional<RungEnd> leaves_work_out(const TimingOutcome& timed, const ShapeCase& official) {
  constexpr double kShare = 0.25;
  double moved = moved_bytes(timed.kernels);
  auto least = double(official.least_bytes.value);
  if (timed.timing->time_ns >= timed.timing->floor_ns || moved >= kShare * least)
    return std::nullopt;
  return rung_ended(
      Status::rejected,
      fmt::format("at {} the program moves {} of at least {}: it omits work", name_of(official),
                  human(Bytes{int64_t(moved)}), human(official.least_bytes)),
      "Nothing runs faster than the floor. The figure comes from a sample of the blocks.");
}

int64_t blocks_of(const device::RunReport& report) {
  return report.traces.empty() ? 1 : report.traces.back().ctas_total;
}

// Fails the program if one block ran much longer than this task's work can need. Otherwise, skips
// timing.
TimingOutcome out_of_budget(const device::RunReport& report, const ShapeCase& official,
                            const TimingQuestion& asked) {
  if (!asked.coverage || report.traces.empty())
    return skipped("no modelled time: the sample of " + name_of(official) + " exceeds its budget");
  const double longest = report.traces.back().longest_cta;
  const double most = most_of_a_block(official, *asked.coverage, blocks_of(report));
  if (longest <= most)
    return skipped("no modelled time: the sample of " + name_of(official) + " exceeds its budget");
  return failed(
      rung_failed(fmt::format("{} does not end at {}: an endless loop?",
                              report.traces.back().kernel, name_of(official)),
                  fmt::format("One block executed {:.2g} warp instructions. Blocks of the test "
                              "shapes need at most {:.2g} for the same work, with a margin of 32.",
                              longest, most)));
}

// Runs the sample. If the runner dies, a new one runs it once more.
Result<RunnerOutcome> run_sample(const Evaluation& e, const RunRequest& request,
                                 ExcerptMemory& memory) {
  CG_TRY(RunnerOutcome outcome, e.services.runner->run(e.ctx, request));
  if (outcome.kind != RunnerOutcome::Kind::died) return outcome;
  memory.restore();
  return e.services.runner->run(e.ctx, request);
}

bool is_out_of_budget(const RunnerOutcome& outcome) {
  return outcome.kind == RunnerOutcome::Kind::reported &&
         outcome.report.status == device::RunReport::Status::out_of_budget;
}

// Runs once more if a larger budget can distinguish an endless block from a long one.
Result<RunnerOutcome> run_longer(const Evaluation& e, RunRequest request, RunnerOutcome first,
                                 const ShapeCase& official, const TimingQuestion& asked,
                                 ExcerptMemory& memory) {
  if (!asked.coverage || first.report.traces.empty()) return first;
  const double most = most_of_a_block(official, *asked.coverage, blocks_of(first.report));
  const double needed = 2 * most * std::max(1, e.services.threads);
  if (first.report.traces.back().longest_cta > most || needed > double(kLongTimingBudget))
    return first;
  request.settings.instruction_budget = std::max(kTimingBudget, uint64_t(needed));
  memory.restore();
  return run_sample(e, request, memory);
}

// The outcome if the runner reports nothing. Does not judge the program's results.
TimingOutcome without_report(const RunnerOutcome& outcome, const ShapeCase& official) {
  if (outcome.kind == RunnerOutcome::Kind::hung)
    return failed(rung_ended(Status::unsupported,
                             fmt::format("{} does not end: {}", name_of(official), outcome.text),
                             "Neither its time nor its results are known."));
  return failed(rung_failed(fmt::format("the runner died ({}) while running this program at {}",
                                        outcome.text, name_of(official))));
}

// The source that a kernel was compiled from.
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

bool skips_blocks_before_the_last(const std::vector<KernelProfile>& kernels) {
  return !kernels.empty() &&
         std::any_of(kernels.begin(), kernels.end() - 1,
                     [](const KernelProfile& k) { return k.sampled_share < 1; });
}

// Adds up the kernels' modelled times and compares the sum with the floor.
TimingOutcome summed(const Roofline& roofline, device::RunReport report, const ShapeCase& shape) {
  TimingOutcome out;
  Timing t;
  t.origin = Origin::modelled;
  t.shape = shape.name;
  set_bounds(t, roofline);
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
  t.low_ns = std::max(0.0, t.time_ns - error_ns);
  t.high_ns = t.time_ns + error_ns;
  out.timing = t;
  if (auto left_out = leaves_work_out(out, shape)) return failed(std::move(*left_out));
  if (t.time_ns < t.floor_ns) out.end.detail += "; the time model underestimates this program";
  return out;
}

}  // namespace

void set_bounds(Timing& timing, const Roofline& roofline) {
  timing.floor_ns = roofline.floor_ns;
  timing.reachable_ns = roofline.reachable_ns;
  timing.roofline_ns = roofline.roofline_ns;
}

int64_t large_addresses(const Task& task) {
  int64_t total = 0;
  for (const ShapeCase* shape : timed_shapes(task)) {
    int64_t one = 0;
    for (const TensorInfo& info : task.tensors)
      if (auto bytes = bytes_of(info, *shape))
        if (__builtin_add_overflow(one, *bytes, &one)) return INT64_MAX / 4;
    total = std::max(total, one);
  }
  return std::min(total, INT64_MAX / 8) * 2;  // twice, for scratch
}

Result<TimingOutcome> time_official(const Evaluation& e, const TimingQuestion& asked) {
  const PreparedShape* official = asked.shape ? asked.shape : official_of(e.prepared);
  if (!official) return skipped("the official shape was not prepared");
  const bool compared = is_test_shape(*official->shape);
  Excerpts::Drawn drawn;
  if (!compared && e.services.excerpts) {
    CG_TRY(drawn, e.services.excerpts->draw(e.ctx, official->shape->name, asked.program_id));
  }
  CG_TRY(ExcerptMemory memory, ExcerptMemory::make(e.task, *official, drawn));
  RunRequest request;
  memory.put(request);
  request.steps = official->all_steps();
  if (const TensorInfo* out = unwritten_result(e.task, request.steps))
    return failed(rung_failed(fmt::format("nothing writes the {} '{}' at {}",
                                          out->mutated ? "mutated tensor" : "output", out->name,
                                          name_of(*official->shape))));
  device::RunSettings& settings = request.settings;
  settings.sample_ctas = asked.many_blocks ? kMostCtas : kFirstCtas;
  settings.sample_most = kMostCtas;
  settings.sample_error = kSampleError, settings.sample_seed = e.services.sample_seed;
  settings.instruction_budget = kTimingBudget, settings.threads = e.services.threads;
  settings.lines = asked.lines;
  settings.trace = true, settings.whole_instructions = kWholeInstructions;
  request.limit = e.services.official_limit;
  CG_TRY(RunnerOutcome outcome, run_sample(e, request, memory));
  if (is_out_of_budget(outcome)) {
    CG_TRY(outcome, run_longer(e, request, std::move(outcome), *official->shape, asked, memory));
  }
  if (outcome.kind != RunnerOutcome::Kind::reported)
    return without_report(outcome, *official->shape);
  device::RunReport& report = outcome.report;
  std::string on = fmt::format("{} ({})", report.message, name_of(*official->shape).substr(4));
  switch (report.status) {
    case device::RunReport::Status::ok:
      break;
    case device::RunReport::Status::finding:
      return failed(rung_failed(on, report.detail));
    case device::RunReport::Status::unsupported:
      return failed(rung_ended(Status::unsupported, on, report.detail));
    case device::RunReport::Status::out_of_budget:
      return out_of_budget(report, *official->shape, asked);
  }
  if (report.kernels.empty()) return skipped("no modelled time: the plan launches no kernel");
  // Later launches read the pattern, which is NaN, where skipped blocks of an earlier launch did
  // not write. A kernel may need much longer for NaN, for example if it repeats a product.
  std::optional<device::RunReport> ordinary;
  const auto with_ordinary_scratch = [&]() -> const device::RunReport* {
    if (ordinary) return &*ordinary;
    if (!skips_blocks_before_the_last(report.kernels) || !memory.make_scratch_ordinary())
      return nullptr;
    memory.restore();
    auto again = run_sample(e, request, memory);
    if (!again || again->kind != RunnerOutcome::Kind::reported ||
        again->report.status != device::RunReport::Status::ok)
      return nullptr;
    ordinary = std::move(again->report);
    return &*ordinary;
  };
  SampledCheck check;
  if (asked.coverage)
    check = check_sampled_run({.task = e.task,
                               .sources = sources_of(e.prepared),
                               .official = *official->shape,
                               .steps = request.steps,
                               .report = report,
                               .memory = memory,
                               .coverage = *asked.coverage,
                               .compared_whole = compared,
                               .with_ordinary_scratch = with_ordinary_scratch});
  if (check.by_sample && !asked.many_blocks) {
    TimingQuestion again = asked;
    again.many_blocks = true;
    return time_official(e, again);
  }
  if (with_ordinary_scratch()) report.kernels = std::move(ordinary->kernels);
  if (asked.lines)
    for (KernelProfile& k : report.kernels) explain(k, source_of(k.kernel, e.prepared, *official));
  TimingOutcome out = summed(floor_of(e.services.gpu, e.task, *official->shape), std::move(report),
                             *official->shape);
  if (out.end.passed && !check.end.passed) return failed(check.end);
  out.marks.insert(out.marks.end(), check.marks.begin(), check.marks.end());
  out.official_not_compared = check.not_compared.empty() ? check.blocks_missed : check.not_compared;
  return out;
}

}  // namespace cutegen::eval
