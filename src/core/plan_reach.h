// SPDX-License-Identifier: Apache-2.0
// PlanReach: into how many blocks, tiles and passes a plan divides the work at one shape.
//
// Contract: plan_reach lists the launches, divisions and bounds of a plan in an order that depends
// on the plan alone, so that two shapes can be compared entry by entry. What cannot be evaluated
// there is nullopt. k(name) is taken from the sources' text, since no module is compiled yet.
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
    int64_t threads = 1;  // of a block
  };
  struct Division {  // ceil_div(size, step) or size / step
    int64_t size = 0, step = 1;
    [[nodiscard]] int64_t tiles() const { return size / step + (size % step > 0 ? 1 : 0); }
    [[nodiscard]] bool has_tail() const { return size % step != 0; }
  };
  struct Bound {  // min(wanted, most): `most` is the smaller one at the official shape
    int64_t a = 0, b = 0;
  };
  std::vector<std::optional<Launch>> launches;
  std::vector<std::optional<Division>> divisions;
  std::vector<std::optional<Bound>> bounds;
  std::vector<std::vector<size_t>> divisions_of;  // of each launch's grid: into `divisions`
};

[[nodiscard]] Result<PlanReach> plan_reach(const KernelProgram& program, const Task& task,
                                           const ShapeCase& shape, const DeviceFacts& device);

// Whole numbers from `least` to `most` in the sources, outside comments, each once and in order:
// tile sizes, threads, thresholds.
[[nodiscard]] std::vector<int64_t> whole_numbers(const KernelProgram& program, int64_t least,
                                                 int64_t most);

}  // namespace cutegen
