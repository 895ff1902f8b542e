// SPDX-License-Identifier: Apache-2.0
// The correctness check: runs a program at every test shape, on secret inputs of each family (input
// distribution), in fresh memory, and compares the outputs with the truth (the result in float64).
//
// Contract: check_correctness() stops at the first input set with wrong outputs. At derived shapes
// (eval/rungs/derive_shapes.h) and shapes with much work, the program runs on only two input
// families. At the largest derived shape and at each shape with all families, the program runs on
// the first set again, with another pattern in unwritten memory, to reveal reads of unwritten
// memory. If the runner process dies, the evaluator runs the program once more, alone; the program
// fails only if the runner dies again.
//
// On a GPU, a large official shape (the sizes in the task file) runs last, in GPU memory that
// evaluator and runner share (eval/rungs/gpu_correctness.h). The simulator also runs the program on
// the first set, because it detects races, undefined values and dependence on the execution order,
// which a GPU rarely shows. If the simulator cannot run the program, the verdict relies on the GPU
// alone.
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
  std::string official_not_compared = {};  // on a GPU: why outputs there were not compared
  // On a GPU: the same for each weighted shape, by its name.
  std::map<std::string, std::string> weighted_not_compared = {};
  // On a GPU: the first input set of each large timed shape, by the name of the shape.
  std::map<std::string, GpuSetPtr> official = {};
  Coverage coverage;  // on a simulator: the instructions that correct runs executed
};

// Loads modules with global variables again, so that the variables have their initial values.
Result<void> reload(const Context& ctx, const Services& services, const Prepared& prepared);
// Converts the outcome of a run to the result of the check, before the comparison of the outputs.
RungEnd end_of(const RunnerOutcome& outcome, const std::string& shape, bool on_gpu);
RungEnd end_of_mismatches(std::vector<Mismatch> mismatches);

Result<RungEnd> check_correctness(const Evaluation& e, const std::string& program_id,
                                  CorrectnessRecord& record);

}  // namespace cutegen::eval
