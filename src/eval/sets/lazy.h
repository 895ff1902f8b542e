// SPDX-License-Identifier: Apache-2.0
// Degenerate solutions: what a program could return without computing the task. A task is admitted
// only if every one of them fails somewhere.
//
// Contract: admit() judges each degenerate solution on every set by the rule for candidates.
// `passing` names the solutions that pass on some sets. If one passes on all sets, admit() does not
// admit the task. A solution replaces all outputs and leaves mutated tensors correct; if there are
// no outputs, it replaces the mutated tensors. For each mutated tensor, one more solution leaves it
// unchanged. A solution of lower precision does not count if it equals the truth exactly, because
// the output has few digits anyway. A passing solution that reads less than the graph lowers the
// floor: a correct program need not read more (count_reads).
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
  // `output` of `set`; `replayed` is another set of the official family, or null.
  std::function<LazyValues(const InputSet& set, size_t output, const InputSet* replayed)> values;
  bool exact_is_fine = false;  // skip the solution if it equals the truth everywhere
  // The tensors that a program must read to return these values, if that is known.
  std::optional<std::vector<std::string>> reads = std::nullopt;
  std::string state = {};  // if not empty: the only mutated tensor that the solution gets wrong
};

std::vector<LazyAnswer> lazy_answers(const Task& task);

// replayed[shape name] is the set whose truth the solution "first answer replayed" returns.
Admission admit(const Task& task, const std::vector<std::shared_ptr<const InputSet>>& sets,
                const std::vector<std::shared_ptr<const InputSet>>& replayed);

// Lowers the least bytes of every shape to the outputs and `admission.reads`, if it has them.
void count_reads(Task& task, const Admission& admission);

// Bits of significand to which a program may round the operands of products in a math mode.
int mode_bits(MathMode mode);
// The same for one output: 10 if its convolutions may be in TF32.
int mode_bits(const Task& task, const TensorInfo& output);
// The most bits that a floating output needs and can hold.
int result_bits(const Task& task);

}  // namespace cutegen::eval
