// SPDX-License-Identifier: Apache-2.0
// Stages: a task's graph as several Fuseds, one after the other, with values kept in scratch.
//
// Contract: one stage where the graph fits into one loop nest. Else the graph is cut at values that
// an earlier stage computes and keeps (reductions over other axes, reshapes of what has been
// transposed or reduced). Stages are in the order in which they must run; the last one writes the
// task's outputs. Kept values have the dtype that PyTorch gives them.
//
// Example: mean(norm(a - b, axis 1)) -> a row reduction that keeps the norms, the mean of them
#pragma once

#include "recipes/nest/fused.h"

namespace cutegen::recipes {

struct Scratch {
  std::string name;  // identifier in plans and kernels
  DType dtype = DType::f32;
  std::vector<std::string> extents;
};

struct Stages {
  std::vector<Fused> list;
  std::vector<Scratch> scratch;
};

Result<Stages> make_stages(const Task& task);
// The same for another graph with the task's outputs, as prepare() gives it.
Result<Stages> make_stages(const Task& task, const Graph& graph);

}  // namespace cutegen::recipes
