// SPDX-License-Identifier: Apache-2.0
// Decides how accurate the arithmetic of a kernel has to be.
//
// Contract: needed_accuracy() requires sums that compensate for rounding errors, unless every
// result has 16 or 8 bits and rows are short. In that case, a tree of float32 additions is far more
// accurate than the result's dtype. It allows fast functions if every result has 16 bits and the
// math mode is bf16 or fp16, or if every result has 8 bits.
//
// relaxed() replaces functions by cheaper ones as far as this accuracy allows. In every mode, it
// also replaces a division by a value of the row by a multiplication with the reciprocal. If the
// kernel then rounds the quotient to an integer or to 8 bits, the multiplication includes a
// correction and rounds exactly like a division.
//
// Example: needed_accuracy(task, fused).plain_sums  // true: bf16 layer norm of rows of 8192
#pragma once

#include "core/task.h"
#include "recipes/nest/fused.h"

namespace cutegen::recipes {

struct Accuracy {
  bool plain_sums = false;      // sums need not compensate for rounding errors
  bool fast_functions = false;  // functions and divisions may lose a few bits of float32
};
Accuracy needed_accuracy(const Task& task, const Fused& fused);

Fused relaxed(const Accuracy& accuracy, Fused fused);

// Whether the instruction computes exp(x), with the accurate or the fast function.
bool is_exponential(const Inst& inst);

}  // namespace cutegen::recipes
