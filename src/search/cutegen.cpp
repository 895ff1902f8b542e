// SPDX-License-Identifier: Apache-2.0
#include "search/cutegen.h"

#include <fmt/format.h>

#include <algorithm>

namespace cutegen::search {
namespace {

constexpr int kDiagnosedFrom = 2;  // a judge diagnoses the failure before this repair

Role role_of(Wanted wanted) {
  switch (wanted) {
    case Wanted::plan:
      return Role::planner;
    case Wanted::fix:
      return Role::debugger;
    case Wanted::diagnosis:
      return Role::judge;
    case Wanted::first:
    case Wanted::improve:
      break;
  }
  return Role::coder;
}

Purpose purpose_of(Wanted wanted) {
  switch (wanted) {
    case Wanted::plan:
      return Purpose::plan;
    case Wanted::first:
      return Purpose::first;
    case Wanted::improve:
      return Purpose::improve;
    case Wanted::fix:
    case Wanted::diagnosis:
      break;
  }
  return Purpose::repair;
}

TaskFacts facts_of(const Json& data) {
  const auto task = data.find("task");
  const bool known = task != data.end() && task->is_object();
  return {.workload = known ? text_at(*task, "workload") : std::string(),
          .profile_is_free = profile_is_free(data)};
}

Kept kept_of(const std::string& id, const std::optional<Candidate>& candidate,
             const Verdict& verdict, bool profiled) {
  return {.id = id,
          .timing = verdict.timing,
          .structure = candidate ? structure_of(candidate->program) : Structure{},
          .profiled = profiled};
}

// Decides whether a line's best program becomes the incumbent.
Action compare(const Kept& now, const std::optional<Kept>& best, size_t line, double min_gain) {
  if (!best) return Accept{.candidate = now.id, .reason = "first correct candidate"};
  if (!now.timing)
    return Reject{.candidate = now.id,
                  .reason = fmt::format("best of line {}, but no time is known", line)};
  if (!best->timing) return Accept{.candidate = now.id, .reason = "first candidate with a time"};
  const double before = incumbent_ns(*best->timing, *now.timing), after = now.timing->time_ns;
  if (!beats_incumbent(*best->timing, *now.timing, min_gain))
    return Reject{.candidate = now.id,
                  .reason = fmt::format("best of line {}, but {}", line, loss_text(before, after))};
  return Accept{.candidate = now.id, .reason = gain_text(before, after)};
}

}  // namespace

void CutegenStrategy::on_task(const Json& data) {
  task_ = facts_of(data);
  if (agents_.planner && agents_.start == Start::scratch) return ask_for(Wanted::plan);
  begin_lines({});
}

// The first line continues from the source kernel; the others write their own first programs.
void CutegenStrategy::on_source(const Json& task, const Candidate& source, const Verdict& verdict) {
  task_ = facts_of(task);
  lines_.begin(settings_, {}, task_.workload);
  line().best = best_ = kept_of(source.id, source, verdict, verdict.profile.has_value());
  decide();
}

void CutegenStrategy::begin_lines(const std::vector<std::string>& approaches) {
  lines_.begin(settings_, approaches, task_.workload);
  decide();
}

// Charges the evaluations since the last call, including those of drafts, to the current line.
void CutegenStrategy::charge_line() {
  if (lines_.have_begun()) line().evaluations += evaluations_ - charged_;
  charged_ = evaluations_;
}

void CutegenStrategy::on_answer(const Proposed& answer) {
  charge_line();
  if (answer.outcome == Outcome::unusable) return on_unusable(answer.reason);
  bool advice = wanted_ == Wanted::plan || wanted_ == Wanted::diagnosis;
  if (answer.outcome != (advice ? Outcome::advised : Outcome::proposed))
    return open(Finish{.reason = answer.reason, .best = best()});
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
  profile_asked_ = task_.profile_is_free || line().profiling.opens_next();
  judge(Evaluate{.candidate = candidate, .up_to = Rung::timing, .profile = profile_asked_});
}

// One or two unusable answers may be chance; kMostUnusable in a row end the run.
void CutegenStrategy::on_unusable(const std::string& reason) {
  if (++unusable_ >= kMostUnusable)
    return open(Finish{.reason = "the model's answers cannot be used: " + reason, .best = best()});
  if (wanted_ == Wanted::plan) return begin_lines({});
  if (wanted_ == Wanted::diagnosis) return ask_for(Wanted::fix);
  if (wanted_ == Wanted::fix) return give_up_candidate();
  line().take_unusable(wanted_ == Wanted::first);
  decide();
}

void CutegenStrategy::on_verdict(const std::string& candidate, const Verdict& verdict) {
  if (candidate == profiled_again_) return on_profiled();
  charge_line();
  if (verdict.status == Status::correct) return on_correct(candidate, verdict);
  failing_ = candidate;
  line().take_failure();
  open(Reject{.candidate = candidate, .reason = fault_text(verdict)});
}

// Follows an evaluation that only adds a profile. It changes neither the program's time nor the
// decision, and it is not charged to the line.
void CutegenStrategy::on_profiled() {
  charged_ = evaluations_;
  profiled_again_.clear();
  if (line().best) line().best->profiled = true;
  decide();
}

void CutegenStrategy::on_correct(const std::string& candidate, const Verdict& verdict) {
  failing_.clear();
  Line& l = line();
  const Kept now = kept_of(candidate, proposed_, verdict, profile_asked_ || verdict.profile);
  if (best_) ties_ = ties_after(ties_, best_->timing, now.timing);
  const bool of_run = l.best && best_ && l.best->id == best_->id;
  if (l.take(now, of_run, settings_.min_gain)) return on_best_of_line(now);
  if (!now.timing)
    return open(Reject{.candidate = candidate, .reason = "correct, but no time is known"});
  const double before =
      of_run ? incumbent_ns(*l.best->timing, *now.timing) : l.best->timing->time_ns;
  open(Reject{.candidate = candidate, .reason = loss_text(before, now.timing->time_ns)});
}

void CutegenStrategy::on_best_of_line(const Kept& now) {
  Action decision = compare(now, best_, lines_.number(), settings_.min_gain);
  if (std::holds_alternative<Accept>(decision)) best_ = now;
  open(std::move(decision));
}

void CutegenStrategy::on_set_aside(const std::string& candidate, const std::string& why) {
  if (candidate == profiled_again_) return on_profiled();  // do not try again
  failing_.clear();
  open(Reject{.candidate = candidate, .reason = why});
}

void CutegenStrategy::after_rejection() {
  if (failing_.empty()) return decide();
  Line& l = line();
  int most = l.best ? agents_.fixes : settings_.repairs;
  if (l.fixes >= most) return give_up_candidate();
  if (auto reason = reason_to_stop()) return open(Finish{.reason = *reason, .best = best()});
  ++l.fixes;
  advice_.clear();
  ask_for(agents_.judge && l.fixes == kDiagnosedFrom ? Wanted::diagnosis : Wanted::fix);
}

void CutegenStrategy::give_up_candidate() {
  failing_.clear();
  line().give_up_candidate();
  decide();
}

std::optional<double> CutegenStrategy::best_ns() const {
  return best_ && best_->timing ? std::optional(best_->timing->time_ns) : std::nullopt;
}

std::optional<std::string> CutegenStrategy::reason_to_stop() const {
  if (auto end = end_of_run(best_ns())) return end;
  if (auto ns = best_ns())
    if (auto end = only_ties(*ns)) return end;
  if (!lines_.have_begun() || !lines_.in_last_phase()) return std::nullopt;
  if (!best_ && lines_.is_over())
    return "nothing correct after " + std::to_string(evaluations_) +
           " candidates: " + feedback_.headline;
  if (line().misses >= settings_.plateau) return "plateau";
  return std::nullopt;
}

void CutegenStrategy::decide() {
  if (auto reason = reason_to_stop()) return open(Finish{.reason = *reason, .best = best()});
  while (!lines_.in_last_phase() && lines_.is_over())
    if (!lines_.next(best_)) break;
  if (auto reason = reason_to_stop()) return open(Finish{.reason = *reason, .best = best()});
  Line& l = line();
  if (!l.best) return ask_for(Wanted::first);
  if (l.profiling.open() && !l.best->profiled) {
    profiled_again_ = l.best->id;
    return open(Evaluate{.candidate = l.best->id, .up_to = Rung::profile, .profile = true});
  }
  ask_for(Wanted::improve);
}

void CutegenStrategy::ask_for(Wanted wanted) {
  wanted_ = wanted;
  bool recipe = wanted == Wanted::first && agents_.start == Start::recipe && line().rewrites == 0;
  open(Ask{.role = recipe ? Role::recipe : role_of(wanted), .context = context(wanted)});
}

Json CutegenStrategy::context(Wanted wanted) const {
  Json out;
  if (wanted == Wanted::plan)
    return {{"purpose", to_string(purpose_of(wanted))},
            {"approaches", std::max(agents_.chains, 1)}};
  const Line& l = line();
  out["purpose"] = to_string(purpose_of(wanted));
  out["line"] = lines_.number();
  if (wanted == Wanted::improve) {
    out["parent"] = l.best->id;
    out["stage"] = to_string(l.stage());
    out["profile"] = l.profiling.open();
  } else if (wanted != Wanted::first) {
    out["parent"] = failing_;
    out["repair"] = l.fixes;
  }
  if (!l.approach.empty() && wanted != Wanted::diagnosis) out["approach"] = l.approach;
  if (!advice_.empty() && wanted == Wanted::fix) out["advice"] = advice_;
  if (auto ns = best_ns()) out["best_ns"] = *ns;
  bounds_.put(out);
  return out;
}

}  // namespace cutegen::search
