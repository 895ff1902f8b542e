// SPDX-License-Identifier: Apache-2.0
// Admission of a task: judges its degenerate solutions on fresh sets of every family, at the test
// shapes.
//
// Contract: the sets come from the pool, which gives them to programs afterwards. The Admission
// omits a family whose sets equal `made` at every shape. An Error comes from the source of the sets
// or from the end of the Context.
//
// Example: CG_TRY(Admission a, admission_of(ctx, task, pool));
#pragma once

#include "eval/sets/lazy.h"
#include "eval/sets/truth_pool.h"

namespace cutegen::eval {

// "made", "signed", "heavy", "outliers", "special", "extremes".
const std::vector<std::string>& input_families();
// The shapes at which every program is judged, because they are small enough.
std::vector<const ShapeCase*> test_shapes(const Task& task);
// The families for which the pool makes sets of this shape in advance, and on which admission
// judges degenerate solutions: all of them, or one if programs meet only some at this shape.
std::vector<std::string> stocked_families(const ShapeCase& shape);
Result<Admission> admission_of(const Context& ctx, const Task& task, TruthPool& pool);

}  // namespace cutegen::eval
