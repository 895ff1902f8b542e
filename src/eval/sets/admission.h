// SPDX-License-Identifier: Apache-2.0
// Admission of a task: judges degenerate solutions (zeros, a copy of an input, ...) on fresh input
// sets of every family (input distribution), at the test shapes.
//
// Contract: the sets come from the pool, and programs are judged on them later. If the sets of a
// family equal those of `made` at every shape, Admission::families omits this family. An Error
// means that no set could be computed, or that the Context was cancelled or timed out.
//
// Example: CG_TRY(Admission a, admission_of(ctx, task, pool));
#pragma once

#include "eval/sets/lazy.h"
#include "eval/sets/truth_pool.h"

namespace cutegen::eval {

// Returns "made", "signed", "heavy", "outliers", "special", "extremes".
const std::vector<std::string>& input_families();
// Returns the shapes at which every program is judged. Large timed shapes are not among them.
std::vector<const ShapeCase*> test_shapes(const Task& task);
// Returns the families for which the pool computes sets of this shape in advance, and on which
// admission judges degenerate solutions: all families or, if programs are judged only on some
// families at this shape, a single family.
std::vector<std::string> stocked_families(const ShapeCase& shape);
Result<Admission> admission_of(const Context& ctx, const Task& task, TruthPool& pool);

}  // namespace cutegen::eval
