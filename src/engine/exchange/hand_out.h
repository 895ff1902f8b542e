// SPDX-License-Identifier: Apache-2.0
// Writes candidates of a run to a folder that another machine judges (`cutegen eval --batch`).
// engine/exchange/import_verdicts.h imports the verdicts.
//
// Contract: the folder must be new or empty. It gets the task file and its side file, which must
// not have changed since the run began, and a folder for each candidate, named by its id. Only
// correct programs are written, each once: the best one first, then by time.
//
// Example: CG_TRY(HandedOut h, hand_out(view, "proposed", 8));
#pragma once

#include "engine/record/view.h"

namespace cutegen::engine {

struct HandedOut {
  std::filesystem::path task;           // the file in the folder
  std::vector<std::string> candidates;  // ids, best first
};
Result<HandedOut> hand_out(const RunView& view, const std::filesystem::path& folder, size_t most);

}  // namespace cutegen::engine
