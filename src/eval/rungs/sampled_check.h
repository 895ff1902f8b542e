// SPDX-License-Identifier: Apache-2.0
// Checks a program at a large shape (the official shape, which has the sizes in the task file, or a
// weighted shape) on the simulator, which runs only a sample of its CTAs.
//
// Contract: the inputs repeat an excerpt: a small part of the large shape with known truth, the
// result in float64 (eval/sets/excerpts.h). If CTAs outside the sample cannot affect an output, the
// check compares the written values with the excerpt's truth. If no output can be compared,
// `not_compared` gives the reason. The run must then resemble the compared runs at smaller shapes:
// it must execute only instructions that the compared runs executed, do as much arithmetic per FLOP
// of the task, and write all of the outputs. docs/official_shape.md explains these checks.
//
// Example: SampledCheck c = check_sampled_run(...); if (!c.end.passed) return c.end;
#pragma once

#include "eval/rungs/coverage.h"
#include "eval/rungs/excerpt_memory.h"

namespace cutegen::eval {

struct SampledCheck {
  RungEnd end;               // whether the program passed, or the fault
  std::string not_compared;  // why no value was compared; empty if values were compared
  int64_t elements = 0;      // number of compared elements
  // The result may depend on the sample of blocks, so the caller should run more blocks.
  bool by_sample = false;
  std::vector<std::string> marks;
  // Names the blocks that may behave differently from all blocks that ran, if any.
  std::string blocks_missed;
};

struct CheckedRun {
  const Task& task;
  const std::vector<std::string>& sources;  // the source file of each module
  const ShapeCase& official;                // the large shape
  const device::PlanSteps& steps;
  const device::RunReport& report;
  const ExcerptMemory& memory;
  const Coverage& coverage;
  bool compared_whole = false;  // the correctness check ran the official shape
  // Returns the report of a run in which scratch contains ordinary numbers at first, or nullptr if
  // every block that writes scratch ran.
  std::function<const device::RunReport*()> with_ordinary_scratch = [] { return nullptr; };
};
SampledCheck check_sampled_run(const CheckedRun& run);

// Blocks of one kind have the same control flow. Names the launches in which some kind of block did
// not run, or in which the kinds are unknown. Returns "" if blocks of every kind ran.
std::string blocks_missed(const device::RunReport& report);

// Returns the limit of warp instructions per block: 32 times the instructions that correct runs
// executed for the same work, plus a million.
double most_of_a_block(const ShapeCase& official, const Coverage& coverage, int64_t blocks);

}  // namespace cutegen::eval
