// SPDX-License-Identifier: Apache-2.0
// SourceKernel: the first step of a run whose task is a CUDA kernel.
//
// Contract: first() asks for the kernel's program. The other functions take the outcome of the last
// action and return the next action. If the kernel is not correct, or its evaluation stays aborted,
// SourceKernel rejects it and ends the run. If it fails on values while proposed tests are in use,
// SourceKernel drops the tests and evaluates it again.
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
  // `candidate` is empty if there was no readable program.
  Action answered(std::optional<Candidate> candidate, const std::string& reason);
  // Without a verdict, the evaluation was aborted.
  Action judged(std::optional<Verdict> verdict, const std::string& why);
  // After the decision: whether the strategy continues from the kernel.
  bool holds() const { return verdict_ && verdict_->status == Status::correct; }
  Action finish() const;

  const Json& task() const { return task_; }
  const Candidate& candidate() const { return *candidate_; }
  const Verdict& verdict() const { return *verdict_; }
  const std::vector<TestCase>& tests() const { return tests_; }  // in use

 private:
  Json task_;  // the data of the event `task`
  std::optional<Candidate> candidate_;
  std::optional<Verdict> verdict_;
  std::string why_;
  std::vector<TestCase> tests_;
  std::string dropped_;  // how the kernel failed on the dropped tests
};

}  // namespace cutegen::search
