// SPDX-License-Identifier: Apache-2.0
// The scan recipe: cumulative sums, products, maxima and minima, with pointwise operators before
// and after them.
//
// Contract: the recipe applies to a loop nest (fuse/fused.h) with scans. The kernel reads and
// writes each element once. If the scanned axis is innermost, a CTA or a warp processes a row tile
// by tile (cutegen/scan.cuh). Otherwise, a CTA processes neighbouring columns, and several threads
// share each column. If the parameter `parts` is above 1, several CTAs share a row. A first kernel
// then computes the total of each CTA's part, so the program reads the elements twice.
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
