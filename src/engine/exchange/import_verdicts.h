// SPDX-License-Identifier: Apache-2.0
// Imports verdicts from another machine (`cutegen eval --batch IN --out OUT`) as candidates of a
// run.
//
// Contract: the run must be finished. Each OUT/NAME.json becomes a candidate with the program of
// IN/NAME. Its figures have the origin `imported` and name their device. An entry is refused by
// name if its file is unreadable, if it has an error instead of a verdict, if its program is
// missing or differs, or if it belongs to another task. All other entries are imported. Importing
// twice adds nothing. An imported program can become the incumbent if its figures come from the
// run's GPU model and its policy and build ids agree with this run. It must then beat the
// incumbent's figures from the same GPU model and driver. The incumbent has such figures once its
// own verdict is imported. The result is in the journal, the out folder and the report.
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
  enum class State { added, known, refused };  // known: an earlier call imported it
  std::string entry;
  State state = State::added;
  Status verdict = Status::correct;
  // The verdict's status if the row was added; else "known" or "refused".
  std::string status() const;
  std::string candidate;  // the candidate's id in the run
  std::string device;
  std::optional<double> time_ns;
  bool best = false;   // it became the incumbent
  std::string detail;  // why it became the incumbent or not, or why it was refused
};

struct Imported {
  std::string run, best;
  std::vector<ImportRow> rows;  // in the order of importing
  size_t refused() const;
};

Result<Imported> import_verdicts(const Parts& parts, const Context& ctx, store::Store& store,
                                 const std::string& run, const ImportSettings& settings,
                                 RunObserver& observer);
Json to_json(const Imported& imported);
std::string to_text(const Imported& imported);

}  // namespace cutegen::engine
