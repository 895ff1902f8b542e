// SPDX-License-Identifier: Apache-2.0
// Proposer: the interface that answers a strategy's questions. The setting `model` selects the
// implementation: builtin_proposer.h, command_proposer.h or agent_proposer.h.
//
// Contract: an answer depends only on the question and the run so far, so that a replay can repeat
// it. The candidate in an answer has no id yet, because the run loop assigns the ids.
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
  std::string reason;  // why there is no candidate: "nothing left to try", "no recipe: ..."
  std::vector<std::string> advice;  // a planner's advice for each approach, or a judge's advice
  std::vector<TestCase> tests;      // from testers
  bool unusable = false;            // true if the engine could not apply the model's answer
  // One word for each repeated question, which says why the engine asked the model again.
  std::vector<std::string> reasks;
};

class Proposer {
 public:
  virtual ~Proposer() = default;
  virtual Result<Answer> answer(const Context& ctx, const search::Ask& ask, const RunView& run) = 0;
};

// The option --proposer CMD sets the setting `model` to "command:CMD".
inline constexpr const char* kCommandModel = "command:";
inline constexpr const char* kBuiltinModel = "builtin";

// The source of proposals: recipes (kernel templates), a user's command, or a language model.
enum class ProposerKind { builtin, command, model };
ProposerKind proposer_kind(const std::string& model);

// Creates a proposer. `rewrites`: the algebraic rewrites that recipes may use
// (recipes/algebra/rewrites.h).
Result<std::unique_ptr<Proposer>> make_proposer(const std::string& model,
                                                const eval::OpenedTask& task,
                                                const std::string& rewrites = "none");
// Returns an error if the name selects no proposer. Call check_model() before any work starts.
Result<void> check_model(const std::string& model);
Json answer_data(const Answer& answer);
// Asks the proposer. For the role `source`, returns the task's own CUDA kernel instead.
Result<Answer> answer_to(Proposer& proposer, const Context& ctx, const search::Ask& ask,
                         const RunView& run);

}  // namespace cutegen::engine
