// SPDX-License-Identifier: Apache-2.0
// Imports verdicts that another machine wrote (`cutegen eval --batch IN --out OUT`) into a run, as
// new candidates.
//
// Contract: the run must be finished. Each OUT/NAME.json becomes a candidate with the program of
// IN/NAME; its figures have the origin `imported` and name their device. The function
// import_verdicts() refuses an entry if its file is unreadable or has an error instead of a
// verdict, if the program is missing or differs, or if the task differs. A second import of the
// same entry changes nothing.
//
// An imported program can become the incumbent only if its figures come from the run's GPU model,
// if its build ids and its version of the judging rules agree with the run's, and if the program is
// faster than the incumbent. The comparison needs figures of the incumbent from the same GPU model
// and driver, for example from an imported verdict. After an import, the journal contains the
// candidates, and the run's out folder contains the best program.
//
// Example: CG_TRY(auto done, import_verdicts(real_parts(), ctx, *store, "last", {"in", "out"}, o));
#pragma once

#include "engine/run/loop.h"
#include "engine/run/run.h"

namespace cutegen::engine {

struct ImportSettings {
  std::filesystem::path programs, verdicts;  // the folders IN and OUT of the batch
};

struct ImportRow {
  enum class State { added, known, refused };  // known: an earlier call imported the entry
  std::string entry;
  State state = State::added;
  Status verdict = Status::correct;
  // Returns the verdict's status if this call added the entry; otherwise "known" or "refused".
  std::string status() const;
  std::string candidate;  // the candidate's id in the run
  std::string device;
  std::optional<double> time_ns;
  bool best = false;   // whether the candidate became the incumbent
  std::string detail;  // reason for `best`, or why the entry was refused
};

struct Imported {
  std::string run, best;
  std::vector<ImportRow> rows;  // in the order of the imports
  size_t refused() const;
};

Result<Imported> import_verdicts(const Parts& parts, const Context& ctx, store::Store& store,
                                 const std::string& run, const ImportSettings& settings,
                                 RunObserver& observer);
Json to_json(const Imported& imported);
std::string to_text(const Imported& imported);

}  // namespace cutegen::engine
