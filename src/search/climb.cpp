// SPDX-License-Identifier: Apache-2.0
#include "search/climb.h"

#include <fmt/format.h>

namespace cutegen::search {

void ClimbStrategy::on_source(const Json&, const Candidate& source, const Verdict& verdict) {
  incumbent_ = {.id = source.id, .timing = verdict.timing};
  decide();
}

void ClimbStrategy::on_answer(const Proposed& answer) {
  if (answer.outcome != Outcome::proposed)
    return open(Finish{.reason = answer.reason, .best = best()});
  open(Evaluate{.candidate = answer.id});
}

void ClimbStrategy::on_verdict(const std::string& candidate, const Verdict& verdict) {
  counts_ = true;
  judged_ = {.id = candidate, .timing = verdict.timing};
  if (verdict.status == Status::correct) return on_correct(candidate);
  open(Reject{.candidate = candidate, .reason = fault_text(verdict)});
}

void ClimbStrategy::on_correct(const std::string& candidate) {
  if (!incumbent_) return open(Accept{.candidate = candidate, .reason = "first correct candidate"});
  if (!judged_.timing)
    return open(Reject{.candidate = candidate, .reason = "correct, but no time is known"});
  if (!incumbent_->timing)
    return open(Accept{.candidate = candidate, .reason = "first candidate with a time"});
  double before = incumbent_ns(*incumbent_->timing, *judged_.timing);
  double after = judged_.timing->time_ns;
  if (beats_incumbent(*incumbent_->timing, *judged_.timing, settings_.min_gain))
    open(Accept{.candidate = candidate, .reason = gain_text(before, after)});
  else
    open(Reject{.candidate = candidate, .reason = loss_text(before, after)});
}

void ClimbStrategy::on_set_aside(const std::string& candidate, const std::string& why) {
  counts_ = false;
  open(Reject{.candidate = candidate, .reason = why});
}

void ClimbStrategy::on_accepted(const std::string&) {
  incumbent_ = judged_;
  misses_ = 0;
  decide();
}

void ClimbStrategy::on_rejected(const std::string&) {
  if (counts_) ++misses_;
  decide();
}

std::optional<double> ClimbStrategy::best_ns() const {
  return incumbent_ && incumbent_->timing ? std::optional(incumbent_->timing->time_ns)
                                          : std::nullopt;
}

std::optional<std::string> ClimbStrategy::reason_to_stop() const {
  if (auto end = end_of_run(best_ns())) return end;
  if (incumbent_ && misses_ >= settings_.plateau) return "plateau";
  if (!incumbent_ && misses_ > settings_.repairs)
    return fmt::format("nothing correct after {} candidates: {}", misses_, feedback_.headline);
  return std::nullopt;
}

void ClimbStrategy::decide() {
  if (auto reason = reason_to_stop()) return open(Finish{.reason = *reason, .best = best()});
  open(Ask{.role = Role::coder, .context = context()});
}

// Collects the facts that a proposer may need. `purpose` names the kind of answer.
Json ClimbStrategy::context() const {
  Json out;
  out["purpose"] = to_string(incumbent_              ? Purpose::improve
                             : misses_ || set_aside_ ? Purpose::repair
                                                     : Purpose::first);
  if (incumbent_) out["parent"] = incumbent_->id;
  if (auto ns = best_ns()) out["best_ns"] = *ns;
  bounds_.put(out);
  if (!feedback_.headline.empty()) out["headline"] = feedback_.headline;
  if (!feedback_.bottleneck.empty()) out["bottleneck"] = feedback_.bottleneck;
  if (!feedback_.resources.empty()) out["resources"] = feedback_.resources;
  return out;
}

}  // namespace cutegen::search
