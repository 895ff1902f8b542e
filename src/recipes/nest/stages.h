// SPDX-License-Identifier: Apache-2.0
// Stages: a task's graph as loop nests and products, one after the other, with values kept in
// scratch.
//
// Contract: one stage where the graph fits into one loop nest, or is one product and pointwise work
// on it. Else the graph is cut at values that an earlier stage computes and keeps (reductions over
// other axes, reshapes of what has been transposed or reduced, results and factors of products). A
// product with a vector is a reduction, one with a diagonal matrix is pointwise. Stages are in the
// order in which they must run; the last one writes the task's outputs. Kept values have the dtype
// that PyTorch gives them.
//
// Example: softmax(relu(x @ w), 1) -> a product that keeps relu(product), a softmax of its rows
#pragma once

#include <variant>

#include "recipes/nest/attended.h"
#include "recipes/nest/contraction.h"

namespace cutegen::recipes {

struct Scratch {
  std::string name;  // identifier in plans and kernels
  DType dtype = DType::f32;
  std::vector<std::string> extents;
};

using Stage = std::variant<Fused, Contraction, Attention>;

struct Stages {
  std::vector<Stage> list;
  std::vector<Scratch> scratch;
};

const std::vector<FusedOutput>& outputs_of(const Stage& stage);
// `hopper`: the program may use what only sm_90a has, such as the attention kernel.
Result<Stages> make_stages(const Task& task, bool hopper = false);

}  // namespace cutegen::recipes
