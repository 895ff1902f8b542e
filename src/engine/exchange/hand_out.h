// SPDX-License-Identifier: Apache-2.0
// Writes candidates of a run to a folder, so that another machine can judge them with `cutegen eval
// --batch`. To import the verdicts, use engine/exchange/import_verdicts.h.
//
// Contract: the folder must be new or empty. The function hand_out() writes the task file and its
// side file, which must not have changed since the run began. For each candidate, it writes a
// folder with the candidate's id as its name. From all correct and distinct programs, it selects at
// most `most`: the best program, then the other programs by time.
//
// Example: CG_TRY(HandedOut h, hand_out(view, "proposed", 8));
#pragma once

#include "engine/record/view.h"

namespace cutegen::engine {

struct HandedOut {
  std::filesystem::path task;           // path of the task file in the folder
  std::vector<std::string> candidates;  // ids, best first
};
Result<HandedOut> hand_out(const RunView& view, const std::filesystem::path& folder, size_t most);

}  // namespace cutegen::engine
