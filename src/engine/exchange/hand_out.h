// SPDX-License-Identifier: Apache-2.0
// Writes candidates of a run to a folder, so that another machine can judge them with `cutegen eval
// --batch`. engine/exchange/import_verdicts.h then imports the verdicts.
//
// Contract: the folder must be new or empty. hand_out() writes the task file and its side file,
// which must not have changed since the run began. It also writes a folder for each candidate,
// named by the candidate's id. It writes only correct programs, each once, and at most `most` of
// them: the best program, then the others by time.
//
// Example: CG_TRY(HandedOut h, hand_out(view, "proposed", 8));
#pragma once

#include "engine/record/view.h"

namespace cutegen::engine {

struct HandedOut {
  std::filesystem::path task;           // path of the written task file
  std::vector<std::string> candidates;  // ids, best first
};
Result<HandedOut> hand_out(const RunView& view, const std::filesystem::path& folder, size_t most);

}  // namespace cutegen::engine
