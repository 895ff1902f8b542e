// SPDX-License-Identifier: Apache-2.0
// PlanReach: the values of a plan's grids, of its divisions of sizes into tiles, and of its min()
// expressions at one shape.
//
// Contract: plan_reach() lists the launches, divisions and bounds (min() expressions) of a plan.
// The order of each list depends only on the plan, so entry i belongs to the same launch or
// expression at every shape. An entry is nullopt if its expression has no value at the shape.
// Because plan_reach() runs before compilation, it reads the constants k(name) that the plan uses
// from the text of the sources.
//
// Example: CG_TRY(PlanReach r, plan_reach(program, task, shape, device)); r.launches[0]->grid[1]
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "core/program.h"

namespace cutegen {

struct PlanReach {
  struct Launch {
    std::array<int64_t, 3> grid{1, 1, 1};
    int64_t threads = 1;  // per block
  };
  struct Division {  // an expression ceil_div(size, step) or size / step in the plan
    int64_t size = 0, step = 1;
    int64_t tiles() const { return size / step + (size % step > 0 ? 1 : 0); }
    bool has_tail() const { return size % step != 0; }
  };
  struct Bound {  // an expression min(a, b) in the plan
    int64_t a = 0, b = 0;
  };
  std::vector<std::optional<Launch>> launches;
  std::vector<std::optional<Division>> divisions;
  std::vector<std::optional<Bound>> bounds;
  // divisions_of[i]: indices of the divisions that occur in the grid of launch i.
  std::vector<std::vector<size_t>> divisions_of;
};

Result<PlanReach> plan_reach(const KernelProgram& program, const Task& task, const ShapeCase& shape,
                             const DeviceFacts& device);

// Returns the integers from `least` to `most` that occur in the sources outside comments, sorted
// and without duplicates. Many of these integers are tile sizes, thread counts or thresholds.
std::vector<int64_t> whole_numbers(const KernelProgram& program, int64_t least, int64_t most);

}  // namespace cutegen
