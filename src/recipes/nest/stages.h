// SPDX-License-Identifier: Apache-2.0
// Stages: a task's graph as a sequence of loop nests and products, which pass values through
// scratch.
//
// Contract: a graph that fits into one loop nest, or is one product and pointwise work on it, is
// one stage. Otherwise earlier stages compute values and keep them: reductions over other axes,
// reshapes of transposed or reduced values, results and factors of products. A product with a
// vector is a reduction, one with a diagonal matrix is pointwise. Stages are in the order in which
// they must run; the last ones write the task's outputs. Kept values have the dtype that PyTorch
// gives them.
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
// What the stages may use. `hopper`: features of sm_90a, such as the attention kernel. `join`:
// kernels of several products (joined.h). `packed`: products that read packed weights (weights.h).
struct StageOptions {
  bool hopper = false, join = false, packed = false;
};
Result<Stages> make_stages(const Task& task, const StageOptions& options = {});

}  // namespace cutegen::recipes
