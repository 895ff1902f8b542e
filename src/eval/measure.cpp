// SPDX-License-Identifier: Apache-2.0
#include "eval/measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "base/units.h"
#include "eval/audit.h"
#include "eval/gpu_slot.h"
#include "eval/statistics.h"
#include "eval/timed_buffers.h"

namespace cutegen {
namespace {

constexpr int kBlock = 8;           // runs of each program in a block
constexpr int kLeastBlock = 5;      // where they take long
constexpr int kMostAlone = 32;      // runs of a program that is compared with none
constexpr double kLongBlock = 1e8;  // ns
constexpr auto kEnoughAlone = std::chrono::milliseconds(120);  // of timed runs
constexpr auto kEnoughPaired = std::chrono::seconds(2);
constexpr int kMoreForTheClock = 3;                   // blocks, while the clocks disagree
constexpr auto kGpuLimit = std::chrono::seconds(10);  // of one run of all steps
constexpr auto kRunLimit = std::chrono::seconds(120);
constexpr int64_t kSpare = int64_t{2} << 30;              // of the GPU's memory, for all else
constexpr double kClockSlack = 0.97;                      // of the floor: what an event may miss
constexpr double kUnseenShare = 0.15, kUnseenNs = 150e3;  // of a run: what the clocks may differ by

// The set whose values fill the official inputs: of the largest test shape.
Result<SetPtr> small_set(const Context& ctx, const Services& services, const Prepared& prepared,
                         const std::string& program_id) {
  const ShapeCase* best = nullptr;
  for (const PreparedShape& s : prepared.shapes())
    if (is_test_shape(*s.shape) && (!best || s.shape->least_bytes.value > best->least_bytes.value))
      best = s.shape;
  if (!best) return world_error("there is no test shape to take values from");
  return services.pool->draw(ctx, *best, services.families.front(), program_id);
}

const PreparedShape* official_of(const Prepared& prepared) {
  for (const PreparedShape& s : prepared.shapes())
    if (s.shape->kind == ShapeKind::official) return &s;
  return nullptr;
}

TimingOutcome ended(RungResult result, RungEnd end) {
  TimingOutcome out;
  out.result = result;
  out.end = std::move(end);
  return out;
}
TimingOutcome failed(RungEnd end) {
  return ended(RungResult::failed, std::move(end));
}

// What ended a run, if anything did.
std::optional<TimingOutcome> trouble_of(const RunOutcome& outcome) {
  if (outcome.kind != RunOutcome::Kind::reported)
    return failed(rung_failed(
        fmt::format("the runner {} while running this program at the official shape: {}",
                    outcome.kind == RunOutcome::Kind::died ? "died" : "hung", outcome.text)));
  const RunReport& report = outcome.report;
  const std::string on = fmt::format("{} (official shape)", report.message);
  switch (report.status) {
    case RunReport::Status::ok:
      return std::nullopt;
    case RunReport::Status::finding:
      return failed(rung_failed(on, report.detail));
    case RunReport::Status::unsupported:
      return failed(rung_ended(Status::unsupported, on, report.detail));
    case RunReport::Status::out_of_budget:
      return failed(rung_failed("the program does not end within its time at the official shape",
                                report.message));
  }
  CG_ASSERT(false);
}

double sum(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

double ns_of(Nanoseconds t) {
  return static_cast<double>(t.count());
}

// A program's steps for a runner that has loaded it behind `modules` others, on buffers of its own.
PlanSteps beside(PlanSteps steps, const Task& task, const PreparedShape& official, size_t modules) {
  std::set<std::string> own;
  for (const TensorInfo* out : task.with_role(TensorRole::output)) own.insert(out->name);
  for (const ScratchBuffer& s : official.plan.scratch) own.insert(s.name);
  auto rename = [&](std::string& name) {
    if (own.contains(name)) name = TimedBuffers::other_name(name);
  };
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

// The program that is timed in turn with the candidate.
class Other {
 public:
  Other(const KernelProgram& program, const Task& task)
      : id_(program_id(program)), task_(task), prepared_(program, task) {}

  // Why it cannot be had beside the candidate, or nothing.
  Result<std::string> prepare(const Context& ctx, const Services& services) {
    RungEnd lint = prepared_.lint();
    if (!lint.passed) return lint.headline;
    CG_TRY(RungEnd compiled, prepared_.compile(ctx, services));
    if (!compiled.passed) return compiled.headline;
    CG_TRY(AuditOutcome audited, audit_binaries(ctx, services, task_, prepared_.images()));
    prepared_.keep_code(std::move(audited.code));  // the same machine code as when it was judged
    CG_TRY(RungEnd loaded, prepared_.load(ctx, services));
    if (!loaded.passed) return loaded.headline;
    return official_of(prepared_) ? std::string() : std::string("it has no official shape");
  }

  [[nodiscard]] const std::string& id() const { return id_; }
  [[nodiscard]] const Prepared& prepared() const { return prepared_; }
  [[nodiscard]] const PreparedShape& official() const { return *official_of(prepared_); }

 private:
  std::string id_;
  const Task& task_;
  Prepared prepared_;
};

class Measurement {
 public:
  Measurement(const Context& ctx, const Services& services, const Task& task,
              const Prepared& prepared, const PreparedShape& official, const std::string& id)
      : ctx_(ctx),
        services_(services),
        task_(task),
        prepared_(prepared),
        official_(official),
        id_(id) {}

  Result<TimingOutcome> run(const KernelProgram* against) {
    if (against) CG_CHECK(prepare_other(*against));
    if (other_) CG_CHECK(load_both());
    CG_TRY(SetPtr set, small_set(ctx_, services_, prepared_, id_));
    CG_CHECK(buffers_.add(task_, official_, *set));
    if (other_) CG_CHECK(buffers_.add_other(task_, other_->official()));
    if (!buffers_.fit(services_.identity.memory_bytes - kSpare, kBlock))
      return ended(RungResult::skipped,
                   rung_passed(fmt::format("no time: the official shape needs {}, {} has {}",
                                           human(Bytes{buffers_.total()}), services_.identity.gpu,
                                           human(Bytes{services_.identity.memory_bytes}))));
    CG_TRY(GpuSlot slot, GpuSlot::acquire(ctx_, services_.identity.uuid));
    CG_TRY(auto end, measure());
    if (end && died_) {  // once more, in a fresh process
      CG_TRY(end, measure());
    }
    if (end) return std::move(*end);
    return judged();
  }

 private:
  Result<void> prepare_other(const KernelProgram& against) {
    other_.emplace(against, task_);
    CG_TRY(std::string why, other_->prepare(ctx_, services_));
    if (why.empty()) return {};
    marks_.push_back("not timed beside the incumbent, which cannot be prepared: " + why);
    other_.reset();
    return load_both();
  }

  Result<void> load_both() {
    std::vector<std::string> ptx, code;
    auto add = [&](const Prepared& program) {
      for (const KernelImage& image : program.images()) ptx.push_back(image.ptx);
      code.insert(code.end(), program.code().begin(), program.code().end());
      code.resize(ptx.size());
    };
    add(prepared_);
    if (other_) add(other_->prepared());
    CG_TRY(LoadOutcome loaded, services_.runner->load(ctx_, ptx, code));
    if (!loaded.ok) return world_error("two programs cannot be loaded: " + loaded.error.message);
    return {};
  }

  TimeRequest request(int samples) {
    TimeRequest out;
    out.steps = official_.all_steps();
    if (other_)
      out.against = beside(other_->official().all_steps(), task_, other_->official(),
                           prepared_.images().size());
    out.paired = other_.has_value();
    out.samples = samples;
    out.seed = std::random_device()() & 0x7fffffff;
    out.limit = kGpuLimit;
    return out;
  }

  // Everything from the first run to the last block. A value: how it ended without times.
  Result<std::optional<TimingOutcome>> measure() {
    died_ = false;
    own_.clear(), other_ns_.clear(), blocks_.clear();
    RunRequest first;
    CG_CHECK(buffers_.put(first));
    first.steps = official_.all_steps();
    first.settings.limit = kGpuLimit;
    first.keep = true;
    first.limit = kRunLimit;
    CG_TRY(RunOutcome outcome, services_.runner->run(ctx_, first));
    if (auto end = noted(outcome)) return end;
    double once = 0;
    for (const KernelProfile& k : outcome.report.kernels) once += k.time_ns;
    kernels_ = std::move(outcome.report.kernels);
    const double pair = once * (other_ ? 2 : 1);
    const int samples = pair * kBlock > kLongBlock ? kLeastBlock : kBlock;
    CG_TRY(auto end, control(samples));
    if (end) return end;
    return take_blocks(samples);
  }

  std::optional<TimingOutcome> noted(const RunOutcome& outcome) {
    died_ = outcome.kind == RunOutcome::Kind::died;
    return trouble_of(outcome);
  }

  // What timing takes by itself: once to get ready, once by the clock.
  Result<std::optional<TimingOutcome>> control(int samples) {
    for (int runs : {1, samples}) {
      TimeRequest nothing = request(runs);
      nothing.control = true;
      CG_TRY(RunOutcome outcome, services_.runner->time(ctx_, nothing, kRunLimit));
      if (auto end = noted(outcome)) return end;
      control_seen_ = ns_of(outcome.elapsed);
      control_claimed_ = sum(outcome.report.samples_ns) + sum(outcome.report.against_ns);
    }
    return std::optional<TimingOutcome>();
  }

  Result<std::optional<TimingOutcome>> take_blocks(int samples) {
    const auto start = Clock::now();
    PairRule rule;
    rule.least = samples;
    for (int more = 0;;) {
      CG_TRY(auto end, block(samples));
      if (end) return end;
      const auto spent = Clock::now() - start;
      stopped_.clear();
      if (other_) {
        if (auto why = enough_pairs(rule, own_, other_ns_)) stopped_ = *why;
        if (stopped_.empty() && spent > kEnoughPaired) stopped_ = "enough";
      } else if (spent > kEnoughAlone || int(own_.size()) >= kMostAlone) {
        stopped_ = "enough";
      }
      if (stopped_.empty()) continue;
      if (check_clock(blocks_).agrees) return std::optional<TimingOutcome>();
      if (++more > kMoreForTheClock)
        return world_error("the runner's times disagree with this process's clock",
                           "end what else uses this machine, then try again");
    }
  }

  Result<std::optional<TimingOutcome>> block(int samples) {
    CG_CHECK(ctx_.check("measuring"));
    CG_TRY(RunOutcome outcome, services_.runner->time(ctx_, request(samples), kRunLimit));
    if (auto end = noted(outcome)) return end;
    const RunReport& report = outcome.report;
    const size_t wanted = static_cast<size_t>(samples);
    if (report.samples_ns.size() != wanted || (other_ && report.against_ns.size() != wanted))
      return world_error("the runner tells of fewer runs than were asked for");
    for (const auto* list : {&report.samples_ns, &report.against_ns})
      if (std::any_of(list->begin(), list->end(), [](double ns) { return !(ns > 0); }))
        return world_error("the runner tells of a run that took no time");
    own_.insert(own_.end(), report.samples_ns.begin(), report.samples_ns.end());
    other_ns_.insert(other_ns_.end(), report.against_ns.begin(), report.against_ns.end());
    state_ = report.state;
    blocks_.push_back({sum(report.samples_ns) + sum(report.against_ns) - control_claimed_,
                       ns_of(outcome.elapsed) - control_seen_, samples * (other_ ? 2 : 1)});
    return look_at_outputs(samples);
  }

  Result<std::optional<TimingOutcome>> look_at_outputs(int runs) {
    auto probes = buffers_.draw_probes(task_, runs);
    CG_CHECK(services_.runner->read(ctx_, probes));
    for (const TensorInfo* out : task_.with_role(TensorRole::output)) {
      int64_t looked_at = 0;
      if (int64_t left = buffers_.unwritten(probes, *out, looked_at); left > 0)
        return std::optional(failed(rung_failed(
            fmt::format("at the official shape the output '{}' is not written: {} of the {} "
                        "elements that were looked at",
                        out->name, left, looked_at))));
    }
    return std::optional<TimingOutcome>();
  }

  std::string detail(const Timing& t) const {
    const std::string clock = t.sm_clock_hz
                                  ? fmt::format(", SM clock {:.0f} MHz", *t.sm_clock_hz / 1e6)
                                  : std::string(", clock unknown");
    std::string out =
        fmt::format("{} measured ({}-{}, {} runs, cold L2{}), floor {} ({:.2f}x)",
                    human_ns(t.time_ns), human_ns(*t.low_ns), human_ns(*t.high_ns), t.samples,
                    clock, human_ns(t.floor_ns), t.time_ns / std::max(t.floor_ns, 1e-9));
    for (const PairedRatio& p : t.paired)
      out += fmt::format(", {:.3f}x as fast as the {} ({:.3f}-{:.3f}, {} pairs, {})", p.speedup,
                         p.against, p.low, p.high, p.pairs, p.stopped);
    return out;
  }

  TimingOutcome judged() {
    TimingOutcome out;
    const Roofline floor = floor_of(services_.gpu, task_);
    const Median m = median_of(own_);
    Timing t;
    t.origin = Origin::measured;
    t.shape = official_.shape->name;
    t.time_ns = m.value, t.low_ns = m.low, t.high_ns = m.high;
    t.floor_ns = floor.floor_ns, t.bound_by = floor.bound_by;
    t.samples = static_cast<int>(own_.size());
    if (auto at = state_.find("sm_clock_hz"); at != state_.end()) t.sm_clock_hz = at->second;
    t.clock = check_clock(blocks_);
    if (other_) {
      const Median r = speedup_of(own_, other_ns_);
      t.paired.push_back({"incumbent", other_->id(), r.value, r.low, r.high,
                          median_of(other_ns_).value, static_cast<int>(own_.size()), stopped_});
    }
    out.end = rung_passed(detail(t));
    out.timing = t;
    out.kernels = std::move(kernels_);
    for (KernelProfile& k : out.kernels) k.origin = Origin::measured;
    out.marks = std::move(marks_);
    hold_to_floor(floor, t, out);
    return out;
  }

  static void hold_to_floor(const Roofline& floor, const Timing& t, TimingOutcome& out) {
    if (t.time_ns < floor.memory_ns * kClockSlack) {
      out.result = RungResult::failed;
      out.end = rung_ended(Status::rejected,
                           fmt::format("{} is below the {} that moving the least bytes takes: it "
                                       "leaves work out",
                                       human_ns(t.time_ns), human_ns(floor.memory_ns)),
                           "Nothing runs faster than the floor.");
    } else if (t.time_ns < floor.compute_ns * kClockSlack) {
      out.marks.push_back(fmt::format(
          "faster than the {} that the task's own operations take at the peak: fewer were done",
          human_ns(floor.compute_ns)));
    }
  }

  const Context& ctx_;
  const Services& services_;
  const Task& task_;
  const Prepared& prepared_;
  const PreparedShape& official_;
  const std::string& id_;
  std::optional<Other> other_;
  TimedBuffers buffers_;
  std::vector<double> own_, other_ns_;
  std::vector<TimedBlock> blocks_;
  double control_seen_ = 0, control_claimed_ = 0;
  std::map<std::string, double> state_;
  std::vector<KernelProfile> kernels_;
  std::vector<std::string> marks_;
  std::string stopped_;
  bool died_ = false;
};

}  // namespace

ClockCheck check_clock(const std::vector<TimedBlock>& blocks) {
  ClockCheck out;
  out.agrees = blocks.empty();
  for (const TimedBlock& b : blocks) {
    out.claimed_ns += b.claimed_ns;
    out.seen_ns += b.seen_ns;
    const double unseen = std::max(kUnseenShare * b.claimed_ns, kUnseenNs * b.runs);
    out.agrees = out.agrees || b.seen_ns - b.claimed_ns <= unseen;
  }
  return out;
}

Result<TimingOutcome> measure_official(const Context& ctx, const Services& services,
                                       const Task& task, const Prepared& prepared,
                                       const std::string& program_id,
                                       const KernelProgram* against) {
  const PreparedShape* official = official_of(prepared);
  if (!official) return ended(RungResult::skipped, rung_passed("the official shape is not there"));
  return Measurement(ctx, services, task, prepared, *official, program_id).run(against);
}

}  // namespace cutegen
