// SPDX-License-Identifier: Apache-2.0
// Admission of a task: its lazy answers judged on fresh sets of every family, at the test shapes.
//
// Contract: sets come from the pool, so they serve programs afterwards. An error is that of the
// sets' source, or the end of the Context. Example: CG_TRY(Admission a, admission_of(ctx, task,
// pool));
#pragma once

#include "eval/lazy.h"
#include "eval/truth_pool.h"

namespace cutegen {

// "made", "signed", "heavy", "outliers", "special".
[[nodiscard]] const std::vector<std::string>& input_families();
// The shapes small enough for every program to be judged on.
[[nodiscard]] std::vector<const ShapeCase*> test_shapes(const Task& task);
[[nodiscard]] Result<Admission> admission_of(const Context& ctx, const Task& task, TruthPool& pool);

}  // namespace cutegen
