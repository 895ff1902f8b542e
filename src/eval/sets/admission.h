// SPDX-License-Identifier: Apache-2.0
// Admission of a task: its degenerate solutions judged on fresh sets of every family, at the test
// shapes.
//
// Contract: sets come from the pool, so they serve programs afterwards. A family whose sets are no
// other than `made` at every shape is not among the Admission's families. An error comes from the
// sets' source, or from the end of the Context. Example: CG_TRY(Admission a, admission_of(ctx,
// task, pool));
#pragma once

#include "eval/sets/lazy.h"
#include "eval/sets/truth_pool.h"

namespace cutegen::eval {

// "made", "signed", "heavy", "outliers", "special", "extremes".
const std::vector<std::string>& input_families();
// The shapes small enough for every program to be judged on.
std::vector<const ShapeCase*> test_shapes(const Task& task);
// The families of which sets of this shape are made ahead, and which degenerate solutions are
// judged on: all, or one for long shapes.
std::vector<std::string> stocked_families(const ShapeCase& shape);
Result<Admission> admission_of(const Context& ctx, const Task& task, TruthPool& pool);

}  // namespace cutegen::eval
