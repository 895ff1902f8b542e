// SPDX-License-Identifier: Apache-2.0
#include "search/machine.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "base/units.h"
#include "core/device_name.h"

namespace cutegen::search {
namespace {

constexpr double kTie = 0.01, kSame = 0.0005;
constexpr int kOldTies = 3;  // in runs with version 1 of the rules, this many ties end the run
// Up to this multiple of the reachable bound, a memory-bound program can hardly become faster.
constexpr double kLittleToGain = 1.15;
constexpr int kMostSetAside = 2;  // this many aborted candidates in a row end the run

const PairedRatio* pair_with_incumbent(const Timing& timing) {
  for (const PairedRatio& p : timing.paired)
    if (p.against == kIncumbent) return &p;
  return nullptr;
}

// Empty if the field is absent or has another type.
template <class T>
std::vector<T> list_at(const Json& data, const char* key) {
  auto it = data.find(key);
  if (it == data.end()) return {};
  auto list = read_json<std::vector<T>>(*it);
  return list ? std::move(*list) : std::vector<T>();
}

}  // namespace

bool profile_is_free(const Json& task) {
  const auto device = DeviceName::parse(text_at(task, "device"));
  return device && !device->is_gpu();
}

std::string text_at(const Json& data, const char* key) {
  auto it = data.find(key);
  return it != data.end() && it->is_string() ? it->get<std::string>() : std::string();
}

std::string gain_text(double before, double after) {
  return fmt::format("{:.1f}% faster ({} -> {})", 100 * (1 - after / before), human_ns(before),
                     human_ns(after));
}

bool is_tie(double best, double time) {
  return std::abs(time / best - 1) <= kTie;
}

int ties_after(int ties, const std::optional<Timing>& best, const std::optional<Timing>& now) {
  if (!best || !now) return ties;
  return is_tie(best->time_ns, now->time_ns) ? ties + 1 : 0;
}

std::string loss_text(double best, double time) {
  if (std::abs(time / best - 1) < kSame) return "a tie: the same time as the best";
  if (time >= best) return fmt::format("{:.1f}% slower than the best", 100 * (time / best - 1));
  return fmt::format("only {:.2f}% faster than the best", 100 * (1 - time / best));
}

std::string fault_text(const Verdict& verdict) {
  std::string why = to_string(verdict.status);
  return verdict.feedback.headline.empty() ? why : why + ": " + verdict.feedback.headline;
}

bool is_gain(const Timing& before, const Timing& after, double min_gain) {
  if (after.time_ns > before.time_ns * (1 - min_gain) || after.time_ns >= before.time_ns)
    return false;
  return !after.high_ns || !before.low_ns || *after.high_ns < *before.low_ns;
}

bool beats_incumbent(const Timing& incumbent, const Timing& after, double min_gain) {
  if (const PairedRatio* p = pair_with_incumbent(after))
    return p->low > 1 && p->speedup * (1 - min_gain) >= 1;
  return is_gain(incumbent, after, min_gain);
}

double incumbent_ns(const Timing& incumbent, const Timing& now) {
  const PairedRatio* pair = pair_with_incumbent(now);
  return pair ? now.time_ns * pair->speedup : incumbent.time_ns;
}

void Machine::open(Action action) {
  if (std::holds_alternative<Ask>(action)) drafts_.clear();
  if (auto* e = std::get_if<Evaluate>(&action)) e->tests = source_ ? source_->tests() : tests_;
  open_ = std::move(action), issued_ = false;
}

std::vector<Action> Machine::next() {
  if (!open_ || issued_) return {};
  issued_ = true;
  return {*open_};
}

// Whether the open action has the type A and, if it names a candidate, the event names the same
// one.
template <class A>
bool Machine::awaits(const Event& event) const {
  const A* action = open_ ? std::get_if<A>(&*open_) : nullptr;
  if (!action) return false;
  if constexpr (requires { action->candidate; })
    return action->candidate == text_at(event.data, "candidate");
  return true;
}

void Machine::apply(const Event& event) {
  if (!event.data.is_object()) return;
  if (auto it = event.data.find("clock_ms"); it != event.data.end() && it->is_number_integer())
    clock_ms_ = it->get<int64_t>();
  if (event.type == EventType::task) {
    bounds_ = KnownBounds::of(event.data);
    task_ = event.data;
    if (!asks_before(task_)) begin({});
  } else if (event.type == EventType::resumed) {
    issued_ = false;
  } else if (event.type == EventType::answered && awaits<Ask>(event)) {
    answered(event.data);
  } else if (event.type == EventType::evaluated && awaits<Evaluate>(event)) {
    evaluated(event.data);
  } else if (event.type == EventType::evaluated && awaits<Ask>(event)) {
    draft_evaluated(event.data);
  } else if (event.type == EventType::accepted && awaits<Accept>(event)) {
    source_ ? go_on_from_source() : on_accepted(text_at(event.data, "candidate"));
  } else if (event.type == EventType::rejected && awaits<Reject>(event)) {
    source_ ? go_on_from_source() : on_rejected(text_at(event.data, "candidate"));
  } else if (event.type == EventType::finished && awaits<Finish>(event)) {
    open_.reset();
  }
}

void Machine::answered(const Json& data) {
  Proposed p{.outcome = outcome_of(data), .reason = text_at(data, "reason")};
  if (auto it = data.find("candidate"); it != data.end()) {
    p.id = text_at(*it, "id");
    if (auto candidate = read_json<Candidate>(*it)) p.candidate = std::move(*candidate);
  }
  p.advice = list_at<std::string>(data, "advice");
  p.tests = list_at<TestCase>(data, "tests");
  attempts_ = 0;
  source_ ? open(source_->answered(p.candidate, p.reason)) : on_answer(p);
}

void Machine::begin(std::vector<TestCase> tests) {
  const Json task = std::exchange(task_, Json());
  tests_ = std::move(tests);
  if (!task.contains("start")) return on_task(task);
  source_.emplace(task, tests_);
  open(SourceKernel::first());
}

void Machine::go_on_from_source() {
  const SourceKernel source = *std::exchange(source_, std::nullopt);
  if (!source.holds()) return open(source.finish());
  tests_ = source.tests();
  on_source(source.task(), source.candidate(), source.verdict());
}

void Machine::evaluated(const Json& data) {
  Evaluate asked = std::get<Evaluate>(*open_);
  auto verdict = read_json<Verdict>(data.contains("verdict") ? data["verdict"] : Json());
  if (!verdict) return aborted(asked, "the verdict cannot be read: " + verdict.error().message);
  feedback_ = verdict->feedback;
  if (verdict->status == Status::aborted) return aborted(asked, feedback_.headline);
  ++evaluations_;
  set_aside_ = 0;
  attempts_ = 0;
  if (source_) return open(source_->judged(*verdict, fault_text(*verdict)));
  on_verdict(asked.candidate, *verdict);
}

void Machine::draft_evaluated(const Json& data) {
  auto verdict = read_json<Verdict>(data.contains("verdict") ? data["verdict"] : Json());
  if (!verdict || verdict->status == Status::aborted) return;
  ++evaluations_;
  drafts_[text_at(data, "candidate")] = std::move(*verdict);
}

void Machine::judge(const Evaluate& wanted) {
  auto known = drafts_.find(wanted.candidate);
  if (known == drafts_.end()) return open(wanted);
  const Verdict verdict = std::move(known->second);
  drafts_.clear();
  feedback_ = verdict.feedback;
  set_aside_ = 0;
  attempts_ = 0;
  on_verdict(wanted.candidate, verdict);
}

void Machine::aborted(const Evaluate& asked, const std::string& why) {
  if (++attempts_ <= settings_.retries) return open(asked);
  ++set_aside_;
  const std::string reason =
      fmt::format("set aside: aborted {} times, which says nothing about it: {}", attempts_, why);
  attempts_ = 0;
  if (source_) return open(source_->judged(std::nullopt, reason));
  on_set_aside(asked.candidate, reason);
}

// A rule about wasted effort, not about a bound: a faster program may exist.
std::optional<std::string> Machine::only_ties(double best_ns) const {
  const bool old_rules = settings_.end_rules < 2;
  if (ties_ < (old_rules ? kOldTies : settings_.plateau)) return std::nullopt;
  const double near = bounds_.reachable_ns * kLittleToGain;
  if (!bounds_.memory_bound || near <= 0 || best_ns > near) return std::nullopt;
  if (old_rules)
    return fmt::format("{} ties within {:.3g}% near the reachable bound", ties_, 100 * kTie);
  return fmt::format("plateau: {} correct programs in a row within {:.3g}% of the best time", ties_,
                     100 * kTie);
}

std::optional<std::string> Machine::end_of_run(std::optional<double> best_ns) const {
  if (best_ns)
    if (auto end = bounds_.nothing_to_win(*best_ns, settings_)) return end;
  if (set_aside_ >= kMostSetAside) return "the evaluator keeps failing: " + feedback_.headline;
  if (evaluations_ >= settings_.budget.evaluations) return "budget: evaluations";
  if (settings_.budget.minutes > 0 && double(clock_ms_) >= settings_.budget.minutes * 60e3)
    return "budget: minutes";
  return std::nullopt;
}

}  // namespace cutegen::search
