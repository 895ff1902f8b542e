// SPDX-License-Identifier: Apache-2.0
// Coverage: the instructions of compared runs (runs whose outputs the evaluator compared). If the
// evaluator cannot compare the outputs of a run, the run may execute only these instructions.
//
// Contract: add() takes the trace of a run with correct outputs. An instruction is covered in three
// cases:
// - A compared run of the same module executed it.
// - A compared run of the same module executed the same opcode at the same line and column of the
//   source (in another unrolled copy of a loop body).
// - A compared run of another module from the same source executed any opcode at this line and
//   column, because other preprocessor defines may give other opcodes.
// A predicated instruction counts as executed if at least one lane executed it.
//
// Example: coverage.add(report, sources_of(prepared), shape);
//   auto gap = coverage.gap(official, ...);
#pragma once

#include <optional>
#include <set>

#include "eval/rungs/prepare.h"

namespace cutegen::eval {

class Coverage {
 public:
  struct Gap {
    std::string kernel;
    int64_t line = 0;  // source line of the first uncovered instruction; 0 if unknown
    double share = 0;  // uncovered share of all executed warp instructions
  };
  // sources: the source file of each module.
  void add(const device::RunReport& report, const std::vector<std::string>& sources,
           const ShapeCase& shape);
  // Finds instructions of a run that are not covered, except in the launches in `compared`.
  std::optional<Gap> gap(const device::RunReport& report, const std::vector<std::string>& sources,
                         const std::set<size_t>& compared) const;
  // Returns the smallest ratio of executed FLOPs to the task's FLOPs among compared runs, at most
  // 1, or nullopt without compared runs.
  std::optional<double> least_arithmetic() const { return least_arithmetic_; }
  // Returns the largest ratio of executed warp instructions to implied_work() in compared runs.
  double most_instructions() const { return most_instructions_; }

 private:
  using Place = std::pair<int64_t, int64_t>;  // line and column
  struct Executed {
    std::set<int64_t> instructions;
    std::map<Place, std::set<int64_t>> opcodes;
    bool contains(const device::TracedInst& i) const;
  };
  // For each module of one source, the lines and columns that compared runs executed.
  using Places = std::map<size_t, std::set<Place>>;

  bool covers(size_t module, const std::string& source, const std::string& kernel,
              const device::TracedInst& i) const;

  // executed instructions by module and kernel
  std::map<std::pair<size_t, std::string>, Executed> executed_;
  // For each source and kernel, the lines and columns that compared runs executed.
  std::map<std::pair<std::string, std::string>, Places> elsewhere_;
  std::optional<double> least_arithmetic_;
  double most_instructions_ = 1;
};

std::vector<std::string> sources_of(const Prepared& prepared);
// Estimates the fewest warp instructions for a shape, if all lanes are active: one fused
// multiply-add per two FLOPs, and one instruction per tensor element.
double implied_work(const ShapeCase& shape);
// Returns the FLOPs that the launches executed.
double arithmetic_of(const device::RunReport& report);

}  // namespace cutegen::eval
