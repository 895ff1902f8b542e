// SPDX-License-Identifier: Apache-2.0
// Convolutions with few channels per group, in strips of neighbouring results
// (kernels/windows/strips.cu), as part of the windows recipe.
//
// Contract: strips_apply() returns whether the kernel can compute `fused`, a part of the task's
// graph. The kernel supports ordinary convolutions with several groups, or with one input channel
// per group. The convolution must have at most eight input channels per group, and a kernel size
// below 8 along each axis. The kernel runs on the CUDA cores of every GPU and multiplies in
// float32. A thread computes `strip` neighbouring results in each of `strip_rows` rows, for up to
// four output channels. strips_safe() returns `strip` 0 if rows of the input do not consist of
// vectors of at least four bytes; the program then uses another kernel.
//
// Example: if (strips_apply(fused)) params.update(strips_safe(fused));
#pragma once

#include "recipes/text/parameter.h"
#include "recipes/text/program_part.h"

namespace cutegen::recipes {

bool strips_apply(const Fused& fused);
std::vector<RecipeParameter> strips_parameters(const Fused& fused);
Json strips_safe(const Fused& fused);
bool strips_legal(const Fused& fused, const Json& params);
ProgramPart strips_part(const Task& task, const Fused& fused, const Json& params,
                        const Label& label);

// The text and the plan that kernels share if their threads finish strips (Tail::By::strip).
// `depth` is the indentation of the statements for one result. If `each` is true, a thread computes
// several output channels, and the statements read the values of each channel `first + m`.
struct StripsStyle {
  bool each = true;
  int depth = 10;
};
std::map<std::string, std::string> strips_text(const Task& task, const Fused& fused,
                                               const Label& label, const StripsStyle& style,
                                               Json& args);
// Adds the plan's macros for the number of elements of a load (`vector` or 1), and for whether
// strips of results are whole vectors.
void set_vectors(ProgramPart& part, const Fused& fused, const Label& label, int64_t vector,
                 int64_t strip);
// Requires that the filter has its size in the task file.
void require_filter(ProgramPart& part, const Fused& fused);

// Returns whether the parameters select the kernel.
inline bool by_strips(const Json& params) {
  return params.value("strip", 0) > 0;
}

}  // namespace cutegen::recipes
