// SPDX-License-Identifier: Apache-2.0
#include "eval/judge/foreign_timing.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "base/units.h"
#include "eval/diagnosis/statistics.h"
#include "eval/judge/foreign.h"
#include "eval/rungs/correctness.h"
#include "eval/rungs/measure.h"
#include "eval/runner/gpu_slot.h"

namespace cutegen::eval {
namespace {

constexpr BaselineKind kBaseline = BaselineKind::eager;
constexpr int kWarmUp = 3, kBaselineRuns = 2, kControls = 9;
constexpr size_t kLeastForeignRounds = 9, kMostForeignRounds = 30, kEveryOpen = 3;
constexpr auto kEnoughTime = std::chrono::seconds(20);
constexpr double kPrecise = 0.01;                         // half the confidence interval, relative
constexpr double kUnseenShare = 0.15, kUnseenNs = 300e3;  // time by which the two clocks may differ
constexpr double kLeastSleepNs = 50e3, kMostSleepNs = 0.2e9, kSleepShare = 1.5;

// Frees the memory that a third-party process received. The process may still map this memory, so
// the evaluator must not use it for the truth of a later set.
class LetGo {
 public:
  explicit LetGo(GpuJudge& judge) : judge_(judge) {}
  ~LetGo() { judge_.trim(); }
  LetGo(const LetGo&) = delete;

 private:
  GpuJudge& judge_;
};

double median(const std::vector<double>& samples) {
  return samples.empty() ? 0 : median_of(samples).value;
}

class ForeignTimer {
 public:
  ForeignTimer(const Context& ctx, const Services& services, const Task& task, ForeignCalls& calls,
               const ForeignControls& controls, const Progress& progress)
      : ctx_(ctx),
        services_(services),
        task_(task),
        calls_(calls),
        controls_(controls),
        progress_(progress) {
    times_.control = controls.before;
  }

  Result<TimingOutcome> run(const BesideSource& open_baseline) {
    CG_CHECK(open(open_baseline));
    const auto start = Clock::now();
    for (size_t n = 0; !enough(n, Clock::now() - start); ++n) {
      progress_(fmt::format("timing: round {}", n + 1));
      const bool open = n % kEveryOpen == kEveryOpen - 1;
      auto shown = calls_.show(services_.families.front(), kWarmUp,
                               [&](const ForeignCalls::Call& call) { return round(call, open); });
      if (!shown && shown.error().kind == ErrorKind::unsupported)
        return skipped(shown.error().text());
      if (!shown) return fail(shown.error());
      if (!shown->end.passed) return failed(std::move(shown->end));
    }
    return judged();
  }

 private:
  Result<void> open(const BesideSource& open_baseline) {
    auto worker = open_baseline();
    auto told = worker
                    ? (*worker)->open_baselines(ctx_, task_, calls_.shape(), {{.kind = kBaseline}})
                    : fail(worker.error());
    CG_CHECK(ctx_.check("opening the baseline"));
    if (told && told->front().why.empty())
      baseline_ = *worker;
    else
      marks_.push_back("no baseline was timed: " +
                       (told ? told->front().why : told.error().text()));
    return {};
  }

  // Holds the GPU alone, and draws whether the solution or the baseline goes first.
  Result<torch::ForeignReply> round(const ForeignCalls::Call& call, bool open) {
    CG_TRY(GpuSlot slot, GpuSlot::acquire(ctx_, services_.identity.uuid));
    ForeignSeries& series = open ? times_.open : times_.queued;
    const bool first = random_() % 2;
    if (!first) CG_CHECK(time_baseline(series));
    CG_TRY(torch::ForeignReply own, call(false, open));
    if (first && own.ok()) CG_CHECK(time_baseline(series));
    if (!own.ok()) return own;
    series.own.push_back(std::max(own.claimed_ns, 1.0));
    if (open) times_.seen.push_back(double(own.seen.count()));
    return own;
  }

  Result<void> time_baseline(ForeignSeries& series) {
    if (!baseline_) return {};
    auto ns = baseline_->time_baseline(ctx_, kBaseline, TimeMode::cold, kBaselineRuns);
    CG_CHECK(ctx_.check("timing the baseline"));
    if (ns) {
      series.eager.push_back(median_of(*ns).value);
    } else {
      marks_.push_back("no baseline was timed: " + ns.error().text());
      baseline_ = nullptr;
    }
    return {};
  }

  bool enough(size_t rounds, Nanoseconds spent) {
    if (rounds < kLeastForeignRounds) return false;
    if (rounds >= kMostForeignRounds || spent > kEnoughTime) return true;
    const ForeignSeries& s = times_.queued;
    return precise(s) && check_foreign_clock(times_, s).agrees;
  }

  static bool precise(const ForeignSeries& s) {
    const Median m = s.paired() ? speedup_of(s.own, s.eager) : median_of(s.own);
    return (m.high - m.low) / 2 <= kPrecise * m.value;
  }

  TimingOutcome skipped(const std::string& why) const {
    TimingOutcome out;
    out.result = RungResult::skipped;
    out.end = rung_passed(why);
    out.marks = marks_;
    return out;
  }

  TimingOutcome failed(RungEnd end) const {
    TimingOutcome out;
    out.end = std::move(end);
    out.marks = marks_;
    return out;
  }

  bool clocks_agree() const {
    return check_foreign_clock(times_, times_.queued).agrees ||
           check_foreign_clock(times_, times_.open).agrees;
  }

  // Repeats the control calls before a rejection, because the machine may have become slower.
  Result<void> control_again() {
    if (clocks_agree() || !controls_.again) return {};
    progress_("timing: repeating the control calls");
    CG_TRY(std::vector<double> later, controls_.again());
    if (median(later) > median(times_.control)) times_.control = std::move(later);
    return {};
  }

  Result<TimingOutcome> judged() {
    CG_CHECK(control_again());
    const ForeignSeries* told = &times_.queued;
    ClockCheck clock = check_foreign_clock(times_, *told);
    if (!clock.agrees && check_foreign_clock(times_, times_.open).agrees) {
      told = &times_.open;
      clock = check_foreign_clock(times_, *told);
      marks_.emplace_back(
          "calls without a wait before them take longer than calls behind a wait: the solution "
          "uses streams of its own, or launches slowly; the time includes the host's share");
    }
    TimingOutcome out;
    out.timing = timing_of(*told, clock);
    out.end = rung_passed(detail(*out.timing));
    out.marks = marks_;
    hold_to_floor(floor_of(services_.gpu, task_, calls_.shape()), *out.timing, out);
    if (!clock.agrees) {
      out.result = RungResult::failed;
      out.end = rung_ended(
          Status::rejected,
          fmt::format("its process reports {} for a call, but the evaluator's clock shows {}",
                      human_ns(clock.claimed_ns), human_ns(clock.seen_ns)),
          "Work outside its own events counts, too.");
    }
    return out;
  }

  Timing timing_of(const ForeignSeries& told, const ClockCheck& clock) const {
    const Roofline floor = floor_of(services_.gpu, task_, calls_.shape());
    const Median m = median_of(told.own);
    Timing t;
    t.origin = Origin::measured;
    t.shape = calls_.shape().name;
    t.time_ns = m.value, t.low_ns = m.low, t.high_ns = m.high;
    set_bounds(t, floor), t.bound_by = to_string(floor.bound_by);
    t.samples = int(told.own.size());
    t.clock = clock;
    if (told.paired()) {
      const Median r = speedup_of(told.own, told.eager);
      t.paired.push_back({.against = to_string(kBaseline),
                          .program_id = "",
                          .speedup = r.value,
                          .low = r.low,
                          .high = r.high,
                          .other_ns = median(told.eager),
                          .pairs = t.samples,
                          .stopped = precise(told) ? "precise" : "enough"});
    }
    return t;
  }

  static std::string detail(const Timing& t) {
    std::string out =
        fmt::format("{} measured by its own process ({}-{}, {} calls, cold L2), floor {} ({:.2f}x)",
                    human_ns(t.time_ns), human_ns(*t.low_ns), human_ns(*t.high_ns), t.samples,
                    human_ns(t.floor_ns), t.time_ns / std::max(t.floor_ns, 1e-9));
    for (const PairedRatio& p : t.paired)
      out += fmt::format(", {:.3f}x as fast as {} ({:.3f}-{:.3f})", p.speedup, p.against, p.low,
                         p.high);
    return out;
  }

  const Context& ctx_;
  const Services& services_;
  const Task& task_;
  ForeignCalls& calls_;
  const ForeignControls& controls_;
  const Progress& progress_;
  torch::TorchWorker* baseline_ = nullptr;
  ForeignTimes times_;
  std::vector<std::string> marks_;
  std::mt19937_64 random_{std::random_device()()};
};

}  // namespace

torch::ForeignTensors ForeignCalls::tensors(const std::vector<SharedBuffer>& buffers,
                                            std::initializer_list<TensorRole> roles) const {
  torch::ForeignTensors out;
  for (const TensorInfo& info : task_.tensors) {
    // The final values of a mutated tensor overwrite its initial values.
    const bool calls = std::find(roles.begin(), roles.end(), TensorRole::input) != roles.end();
    const bool final = calls && info.mutated && info.role != TensorRole::input;
    if (!final && std::find(roles.begin(), roles.end(), info.role) == roles.end()) continue;
    for (const SharedBuffer& b : buffers) {
      if (b.name != info.name) continue;
      const bool output = info.role == TensorRole::output;
      out.tensors.push_back({.tensor = {.name = info.name,
                                        .part = output  ? "output"
                                                : final ? "final"
                                                        : "value",
                                        .dtype = info.dtype,
                                        .shape = place_.shape.tensors.at(info.name),
                                        .offset = size_t(b.offset),
                                        .bytes = size_t(b.bytes)},
                             .memory = out.blocks.size()});
      out.blocks.push_back({.descriptor = b.descriptor,
                            .bytes = size_t(b.mapped_bytes),
                            .host = false,
                            .read_only = b.read_only});
    }
  }
  return out;
}

Result<ForeignCalls::Shown> ForeignCalls::show(const std::string& family, int warm_up,
                                               const Around& around) {
  const ShapeCase& shape = place_.shape;
  LetGo let_go(place_.gpu);  // destroyed last
  CG_TRY(GpuSetPtr set, place_.fresh(family));
  JudgedBufferOptions options;
  options.at_the_end = std::random_device()() % 2 != 0;
  CG_TRY(JudgedBuffers memory, JudgedBuffers::make(ctx_, place_.gpu, set, {}, options));
  Shown out;
  out.notes = set->notes;
  {
    CG_TRY(GpuSlot slot, GpuSlot::share(ctx_, services_.identity.uuid));
    torch::ForeignModel model{
        .seed = set->model_seed,
        .on_gpu = true,
        .warm_up = warm_up,
        .state = tensors(memory.buffers(), {TensorRole::parameter, TensorRole::buffer})};
    CG_TRY(out.model, worker_.make_model(ctx_, task_, shape, model));
  }
  out.end = end_of(out.model, shape.name);
  if (!out.end.passed) return out;
  const double sleep_ns =
      std::clamp(kSleepShare * out.model.claimed_ns + kLeastSleepNs, kLeastSleepNs, kMostSleepNs);
  const Call call = [&](bool control, bool open) {  // the solution sees the inputs only in the call
    auto given = control ? tensors(memory.buffers(), {TensorRole::output})
                         : tensors(memory.buffers(), {TensorRole::input, TensorRole::output});
    return worker_.run(
        ctx_, {.tensors = std::move(given), .control = control, .sleep_ns = open ? 0 : sleep_ns});
  };
  if (around) {
    CG_TRY(out.run, around(call));
  } else {
    CG_TRY(GpuSlot slot, GpuSlot::share(ctx_, services_.identity.uuid));
    CG_TRY(out.run, call(false, false));
  }
  out.end = end_of(out.run, shape.name);
  if (!out.end.passed) return out;
  CG_TRY(std::string damage, memory.damage());
  if (!damage.empty()) {
    out.end = rung_failed(fmt::format("{} (shape {})", damage, shape.name));
    return out;
  }
  CG_TRY(out.found, memory.judge(ctx_));
  out.judged = true;
  if (!out.found.mismatches.empty()) out.end = end_of_mismatches(out.found.mismatches);
  return out;
}

ClockCheck check_foreign_clock(const ForeignTimes& times, const ForeignSeries& told) {
  ClockCheck out;
  out.claimed_ns = median(told.own);
  out.seen_ns = std::max(0.0, median(times.seen) - median(times.control));
  out.agrees = out.seen_ns - out.claimed_ns <= std::max(kUnseenShare * out.claimed_ns, kUnseenNs);
  return out;
}

torch::ForeignFile control_file(const Task& task, const ShapeCase& shape) {
  std::string outputs;
  for (const TensorInfo* out : task.with_role(TensorRole::output))
    outputs += fmt::format("([{}], \"{}\"), ", fmt::join(shape.tensors.at(out->name), ", "),
                           to_string(out->dtype));
  return {.name = "control.py",
          .source = fmt::format(R"py(import torch
from cutegen_worker.names import TORCH

OUTPUTS = [{}]
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


class ModelNew(torch.nn.Module):
    def __init__(self, *_, **__):
        super().__init__()

    def forward(self, *_, **__):
        return [torch.zeros(shape, dtype=TORCH[dtype], device=DEVICE) for shape, dtype in OUTPUTS]
)py",
                                outputs)};
}

Result<std::vector<double>> control_calls(const Context& ctx, const Services& services,
                                          ForeignCalls& clean) {
  std::vector<double> out;
  auto shown = clean.show(services.families.front(), 1,
                          [&](const ForeignCalls::Call& call) -> Result<torch::ForeignReply> {
                            CG_TRY(GpuSlot slot, GpuSlot::acquire(ctx, services.identity.uuid));
                            torch::ForeignReply told;
                            for (int n = 0; n <= kControls; ++n) {
                              CG_TRY(told, call(true, true));
                              if (!told.ok()) break;
                              if (n > 0) out.push_back(double(told.seen.count()));
                            }
                            return told;
                          });
  if (!shown) return fail(shown.error());
  const torch::ForeignReply& last = shown->model.ok() ? shown->run : shown->model;
  if (!last.ok()) return world_error("the control calls fail: " + end_of(last, {}).headline);
  return out;
}

Result<TimingOutcome> time_foreign(const Context& ctx, const Services& services, const Task& task,
                                   ForeignCalls& calls, const ForeignControls& controls,
                                   const BesideSource& open_baseline, const Progress& progress) {
  return ForeignTimer(ctx, services, task, calls, controls, progress).run(open_baseline);
}

}  // namespace cutegen::eval
