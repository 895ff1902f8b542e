// SPDX-License-Identifier: Apache-2.0
// Admission of a task: judges degenerate solutions (zeros, a copy of an input, ...) on fresh input
// sets of every family (input distribution), at the test shapes.
//
// Contract: the input sets come from the TruthPool, and the evaluator judges programs on the same
// sets later. If the module raises an exception at a test shape that is not timed, admission_of()
// removes the shape from the task and adds a note that names the shape and the exception, as long
// as another test shape remains. The family `made` has inputs from the task's get_inputs(). If a
// family has the same sets as `made` at every shape, Admission::families omits this family. The
// result is an Error if no set could be computed, or if the Context was cancelled or timed out.
//
// Example: Task task = ...; CG_TRY(Admission a, admission_of(ctx, task, pool));
#pragma once

#include "eval/sets/lazy.h"
#include "eval/sets/truth_pool.h"

namespace cutegen::eval {

// Returns the names "made", "signed", "heavy", "outliers", "special" and "extremes".
const std::vector<std::string>& input_families();
// Returns the shapes at which the evaluator judges every program, without large timed shapes.
std::vector<const ShapeCase*> test_shapes(const Task& task);
// Returns the families for which the TruthPool computes input sets of this shape in advance, and on
// which admission judges degenerate solutions. These are all families or, if the evaluator judges
// programs only on some families at this shape, one family.
std::vector<std::string> stocked_families(const ShapeCase& shape);
Result<Admission> admission_of(const Context& ctx, Task& task, TruthPool& pool);

}  // namespace cutegen::eval
