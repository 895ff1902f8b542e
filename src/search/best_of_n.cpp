// SPDX-License-Identifier: Apache-2.0
#include "search/best_of_n.h"

namespace cutegen::search {

void BestOfN::on_source(const Json&, const Candidate& source, const Verdict& verdict) {
  best_ = source_kernel_ = source.id;
  best_timing_ = verdict.timing;
  decide();
}

// An unusable answer counts as a sample.
void BestOfN::decide() {
  std::optional<double> ns;
  if (best_timing_) ns = best_timing_->time_ns;
  if (auto reason = end_of_run(ns)) return open(Finish{.reason = *reason, .best = best_});
  if (asked_ >= settings_.budget.evaluations)
    return open(Finish{.reason = "all samples are drawn", .best = best_});
  const bool first = source_kernel_.empty();
  Json context{{"purpose", to_string(first ? Purpose::first : Purpose::improve)},
               {"sample", ++asked_},
               {"memory", false}};
  if (!first) context["parent"] = source_kernel_;
  open(Ask{.role = Role::coder, .context = std::move(context)});
}

void BestOfN::on_answer(const Proposed& answer) {
  if (answer.outcome == Outcome::unusable) return decide();
  if (answer.outcome != Outcome::proposed)
    return open(Finish{.reason = answer.reason, .best = best_});
  judge(Evaluate{.candidate = answer.id});
}

void BestOfN::on_verdict(const std::string& candidate, const Verdict& verdict) {
  if (verdict.status != Status::correct)
    return open(Reject{.candidate = candidate, .reason = fault_text(verdict)});
  if (best_.empty()) {
    best_ = candidate;
    best_timing_ = verdict.timing;
    return open(Accept{.candidate = candidate, .reason = "first correct candidate"});
  }
  if (!verdict.timing)
    return open(Reject{.candidate = candidate, .reason = "correct, but no time is known"});
  if (best_timing_ && !beats_incumbent(*best_timing_, *verdict.timing, settings_.min_gain))
    return open(Reject{.candidate = candidate,
                       .reason = loss_text(incumbent_ns(*best_timing_, *verdict.timing),
                                           verdict.timing->time_ns)});
  std::string why = best_timing_ ? gain_text(incumbent_ns(*best_timing_, *verdict.timing),
                                             verdict.timing->time_ns)
                                 : "first candidate with a time";
  best_ = candidate;
  best_timing_ = verdict.timing;
  open(Accept{.candidate = candidate, .reason = why});
}

void BestOfN::on_set_aside(const std::string& candidate, const std::string& why) {
  open(Reject{.candidate = candidate, .reason = why});
}

}  // namespace cutegen::search
