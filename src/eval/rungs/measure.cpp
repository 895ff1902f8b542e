// SPDX-License-Identifier: Apache-2.0
#include "eval/rungs/measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "base/log.h"
#include "base/units.h"
#include "eval/diagnosis/statistics.h"
#include "eval/rungs/paired_runs.h"

namespace cutegen::eval {
namespace {

constexpr int kBlock = 8;           // runs of each program in a block
constexpr int kLeastBlock = 5;      // runs in a block if they take long
constexpr int kMostAlone = 32;      // timed runs of a program if there is no incumbent
constexpr double kLongBlock = 1e8;  // ns
constexpr auto kEnoughAlone = std::chrono::milliseconds(60);  // for timed runs without an incumbent
constexpr auto kEnoughPaired = std::chrono::seconds(2);
constexpr int kMoreForTheClock = 3;  // the fewest blocks to add while the clocks disagree
// The least time to spend on these blocks, because other load on the machine may end.
constexpr auto kForTheClock = std::chrono::seconds(2);
constexpr double kClockSlack = 0.97;  // lowest time / floor, because event times are inexact
// If the SM clock is below this share of the GPU's clock, a mark gives the reason.
constexpr double kFullClock = 0.97;
// Time by which the two clocks may differ per run.
constexpr double kUnseenShare = 0.15, kUnseenNs = 300e3;

double total_ns(const std::vector<KernelProfile>& kernels) {
  double out = 0;
  for (const KernelProfile& k : kernels) out += k.time_ns;
  return out;
}

// Names NVML's current reasons for low clocks.
std::string throttle_text(double reasons) {
  constexpr std::pair<unsigned, const char*> kReasons[] = {
      {0x2, "clocks are set"}, {0x4, "power cap"},         {0x8, "hardware slowdown"},
      {0x10, "sync boost"},    {0x20, "thermal slowdown"}, {0x40, "hardware thermal slowdown"},
      {0x80, "power brake"}};
  std::vector<const char*> out;
  for (const auto& [bit, name] : kReasons)
    if (unsigned(reasons) & bit) out.push_back(name);
  return out.empty() ? "nothing limits it now" : fmt::format("{}", fmt::join(out, ", "));
}

class Measurement {
 public:
  using End = PairedRuns::End;
  Measurement(const Evaluation& e, const PreparedShape& shape)
      : e_(e), shape_(*shape.shape), runs_(e.services, e.task, e.prepared, shape) {}

  Result<TimingOutcome> run(const MeasureOptions& options) {
    const auto start = Clock::now();
    drop_losers_ = options.drop_losers;
    CG_CHECK(runs_.prepare(e_.ctx, options.program_id, options.set, options.against));
    tell("ready", start);
    if (auto end = runs_.too_large()) return *end;
    CG_TRY(End end, measure());
    if (end && runs_.died()) {  // tries once more in a new runner
      CG_TRY(end, measure());
    }
    if (end) return std::move(*end);
    CG_CHECK(look_at_clock());
    return judged();
  }

 private:
  // Measures from the first run to the last block. Returns an outcome if there are no times.
  Result<End> measure() {
    own_.clear(), other_ns_.clear(), blocks_.clear(), clocks_hz_.clear();
    least_hz_ = e_.services.gpu.clock_hz;
    auto start = Clock::now();
    CG_TRY(End end, runs_.begin(e_.ctx));
    tell("first run", start);
    if (end) return end;
    const double pair = total_ns(runs_.kernels()) * (runs_.paired() ? 2 : 1);
    const int samples = pair * kBlock > kLongBlock ? kLeastBlock : kBlock;
    start = Clock::now();
    CG_TRY(end, runs_.control(e_.ctx, samples));
    tell("control", start);
    if (end) return end;
    start = Clock::now();
    CG_TRY(end, take_blocks(samples));
    tell("blocks", start);
    return end;
  }

  static void tell(const char* part, Clock::time_point start) {
    log_debug("timing: {} {}", part, human_ns(double((Clock::now() - start).count())));
  }

  Result<End> take_blocks(int samples) {
    const auto start = Clock::now();
    auto disagreeing = start;
    PairRule rule;
    rule.least = samples;
    rule.drop_losers = drop_losers_;
    for (int more = 0;;) {
      CG_TRY(End end, block(samples));
      if (end) return end;
      const auto spent = Clock::now() - start;
      stopped_.clear();
      if (runs_.paired()) {
        if (auto why = enough_pairs(rule, own_, other_ns_)) stopped_ = *why;
        if (stopped_.empty() && spent > kEnoughPaired) stopped_ = "enough";
      } else if (spent > kEnoughAlone || int(own_.size()) >= kMostAlone) {
        stopped_ = "enough";
      }
      if (stopped_.empty()) continue;
      if (check_clock(blocks_).agrees) return End();
      if (++more == 1) disagreeing = Clock::now();
      if (more > kMoreForTheClock && Clock::now() - disagreeing > kForTheClock)
        return world_error("the runner's times disagree with this process's clock",
                           "end other programs on this machine, then try again");
      CG_TRY(end, runs_.control(e_.ctx, samples));  // load may have disturbed the last control runs
      if (end) return end;
    }
  }

  Result<End> block(int samples) {
    CG_TRY(End end, runs_.block(e_.ctx, TimeMode::cold, samples));
    if (end) return end;
    own_.insert(own_.end(), runs_.last().own.begin(), runs_.last().own.end());
    other_ns_.insert(other_ns_.end(), runs_.last().other.begin(), runs_.last().other.end());
    blocks_.push_back({.claimed_ns = runs_.last().claimed_ns,
                       .seen_ns = runs_.last().seen_ns,
                       .runs = samples * (runs_.paired() ? 2 : 1)});
    auto told = [&](const char* name) {
      auto at = runs_.last().state.find(name);
      return at == runs_.last().state.end() ? 0 : at->second;
    };
    note_scrubbing();
    if (double hz = told("sm_clock_hz"); hz > 0) clocks_hz_.push_back(hz);
    if (double hz = told("sm_clock_least_hz"); hz > 0) least_hz_ = std::min(least_hz_, hz);
    return End();
  }

  // Records which buffers the device could not overwrite between runs.
  void note_scrubbing() {
    constexpr std::string_view kMissing = "not_scrubbed.";
    for (const auto& [name, value] : runs_.last().state)
      if (name.starts_with(kMissing)) not_scrubbed_.insert(name.substr(kMissing.size()));
  }

  // Asks NVML why the clocks were low, but only if they were, because the query is slow.
  Result<void> look_at_clock() {
    if (clocks_hz_.empty() || least_hz_ >= kFullClock * e_.services.gpu.clock_hz) return {};
    CG_TRY(auto state, runs_.watch(e_.ctx));
    auto at = state.find("throttle_reasons");
    slow_ = fmt::format("the SM clock fell to {:.0f} MHz, of {:.0f} ({})", least_hz_ / 1e6,
                        e_.services.gpu.clock_hz / 1e6,
                        at == state.end() ? "reason unknown" : throttle_text(at->second));
    return {};
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
    const Roofline floor = floor_of(e_.services.gpu, e_.task, shape_);
    const Median m = median_of(own_);
    Timing t;
    t.origin = Origin::measured;
    t.shape = shape_.name;
    t.time_ns = m.value, t.low_ns = m.low, t.high_ns = m.high;
    set_bounds(t, floor), t.bound_by = to_string(floor.bound_by);
    t.samples = int(own_.size());
    if (!clocks_hz_.empty()) {
      t.sm_clock_hz = median_of(clocks_hz_).value;
      t.sm_clock_least_hz = least_hz_;
    }
    t.clock = check_clock(blocks_);
    if (runs_.paired()) {
      const Median r = speedup_of(own_, other_ns_, PairRule().level);
      t.paired.push_back({.against = "incumbent",
                          .program_id = runs_.other_id(),
                          .speedup = r.value,
                          .low = r.low,
                          .high = r.high,
                          .other_ns = median_of(other_ns_).value,
                          .pairs = int(own_.size()),
                          .stopped = stopped_});
    }
    out.end = rung_passed(detail(t));
    out.timing = t;
    out.kernels = runs_.kernels();
    for (KernelProfile& k : out.kernels) k.origin = Origin::measured;
    if (!runs_.note().empty()) out.marks.push_back(runs_.note());
    if (!slow_.empty()) out.marks.push_back(slow_);
    if (const int busy = runs_.busy_blocks(); busy > 0)
      out.marks.push_back(fmt::format(
          "other work slowed the GPU's memory down during {} of {} blocks of timed runs", busy,
          blocks_.size()));
    if (std::string remark = runs_.inputs().remark(); !remark.empty())
      out.marks.push_back(std::move(remark));
    if (!not_scrubbed_.empty())
      out.marks.push_back(
          fmt::format("not overwritten between runs, because the driver refuses: {}",
                      fmt::join(not_scrubbed_, ", ")));
    hold_to_floor(floor, t, out);
    return out;
  }

  const Evaluation e_;
  const ShapeCase& shape_;
  PairedRuns runs_;
  std::vector<double> own_, other_ns_;
  std::vector<TimedBlock> blocks_;
  std::vector<double> clocks_hz_;  // SM clocks, a median for each block
  double least_hz_ = 0;
  bool drop_losers_ = true;
  std::string stopped_, slow_;
  std::set<std::string> not_scrubbed_;
};

}  // namespace

void hold_to_floor(const Roofline& floor, const Timing& t, TimingOutcome& out) {
  if (t.time_ns < floor.floor_ns * kClockSlack) {
    out.result = RungResult::failed;
    out.end = rung_ended(
        Status::rejected,
        fmt::format(
            "{} is below the floor of {} (a launch, or the least traffic): the program omits work",
            human_ns(t.time_ns), human_ns(floor.floor_ns)),
        "Nothing runs faster than the floor.");
  } else if (t.time_ns < floor.compute_ns) {
    out.end.detail +=
        fmt::format(", below the roofline of {}, an estimate for the operations as written",
                    human_ns(floor.roofline_ns));
  }
}

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

Result<TimingOutcome> measure_official(const Evaluation& e, const MeasureOptions& options) {
  const PreparedShape* shape = options.shape ? options.shape : official_of(e.prepared);
  if (!shape) {
    TimingOutcome out;
    out.result = RungResult::skipped;
    out.end = rung_passed("the official shape was not prepared");
    return out;
  }
  return Measurement(e, *shape).run(options);
}

}  // namespace cutegen::eval
