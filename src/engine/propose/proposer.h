// SPDX-License-Identifier: Apache-2.0
// Proposer: answers a strategy's questions. Who answers follows from the model's name:
// builtin_proposer.h, command_proposer.h, agent_proposer.h.
//
// Contract: an answer depends only on the question and the run so far, so that a deterministic
// proposer can be replayed. Its candidate has no id yet; the loop numbers candidates.
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
  std::vector<std::string> advice;  // advice of a planner (one entry for each approach) or a judge
  std::vector<TestCase> tests;      // from testers
  bool unusable = false;            // the model answered, but the engine could not apply the answer
  std::vector<std::string> reasks;  // why the model was asked again, one word each
};

class Proposer {
 public:
  virtual ~Proposer() = default;
  virtual Result<Answer> answer(const Context& ctx, const search::Ask& ask, const RunView& run) = 0;
};

inline constexpr const char* kCommandModel = "command:";  // the model's name before the command
inline constexpr const char* kBuiltinModel = "builtin";

// Who proposes: recipes, a command of the user, or a language model.
enum class ProposerKind { builtin, command, model };
ProposerKind proposer_kind(const std::string& model);

// rewrites: the algebraic rewrites that recipes may use (recipes/algebra/rewrites.h).
Result<std::unique_ptr<Proposer>> make_proposer(const std::string& model,
                                                const eval::OpenedTask& task,
                                                const std::string& rewrites = "none");
// Returns an error if no such model exists, before any work starts.
Result<void> check_model(const std::string& model);
Json answer_data(const Answer& answer);
// Asks the proposer. For the role `source` it asks nobody: the answer is the task's own CUDA
// kernel.
Result<Answer> answer_to(Proposer& proposer, const Context& ctx, const search::Ask& ask,
                         const RunView& run);

}  // namespace cutegen::engine
