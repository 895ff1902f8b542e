// SPDX-License-Identifier: Apache-2.0
// The rung correctness: every test shape x input family, on secret sets, in fresh memory.
//
// Contract: stops at the first set that is wrong. The first set of each shape runs twice, with
// different poison, so that a dependence on memory nobody wrote shows. Long and derived shapes are
// judged on two families, once each (eval/rungs/derive_shapes.h). A runner that dies is tried
// once more, alone, before the program is blamed. On a GPU a large official shape is judged last,
// in shared memory (eval/rungs/official.h), and a simulator of the same model runs the first set
// beside it: it sees races, undefined values and dependence on order, which a GPU rarely shows.
// What the simulator cannot run is left to the GPU.
//
// Example: CG_TRY(RungEnd end, check_correctness(evaluation, id, record));
#pragma once

#include <map>

#include "eval/rungs/coverage.h"
#include "eval/rungs/prepare.h"
#include "eval/sets/official_set.h"

namespace cutegen::eval {

struct CorrectnessRecord {
  int sets_judged = 0;
  std::optional<Compat> compat;
  std::optional<Accuracy> accuracy;
  std::vector<std::string> marks, skipped;
  // Of a GPU: the first set of each large timed shape, by the name of the shape.
  std::map<std::string, OfficialSetPtr> official = {};
  Coverage coverage;  // of a simulator: what runs that were right executed
};

// Modules as they were before any run: variables of their own have their first values.
Result<void> reload(const Context& ctx, const Services& services, const Prepared& prepared);
// What a run's outcome says of the program, before any value is looked at.
RungEnd end_of(const RunnerOutcome& outcome, const std::string& shape, bool on_gpu);
RungEnd end_of_mismatches(std::vector<Mismatch> mismatches);

Result<RungEnd> check_correctness(const Evaluation& e, const std::string& program_id,
                                  CorrectnessRecord& record);

}  // namespace cutegen::eval
