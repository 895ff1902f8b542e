// SPDX-License-Identifier: Apache-2.0
// The scan recipe: cumulative sums, products, maxima and minima with pointwise work around them.
//
// Contract: applies to a Fused with scans. The kernel reads and writes each element once. A CTA, or
// a warp, takes a row tile by tile (cutegen/scan.cuh); if the innermost axis is not the scanned
// one, teams of threads take neighbouring columns. With `parts`, CTAs share a row, and a kernel
// before it computes the totals of the parts, so elements are read twice.
//
// Example: scan_part(task, fused, scan_safe(fused), label)
#pragma once

#include "recipes/text/parameter.h"
#include "recipes/text/program_part.h"

namespace cutegen::recipes {

std::vector<RecipeParameter> scan_parameters(const Fused& fused);
Json scan_safe(const Fused& fused);
bool scan_legal(const Fused& fused, const Json& params);
ProgramPart scan_part(const Task& task, const Fused& fused, const Json& params, const Label& label);

}  // namespace cutegen::recipes
