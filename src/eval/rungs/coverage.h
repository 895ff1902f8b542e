// SPDX-License-Identifier: Apache-2.0
// Coverage: the instructions that compared runs executed, to check runs that are not compared.
//
// Contract: add() takes the traces of a run whose outputs were correct. An instruction is covered
// if a compared run of the same module executed it, or executed the same opcode at the same line
// and column of the source (a long loop runs other unrolled copies). It is also covered if a
// compared run of another module of the same source executed its line and column. In another module
// the opcode may differ, because its defines differ. A predicated instruction counts if at least
// one lane executed it.
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
    int64_t line = 0;  // source line of the first instruction; 0: unknown
    double share = 0;  // its share of the warp instructions of all launches
  };
  // sources: the source that each module was compiled from.
  void add(const device::RunReport& report, const std::vector<std::string>& sources,
           const ShapeCase& shape);
  // The instructions of a run that no compared run covers. Ignores the launches in `compared`.
  std::optional<Gap> gap(const device::RunReport& report, const std::vector<std::string>& sources,
                         const std::set<size_t>& compared) const;
  // The smallest ratio of executed arithmetic to the task's FLOPs among compared runs, at most 1;
  // nothing if there were none.
  std::optional<double> least_arithmetic() const { return least_arithmetic_; }
  // The largest ratio of warp instructions to implied_work() among compared runs.
  double most_instructions() const { return most_instructions_; }

 private:
  using Place = std::pair<int64_t, int64_t>;  // line and column
  struct Executed {
    std::set<int64_t> instructions;
    std::map<Place, std::set<int64_t>> opcodes;
    bool contains(const device::TracedInst& i) const;
  };
  // For each module of one source: the places that it has executed.
  using Places = std::map<size_t, std::set<Place>>;

  bool covers(size_t module, const std::string& source, const std::string& kernel,
              const device::TracedInst& i) const;

  std::map<std::pair<size_t, std::string>, Executed> executed_;  // by module and kernel
  // Executed places for each source and kernel.
  std::map<std::pair<std::string, std::string>, Places> elsewhere_;
  std::optional<double> least_arithmetic_;
  double most_instructions_ = 1;
};

std::vector<std::string> sources_of(const Prepared& prepared);
// The fewest warp instructions that a shape needs if all lanes work: one fused multiply-add for two
// FLOPs, and one instruction for each element of a tensor.
double implied_work(const ShapeCase& shape);
// The FLOPs that the launches executed.
double arithmetic_of(const device::RunReport& report);

}  // namespace cutegen::eval
