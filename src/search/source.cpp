// SPDX-License-Identifier: Apache-2.0
#include "search/source.h"

#include "search/machine.h"

namespace cutegen::search {

Action SourceKernel::answered(std::optional<Candidate> candidate, const std::string& reason) {
  if (!candidate) return Finish{reason, ""};
  candidate_ = std::move(candidate);
  return Evaluate{candidate_->id, Rung::timing, profile_is_free(task_)};
}

Action SourceKernel::judged(std::optional<Verdict> verdict, const std::string& why) {
  verdict_ = std::move(verdict);
  why_ = why;
  if (holds()) return Accept{candidate_->id, "the source kernel"};
  return Reject{candidate_->id, why};
}

Action SourceKernel::finish() const {
  return Finish{"the source kernel does not agree with its reference: " +
                    (verdict_ ? verdict_->feedback.headline : why_),
                ""};
}

}  // namespace cutegen::search
