// SPDX-License-Identifier: Apache-2.0
#include "search/source.h"

#include <algorithm>

#include "search/machine.h"

namespace cutegen::search {
namespace {

std::optional<Rung> failed_rung(const Verdict& verdict) {
  const auto failed = std::ranges::find(verdict.rungs, RungResult::failed, &RungReport::result);
  return failed != verdict.rungs.end() ? std::optional(failed->rung) : std::nullopt;
}

bool fails_on_values(const Verdict& verdict) {
  return verdict.status != Status::correct && failed_rung(verdict) == Rung::correctness;
}

}  // namespace

Action SourceKernel::answered(std::optional<Candidate> candidate, const std::string& reason) {
  if (!candidate) return Finish{.reason = reason, .best = ""};
  candidate_ = std::move(candidate);
  return Evaluate{
      .candidate = candidate_->id, .up_to = Rung::timing, .profile = profile_is_free(task_)};
}

Action SourceKernel::judged(std::optional<Verdict> verdict, const std::string& why) {
  if (verdict && !tests_.empty() && fails_on_values(*verdict)) {
    tests_.clear();
    dropped_ = why;
    return Evaluate{
        .candidate = candidate_->id, .up_to = Rung::timing, .profile = profile_is_free(task_)};
  }
  verdict_ = std::move(verdict);
  why_ = why;
  if (!holds()) return Reject{.candidate = candidate_->id, .reason = why};
  const std::string unused = "; the proposed tests are not used, because it does not pass them: ";
  return Accept{.candidate = candidate_->id,
                .reason = "the source kernel" + (dropped_.empty() ? "" : unused + dropped_)};
}

Action SourceKernel::finish() const {
  const std::optional<Rung> failed = verdict_ ? failed_rung(*verdict_) : std::nullopt;
  const char* cause = failed && *failed < Rung::correctness
                          ? "the source kernel does not compile or load: "
                          : "the source kernel does not agree with its reference: ";
  return Finish{.reason = cause + (verdict_ ? verdict_->feedback.headline : why_), .best = ""};
}

}  // namespace cutegen::search
