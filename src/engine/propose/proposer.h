// SPDX-License-Identifier: Apache-2.0
// Proposer: who answers a strategy's question. `builtin` answers with the project's recipes.
//
// Contract: an answer depends on the question and on the run so far only, so that a deterministic
// proposer can be replayed. The candidate in it has no id yet; the loop numbers candidates.
//
// Example: CG_TRY(auto p, make_proposer("builtin", task)); CG_TRY(Answer a, p->answer(ctx, ask,
// run));
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/record/view.h"

namespace cutegen::engine {

struct Answer {
  std::optional<Candidate> candidate;
  std::string reason;               // without a candidate: "nothing left to try", "no recipe: ..."
  std::vector<std::string> advice;  // of planners (one for each approach) and judges
  std::vector<TestCase> tests;      // of testers
  bool unusable = false;            // there was an answer, but nothing can be done with it
  std::vector<std::string> reasks;  // why a model was asked again, one word each
};

class Proposer {
 public:
  virtual ~Proposer() = default;
  virtual Result<Answer> answer(const Context& ctx, const search::Ask& ask, const RunView& run) = 0;
};

// `rewrites`: which algebra recipes may use (recipes/algebra/rewrites.h).
Result<std::unique_ptr<Proposer>> make_proposer(const std::string& model,
                                                const eval::OpenedTask& task,
                                                const std::string& rewrites = "none");
// Error if no such model exists; before any work is done.
Result<void> check_model(const std::string& model);
Json answer_data(const Answer& answer);
// The proposer's answer. The role `source` needs none: its program is the source kernel of a task
// that is a CUDA kernel.
Result<Answer> answer_to(Proposer& proposer, const Context& ctx, const search::Ask& ask,
                         const RunView& run);

}  // namespace cutegen::engine
