// SPDX-License-Identifier: Apache-2.0
// Degenerate solutions: results that a program could return without computing the task, such as
// zeros or a copy of an input. cutegen admits a task only if every degenerate solution fails on at
// least one input set.
//
// Contract: admit() judges each degenerate solution on every set by the rule for candidates.
// Admission::passing names the solutions that pass on some sets. If a solution passes on all sets,
// admit() does not admit the task. Admission::precision_tells is false only if a solution of lower
// precision passes on all sets.
//
// A degenerate solution replaces all outputs. Mutated tensors (which a program changes in place)
// have their correct values; only if the task has no outputs, the solution replaces the mutated
// tensors. In addition, for each mutated tensor, one solution leaves this tensor unchanged. A
// solution of lower precision that exactly equals the truth (the result in float64) does not count,
// because the result needs no more precision. If a solution passes on all sets and reads fewer
// tensors than the graph, count_reads() lowers the floor (the least possible time), because a
// correct program need not read more than this solution.
//
// Example: Admission a = admit(task, sets, replayed); if (!a.admitted) warn(a.remark);
#pragma once

#include <functional>
#include <optional>

#include "eval/api/client.h"
#include "eval/sets/input_set.h"

namespace cutegen::eval {

// The values of one output, or nullopt if the solution is impossible, such as a copy of an input of
// another size.
using LazyValues = std::optional<std::vector<double>>;
struct LazyAnswer {
  std::string name;  // for example "zeros" or "copy of x"
  // Returns the solution's values for output number `output` of `set`. The solution "the first
  // answer replayed" returns the result of the set `replayed`, which may be null.
  std::function<LazyValues(const InputSet& set, size_t output, const InputSet* replayed)> values;
  bool exact_is_fine = false;  // do not count a solution that equals the truth exactly
  // The tensors that a program must read to compute the solution; nullopt if unknown.
  std::optional<std::vector<std::string>> reads = std::nullopt;
  std::string state = {};  // the mutated tensor that the solution leaves unchanged, if any
  bool coarser = false;    // the truth in a lower precision than the outputs need
};

std::vector<LazyAnswer> lazy_answers(const Task& task);

// replayed: a set whose truth is the result of the solution "the first answer replayed".
Admission admit(const Task& task, const std::vector<std::shared_ptr<const InputSet>>& sets,
                const std::vector<std::shared_ptr<const InputSet>>& replayed);

// If admission.reads is set, lowers ShapeCase::least_bytes of every shape to the size of the
// tensors in admission.reads and of the outputs.
void count_reads(Task& task, const Admission& admission);

// Returns the significand bits to which a program may round the operands of products in this math
// mode.
int mode_bits(MathMode mode);
// Returns the significand bits that one output permits: 10 (TF32) if the output depends on
// convolutions that may use TF32.
int mode_bits(const Task& task, const TensorInfo& output);
// Returns the significand bits that the most precise floating-point output of the task needs: at
// most mode_bits() and at most the bits of the output's dtype.
int result_bits(const Task& task);

}  // namespace cutegen::eval
