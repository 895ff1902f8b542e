// SPDX-License-Identifier: Apache-2.0
// Admission of a task: judges its degenerate solutions on fresh sets of every family, at the test
// shapes.
//
// Contract: the sets come from the pool, which gives them to programs afterwards. A family whose
// sets equal those of `made` at every shape is not used. An Error means that no set could be made,
// or that the Context ended.
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
// The families for which the pool computes sets of this shape in advance, and on which admission
// judges degenerate solutions: one family if programs are judged on only some at this shape, else
// all.
std::vector<std::string> stocked_families(const ShapeCase& shape);
Result<Admission> admission_of(const Context& ctx, const Task& task, TruthPool& pool);

}  // namespace cutegen::eval
