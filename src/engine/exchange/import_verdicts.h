// SPDX-License-Identifier: Apache-2.0
// Verdicts that another machine gave (`cutegen eval --batch IN --out OUT`) as candidates of a run.
//
// Contract: the run has finished. Each OUT/NAME.json becomes a candidate with the program of
// IN/NAME; its figures have the origin `imported` and name the device that they are of. Refused by
// name, while the others go in: a file that cannot be read, an error instead of a verdict, a
// program whose text is not in IN or is another one, a verdict for another task. What the run has
// already is known, so that importing twice adds nothing. An imported program becomes the best one
// only where its figures are of the GPU model that the run is for, policy and build ids agree with
// those of here, and it gains over figures of the same GPU model and driver: of the best program,
// which comes to such figures by being imported itself. The journal, the out folder and the report
// have it then.
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
  enum class State { added, known, refused };  // known: imported before
  std::string entry;
  State state = State::added;
  Status verdict = Status::correct;
  std::string status() const;  // of the verdict, if the row was added; else "known" or "refused"
  std::string candidate;       // its id in the run
  std::string device;
  std::optional<double> time_ns;
  bool best = false;   // it became the best program
  std::string detail;  // why it did or did not, or why it was refused
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
