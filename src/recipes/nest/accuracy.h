// SPDX-License-Identifier: Apache-2.0
// How accurate the arithmetic of a kernel has to be.
//
// Contract: needed_accuracy() asks for compensated sums unless every result is stored in 16 or 8
// bits and rows are short: then a tree of float32 additions is far more accurate than the result's
// dtype. relaxed() replaces functions by cheaper ones if the task's math mode also rounds to 16
// bits, or if every result has 8. In every mode, it replaces a division by a value of the row by a
// multiplication with the reciprocal. If the quotient is then rounded to an integer or to 8 bits,
// the multiplication is corrected so that it rounds like a division.
//
// Example: needed_accuracy(task, fused).plain_sums  // true: bf16 layer norm of rows of 8192
#pragma once

#include "core/task.h"
#include "recipes/nest/fused.h"

namespace cutegen::recipes {

struct Accuracy {
  bool plain_sums = false;      // sums need not carry the rounding errors of their additions
  bool fast_functions = false;  // exponentials and divisions may lose a few bits of float32
};
Accuracy needed_accuracy(const Task& task, const Fused& fused);

// Returns the same work with cheaper functions, as far as `accuracy` allows them.
Fused relaxed(const Accuracy& accuracy, Fused fused);

// Whether the instruction is exp(x), exact or fast.
bool is_exponential(const Inst& inst);

}  // namespace cutegen::recipes
