// SPDX-License-Identifier: Apache-2.0
// Decides how accurate the arithmetic of a kernel has to be.
//
// Contract: needed_accuracy() requires sums that compensate for rounding errors, unless every
// result has 16 or 8 bits and rows are short: for short rows, a tree of float32 additions is far
// more accurate than a 16-bit dtype. needed_accuracy() allows fast functions if every result has 16
// bits and the task's math mode is bf16 or fp16, if every result has 8 bits, or after a convolution
// in tf32.
//
// relaxed() replaces functions by cheaper ones as far as `accuracy` allows. In every math mode,
// relaxed() also replaces the division of a row's elements by one value of the row (such as its
// sum) by a multiplication with the reciprocal. If the kernel rounds the result to an integer or to
// 8 bits, a correction makes the multiplication round exactly like the division.
//
// Example: needed_accuracy(task, fused).plain_sums  // true: bf16 layer norm of rows of 8192
#pragma once

#include "core/task.h"
#include "recipes/fuse/fused.h"

namespace cutegen::recipes {

struct Accuracy {
  bool plain_sums = false;      // sums need not compensate for rounding errors
  bool fast_functions = false;  // functions and divisions may lose a few bits of float32
};
Accuracy needed_accuracy(const Task& task, const Fused& fused);

Fused relaxed(const Accuracy& accuracy, Fused fused);

// Returns whether the instruction computes exp(x), with the accurate or the fast function.
bool is_exponential(const Inst& inst);

}  // namespace cutegen::recipes
