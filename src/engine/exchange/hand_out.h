// SPDX-License-Identifier: Apache-2.0
// Candidates of a run as a folder that another machine judges (`cutegen eval --batch`), so that
// proposing and measuring can live on different machines. The verdicts come back by
// engine/exchange/import_verdicts.h.
//
// Contract: the folder is new or empty. It gets the task file and its side file, as they were when
// the run began (a changed one is refused), and a folder for each candidate, named by its id. Taken
// are correct programs, each once, the best one first, then by time.
//
// Example: CG_TRY(HandedOut h, hand_out(view, "proposed", 8));
#pragma once

#include "engine/record/view.h"

namespace cutegen::engine {

struct HandedOut {
  std::filesystem::path task;           // the file in the folder
  std::vector<std::string> candidates;  // ids, in the order of taking
};
Result<HandedOut> hand_out(const RunView& view, const std::filesystem::path& folder, size_t most);

}  // namespace cutegen::engine
