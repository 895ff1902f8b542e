// SPDX-License-Identifier: Apache-2.0
#include "search/cutegen.h"

#include "core/device_name.h"

#include <fmt/format.h>

#include <algorithm>

namespace cutegen::search {
namespace {

constexpr int kLinePlateau = 3;  // misses that end a line before the last phase
// Steps without a change of structure, after which questions ask for details.
constexpr int kStructureSteps = 2;
constexpr int kMostRewrites = 2;
constexpr int kMostUnusable = 3;
constexpr int kDiagnosedFrom = 2;  // the repair that a judge's diagnosis precedes

}  // namespace

void CutegenStrategy::on_task(const Json& data) {
  if (auto task = data.find("task"); task != data.end() && task->is_object())
    workload_ = text_at(*task, "workload");
  // The simulator counts while it times. On a GPU, a profile is a separate run.
  const auto device = DeviceName::parse(text_at(data, "device"));
  profile_is_free_ = device && !device->is_gpu();
  if (agents_.planner && agents_.start == Start::scratch) return ask_for(Wanted::plan);
  begin_lines({});
}

void CutegenStrategy::begin_lines(const std::vector<std::string>& approaches) {
  // A recipe has one first program, so more lines would repeat it.
  size_t count =
      agents_.start == Start::recipe ? 1 : static_cast<size_t>(std::max(agents_.chains, 1));
  for (size_t i = 0; i < count; ++i)
    lines_.push_back({i < approaches.size() ? approaches[i] : std::string(),
                      {},
                      Profiling(agents_.profiling, workload_)});
  last_phase_ = count == 1;
  decide();
}

// Charges the evaluations since the last call, drafts included, to the present line.
void CutegenStrategy::charge_line() {
  if (!lines_.empty()) line().evaluations += evaluations_ - charged_;
  charged_ = evaluations_;
}

void CutegenStrategy::on_answer(const Proposed& answer) {
  charge_line();
  if (answer.outcome == Outcome::unusable) return on_unusable(answer.reason);
  bool advice = wanted_ == Wanted::plan || wanted_ == Wanted::diagnosis;
  if (answer.outcome != (advice ? Outcome::advised : Outcome::proposed))
    return open(Finish{answer.reason, best()});
  unusable_ = 0;
  if (wanted_ == Wanted::plan) return begin_lines(answer.advice);
  if (wanted_ == Wanted::diagnosis) {
    advice_ = answer.advice.empty() ? std::string() : answer.advice.front();
    return ask_for(Wanted::fix);
  }
  proposed_ = answer.candidate;
  evaluate(answer.id);
}

void CutegenStrategy::evaluate(const std::string& candidate) {
  judge(Evaluate{candidate, Rung::timing, profile_is_free_ || line().profiling.open()});
}

// One or two unusable answers may be chance; kMostUnusable in a row end the run.
void CutegenStrategy::on_unusable(const std::string& reason) {
  if (++unusable_ >= kMostUnusable)
    return open(Finish{"the model's answers cannot be used: " + reason, best()});
  if (wanted_ == Wanted::plan) return begin_lines({});
  if (wanted_ == Wanted::diagnosis) return ask_for(Wanted::fix);
  if (wanted_ == Wanted::fix) return give_up_candidate();
  ++line().misses;
  if (wanted_ == Wanted::first) ++line().rewrites;
  decide();
}

void CutegenStrategy::on_verdict(const std::string& candidate, const Verdict& verdict) {
  charge_line();
  if (candidate == profiled_again_) return on_profiled(verdict);
  if (verdict.status == Status::correct) return on_correct(candidate, verdict);
  failing_ = candidate;
  if (line().best)
    line().profiling.step(false, false, line().best->timing ? line().best->timing->time_ns : 0);
  open(Reject{candidate, fault_text(verdict)});
}

// This evaluation only adds a profile. The program's time and standing stay.
void CutegenStrategy::on_profiled(const Verdict& verdict) {
  profiled_again_.clear();
  if (line().best) line().best->profiled = true;
  (void)verdict;
  decide();
}

void CutegenStrategy::on_correct(const std::string& candidate, const Verdict& verdict) {
  failing_.clear();
  Line& l = line();
  Kept now{candidate, verdict.timing, proposed_ ? structure_of(proposed_->program) : Structure{},
           verdict.profile.has_value()};
  bool first = !l.best;
  bool of_run = l.best && best_ && l.best->id == best_->id;  // it is the run's incumbent
  auto gains = of_run ? beats_incumbent : is_gain;
  bool better =
      first ||
      (now.timing && (!l.best->timing || gains(*l.best->timing, *now.timing, settings_.min_gain)));
  bool changed = better && !first && !(now.structure == l.best->structure);
  std::optional<double> before;
  if (l.best && l.best->timing && now.timing)
    before = of_run ? incumbent_ns(*l.best->timing, *now.timing) : l.best->timing->time_ns;
  l.fixes = 0;
  l.misses = better ? 0 : l.misses + 1;
  if (better) l.best = now;
  l.profiling.step(true, changed, l.best->timing ? l.best->timing->time_ns : 0);
  if (!better)
    return open(Reject{candidate, !now.timing ? "correct, but no time is known"
                                              : loss_text(*before, now.timing->time_ns)});
  if (!best_) {
    best_ = now;
    return open(Accept{candidate, "first correct candidate"});
  }
  bool beats = now.timing &&
               (!best_->timing || beats_incumbent(*best_->timing, *now.timing, settings_.min_gain));
  if (!beats)
    return open(Reject{
        candidate,
        fmt::format("best of line {}, but {}", line_ + 1,
                    now.timing && best_->timing
                        ? loss_text(incumbent_ns(*best_->timing, *now.timing), now.timing->time_ns)
                        : "no time is known")});
  std::string why = best_->timing
                        ? gain_text(incumbent_ns(*best_->timing, *now.timing), now.timing->time_ns)
                        : "first candidate with a time";
  best_ = now;
  open(Accept{candidate, why});
}

void CutegenStrategy::on_set_aside(const std::string& candidate, const std::string& why) {
  if (candidate == profiled_again_) {
    profiled_again_.clear();
    if (line().best) line().best->profiled = true;  // do not try again
    return decide();
  }
  failing_.clear();
  open(Reject{candidate, why});
}

void CutegenStrategy::after_rejection() {
  if (failing_.empty()) return decide();
  Line& l = line();
  int most = l.best ? agents_.fixes : settings_.repairs;
  if (l.fixes >= most) return give_up_candidate();
  if (auto reason = reason_to_stop()) return open(Finish{*reason, best()});
  ++l.fixes;
  advice_.clear();
  ask_for(agents_.judge && l.fixes == kDiagnosedFrom ? Wanted::diagnosis : Wanted::fix);
}

// Gives up repairs and returns to the line's best, or to a new first program.
void CutegenStrategy::give_up_candidate() {
  Line& l = line();
  failing_.clear();
  l.fixes = 0;
  if (l.best)
    ++l.misses;
  else
    ++l.rewrites;
  decide();
}

bool CutegenStrategy::line_is_over() const {
  const Line& l = line();
  if (l.dead || (!l.best && l.rewrites >= kMostRewrites)) return true;
  if (last_phase_) return false;
  return l.evaluations >= share() || l.misses >= kLinePlateau;
}

int64_t CutegenStrategy::share() const {
  if (agents_.chain_evaluations > 0) return agents_.chain_evaluations;
  return std::max<int64_t>(3,
                           settings_.budget.evaluations / 2 / static_cast<int64_t>(lines_.size()));
}

std::optional<double> CutegenStrategy::best_ns() const {
  return best_ && best_->timing ? std::optional(best_->timing->time_ns) : std::nullopt;
}

std::optional<std::string> CutegenStrategy::reason_to_stop() const {
  if (auto end = end_of_run(best_ns())) return end;
  if (lines_.empty() || !last_phase_) return std::nullopt;
  if (!best_ && line_is_over())
    return "nothing correct after " + std::to_string(evaluations_) +
           " candidates: " + feedback_.headline;
  if (line().misses >= settings_.plateau) return "plateau";
  return std::nullopt;
}

// Moves to the next line, or to the best one for the last phase. False if there is none.
bool CutegenStrategy::next_line() {
  if (line_ + 1 < lines_.size()) {
    ++line_;
    return true;
  }
  last_phase_ = true;
  bool found = false;
  for (size_t i = 0; i < lines_.size(); ++i)
    if (best_ && lines_[i].best && lines_[i].best->id == best_->id) {
      line_ = i;
      found = true;
    }
  if (found) line().misses = 0;
  return found;
}

void CutegenStrategy::decide() {
  if (auto reason = reason_to_stop()) return open(Finish{*reason, best()});
  while (!last_phase_ && line_is_over())
    if (!next_line()) break;
  if (auto reason = reason_to_stop()) return open(Finish{*reason, best()});
  Line& l = line();
  if (!l.best) return ask_for(Wanted::first);
  if (l.profiling.open() && !l.best->profiled) {
    profiled_again_ = l.best->id;
    return open(Evaluate{l.best->id, Rung::profile, true});
  }
  ask_for(Wanted::improve);
}

void CutegenStrategy::ask_for(Wanted wanted) {
  wanted_ = wanted;
  const Role role = wanted == Wanted::plan        ? Role::planner
                    : wanted == Wanted::fix       ? Role::debugger
                    : wanted == Wanted::diagnosis ? Role::judge
                                                  : Role::coder;
  bool recipe = wanted == Wanted::first && agents_.start == Start::recipe && line().rewrites == 0;
  open(Ask{recipe ? Role::recipe : role, context(wanted)});
}

Json CutegenStrategy::context(Wanted wanted) const {
  Json out;
  if (wanted == Wanted::plan)
    return {{"purpose", to_string(Purpose::plan)}, {"approaches", std::max(agents_.chains, 1)}};
  const Line& l = line();
  out["purpose"] = to_string(wanted == Wanted::first     ? Purpose::first
                             : wanted == Wanted::improve ? Purpose::improve
                                                         : Purpose::repair);
  out["line"] = line_ + 1;
  if (wanted == Wanted::improve) {
    out["parent"] = l.best->id;
    out["stage"] = l.profiling.steps_without_change() >= kStructureSteps
                       ? to_string(Stage::detail)
                       : to_string(Stage::structure);
    out["profile"] = l.profiling.open();
  } else if (wanted != Wanted::first) {
    out["parent"] = failing_;
    out["repair"] = l.fixes;
  }
  if (!l.approach.empty() && wanted != Wanted::diagnosis) out["approach"] = l.approach;
  if (!advice_.empty() && wanted == Wanted::fix) out["advice"] = advice_;
  if (auto ns = best_ns()) out["best_ns"] = *ns;
  put_bounds(out);
  return out;
}

}  // namespace cutegen::search
