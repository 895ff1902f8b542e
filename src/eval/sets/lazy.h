// SPDX-License-Identifier: Apache-2.0
// Degenerate solutions: what a program could return without computing the task. A task is admitted
// only if every one of them fails somewhere.
// Contract: admit() judges each degenerate solution on every set by the rule for candidates.
// `passing` names the solutions that pass on some sets. If one passes on all sets, admit() does not
// admit the task. A solution replaces all outputs and leaves mutated tensors correct; without
// outputs, it replaces the mutated tensors. One more solution per mutated tensor leaves that tensor
// unchanged. A solution of lower precision does not count if it equals the truth exactly, because
// then the output simply has few digits. If a solution that passes on all sets reads fewer tensors
// than the graph, it lowers the floor, because a correct program need not read more either
// (count_reads).
//
// Example: Admission a = admit(task, sets, replayed); if (!a.admitted) warn(a.remark);
#pragma once

#include <functional>
#include <optional>

#include "eval/api/client.h"
#include "eval/sets/input_set.h"

namespace cutegen::eval {

// The values of one output; nothing if the solution does not exist (a copy of another size).
using LazyValues = std::optional<std::vector<double>>;
struct LazyAnswer {
  std::string name;  // "zeros", "copy of x"
  // Returns the values for output number `output` of `set`. replayed: the set of the official
  // family whose result a replay returns, or null.
  std::function<LazyValues(const InputSet& set, size_t output, const InputSet* replayed)> values;
  bool exact_is_fine = false;  // skip the solution if it equals the truth everywhere
  // The tensors that a program must read to return these values, if that is known.
  std::optional<std::vector<std::string>> reads = std::nullopt;
  std::string state = {};  // if not empty: the only mutated tensor that the solution gets wrong
};

std::vector<LazyAnswer> lazy_answers(const Task& task);

// replayed[shape name]: the set whose truth the solution "the first answer replayed" returns.
Admission admit(const Task& task, const std::vector<std::shared_ptr<const InputSet>>& sets,
                const std::vector<std::shared_ptr<const InputSet>>& replayed);

// If `admission.reads` is set, lowers the least bytes of every shape to these tensors and the
// outputs.
void count_reads(Task& task, const Admission& admission);

// The significand bits to which a program may round the operands of products in a math mode.
int mode_bits(MathMode mode);
// For one output: 10 if the convolutions that it depends on may use TF32.
int mode_bits(const Task& task, const TensorInfo& output);
// The largest number of significand bits that a floating output of the task needs and can hold.
int result_bits(const Task& task);

}  // namespace cutegen::eval
