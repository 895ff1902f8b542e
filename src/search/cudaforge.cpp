// SPDX-License-Identifier: Apache-2.0
#include "search/cudaforge.h"

namespace cutegen::search {

void CudaforgeStrategy::on_source(const Json&, const Candidate& source, const Verdict& verdict) {
  current_ = source.id;
  best_ = source.id;
  best_timing_ = verdict.timing;
  decide();
}

void CudaforgeStrategy::decide() {
  std::optional<double> ns;
  if (best_timing_) ns = best_timing_->time_ns;
  if (auto reason = end_of_run(ns)) return open(Finish{.reason = *reason, .best = best()});
  if (ns && !agents_.published)
    if (auto reason = only_ties(*ns)) return open(Finish{.reason = *reason, .best = best()});
  if (rounds_ >= form_.rounds) return open(Finish{.reason = "all rounds are done", .best = best()});
  needs_reading() ? ask(Step::read) : ask_for_change();
}

void CudaforgeStrategy::ask_for_change() {
  ask(!current_.empty() && form_.adviser ? Step::advise : Step::write);
}

// Asks the reader about each correct program once. Before the last evaluation, the adviser reads
// the figures itself, which saves a question; `published` asks even then.
bool CudaforgeStrategy::needs_reading() const {
  if (!form_.reader || current_.empty() || failing_ || read_ == current_) return false;
  return agents_.published || evaluations_ + 1 < settings_.budget.evaluations;
}

void CudaforgeStrategy::ask(Step step) {
  step_ = step;
  Json context{{"purpose", to_string(current_.empty() ? Purpose::first
                                     : failing_       ? Purpose::repair
                                                      : Purpose::improve)},
               {"round", rounds_ + 1},
               {"memory", !agents_.published}};
  const bool has_reading = step != Step::read && read_ == current_ && !reading_.empty();
  if (!current_.empty()) {
    context["parent"] = current_;
    // As published, the planner knows the profile only from the profiler.
    context["profile"] = !(agents_.published && has_reading && step == Step::advise);
  }
  if (step == Step::advise && has_reading) context["reading"] = reading_;
  if (step == Step::write && !advice_.empty()) context["advice"] = advice_;
  add_context(context);
  open(Ask{.role = step == Step::read     ? *form_.reader
                   : step == Step::advise ? *form_.adviser
                                          : Role::coder,
           .context = context});
}

// An unusable answer of the reader costs nothing, because the adviser can read the figures itself.
// Any other unusable answer costs the round.
void CudaforgeStrategy::on_unusable(const std::string& reason) {
  if (++unusable_ >= kMostUnusable)
    return open(Finish{.reason = "the model's answers cannot be used: " + reason, .best = best()});
  if (step_ == Step::read) {
    read_ = current_;
    reading_.clear();
    return ask_for_change();
  }
  ++rounds_;
  decide();
}

void CudaforgeStrategy::on_answer(const Proposed& answer) {
  if (answer.outcome == Outcome::unusable) return on_unusable(answer.reason);
  if (answer.outcome != (step_ == Step::write ? Outcome::proposed : Outcome::advised))
    return open(Finish{.reason = answer.reason, .best = best()});
  unusable_ = 0;
  const std::string words = answer.advice.empty() ? std::string() : answer.advice.front();
  if (step_ == Step::read) {
    read_ = current_;
    reading_ = words;
    return ask_for_change();
  }
  if (step_ == Step::advise) {
    advice_ = words;
    return ask(Step::write);
  }
  ++rounds_;
  judge(Evaluate{.candidate = answer.id, .up_to = Rung::timing, .profile = true});
}

void CudaforgeStrategy::on_verdict(const std::string& candidate, const Verdict& verdict) {
  bool correct = verdict.status == Status::correct;
  if (correct) ties_ = ties_after(ties_, best_timing_, verdict.timing);
  bool better =
      correct &&
      (!best_ ||
       (verdict.timing &&
        (!best_timing_ || beats_incumbent(*best_timing_, *verdict.timing, settings_.min_gain))));
  move_on(candidate, correct, better);
  if (better) {
    std::string why =
        best_timing_ && verdict.timing
            ? gain_text(incumbent_ns(*best_timing_, *verdict.timing), verdict.timing->time_ns)
            : "first correct candidate";
    best_ = candidate;
    best_timing_ = verdict.timing;
    return open(Accept{.candidate = candidate, .reason = why});
  }
  if (!correct) return open(Reject{.candidate = candidate, .reason = fault_text(verdict)});
  open(Reject{.candidate = candidate,
              .reason = verdict.timing && best_timing_
                            ? loss_text(incumbent_ns(*best_timing_, *verdict.timing),
                                        verdict.timing->time_ns)
                            : "correct, but no time is known"});
}

// Continues with a failing program to repair it, else with the incumbent. `published` always
// continues with the newest, as in the papers.
void CudaforgeStrategy::move_on(const std::string& candidate, bool correct, bool better) {
  repairs_ = correct ? 0 : repairs_ + 1;
  const bool given_up = !correct && best_ && form_.repairs && repairs_ > *form_.repairs;
  if (agents_.published || better || (!correct && !given_up)) {
    current_ = candidate;
    failing_ = !correct;
    return;
  }
  repairs_ = 0;
  current_ = best();
  failing_ = false;
}

void CudaforgeStrategy::on_set_aside(const std::string& candidate, const std::string& why) {
  open(Reject{.candidate = candidate, .reason = why});
}

}  // namespace cutegen::search
