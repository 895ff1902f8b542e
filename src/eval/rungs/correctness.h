// SPDX-License-Identifier: Apache-2.0
// The rung correctness: runs every test shape with each input family on secret sets, in fresh
// memory.
//
// Contract: stops at the first wrong set. The first set of each shape runs twice with different
// poison, which reveals reads of unwritten memory. Long and derived shapes run once on two families
// (eval/rungs/derive_shapes.h). If the runner dies, the program runs once more, alone, before it is
// blamed. On a GPU, a large official shape comes last, in shared memory
// (eval/rungs/gpu_correctness.h). There, a simulator of the same model also runs the first set,
// because it sees races, undefined values and dependence on order, which a GPU rarely shows. If the
// simulator cannot run the program, only the GPU judges it.
//
// Example: CG_TRY(RungEnd end, check_correctness(evaluation, id, record));
#pragma once

#include <map>

#include "eval/rungs/coverage.h"
#include "eval/rungs/prepare.h"
#include "eval/sets/gpu_set.h"

namespace cutegen::eval {

struct CorrectnessRecord {
  int sets_judged = 0;
  std::optional<Compat> compat;
  std::optional<Accuracy> accuracy;
  std::vector<std::string> marks, skipped;
  // On a GPU: the first set of each large timed shape, by the shape's name.
  std::map<std::string, GpuSetPtr> official = {};
  Coverage coverage;  // on a simulator: the instructions that correct runs executed
};

// Reloads modules that have variables, so that the variables have their initial values.
Result<void> reload(const Context& ctx, const Services& services, const Prepared& prepared);
// Judges the program by the outcome of a run, before values are compared.
RungEnd end_of(const RunnerOutcome& outcome, const std::string& shape, bool on_gpu);
RungEnd end_of_mismatches(std::vector<Mismatch> mismatches);

Result<RungEnd> check_correctness(const Evaluation& e, const std::string& program_id,
                                  CorrectnessRecord& record);

}  // namespace cutegen::eval
