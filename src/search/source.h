// SPDX-License-Identifier: Apache-2.0
// SourceKernel: evaluates the user's kernel at the start of a run whose task is a CUDA kernel.
//
// Contract: first() returns a question for the kernel's program. The functions answered() and
// judged() receive the outcome of the last action and return the next action. If the kernel is not
// correct, or the evaluator aborts all attempts to evaluate it, SourceKernel rejects it, and
// finish() ends the run. If the kernel computes wrong values while the run uses tests that the
// model proposed, SourceKernel drops these tests and evaluates it again.
//
// Example: SourceKernel source(task, {}); open(source.first());
#pragma once

#include "search/strategy.h"

namespace cutegen::search {

class SourceKernel {
 public:
  SourceKernel(Json task, std::vector<TestCase> tests)
      : task_(std::move(task)), tests_(std::move(tests)) {}
  static Action first() {
    return Ask{.role = Role::source, .context = {{"purpose", to_string(Purpose::first)}}};
  }
  // `candidate` is empty if the answer contained no valid program.
  Action answered(std::optional<Candidate> candidate, const std::string& reason);
  // `verdict` is empty if the evaluator aborted the evaluation.
  Action judged(std::optional<Verdict> verdict, const std::string& why);
  // Returns whether the kernel is correct, so that the strategy can continue from it.
  bool holds() const { return verdict_ && verdict_->status == Status::correct; }
  Action finish() const;

  const Json& task() const { return task_; }
  const Candidate& candidate() const { return *candidate_; }
  const Verdict& verdict() const { return *verdict_; }
  const std::vector<TestCase>& tests() const { return tests_; }  // the model's tests still in use

 private:
  Json task_;  // the data of the event `task`
  std::optional<Candidate> candidate_;
  std::optional<Verdict> verdict_;
  std::string why_;
  std::vector<TestCase> tests_;
  std::string dropped_;  // how the kernel failed in the dropped tests
};

}  // namespace cutegen::search
