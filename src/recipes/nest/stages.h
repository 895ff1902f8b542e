// SPDX-License-Identifier: Apache-2.0
// Stages: divides a task's graph into a sequence of stages. A stage is a loop nest, a matrix
// product or an attention, and passes values to later stages through scratch memory.
//
// Contract: a graph is one stage if it fits into one loop nest, or if it is one product and
// pointwise work on the product's result. If a graph needs several stages, earlier stages store
// values in scratch memory: results of reductions over other axes, reshapes of transposed or
// reduced values, and results and factors of products. A product with a vector becomes a reduction,
// and a product with a diagonal matrix becomes pointwise work. Stages::list has the order in which
// the stages must run, and the last stages write the task's outputs. A value in scratch memory has
// the dtype that it has in PyTorch.
//
// One loop nest for several outputs may need sizes that are equal at the official shape (the shape
// in the task file), but not at every shape that the module accepts. If the sizes are equal at all
// shapes of the task, the plan requires that they are equal. If not, one stage computes the outputs
// at shapes at which the sizes are equal, and other stages compute them at all other shapes
// (Fused::when).
//
// Example: softmax(relu(x @ w), 1) -> a product that keeps relu(product), a softmax of its rows
#pragma once

#include <set>
#include <variant>

#include "recipes/nest/attended.h"
#include "recipes/nest/contraction.h"

namespace cutegen::recipes {

struct Scratch {
  std::string name;  // the value's identifier in plans and kernels
  DType dtype = DType::f32;
  std::vector<std::string> extents;
};

using Stage = std::variant<Fused, Contraction, Attention>;

struct Stages {
  std::vector<Stage> list;
  std::vector<Scratch> scratch;
  std::vector<std::string> demands = {};  // the plan's requirements beside those of the stages
};

const std::vector<FusedOutput>& outputs_of(const Stage& stage);
// What the stages may use: `hopper` allows features of sm_90a, such as the attention kernel; `join`
// allows kernels for several products (joined.h); `packed` allows products that read packed weights
// (graph/weights.h). `products` names the results of those convolutions that matrix products
// compute (spatial/conv_products.h).
struct StageOptions {
  bool hopper = false, join = false, packed = false;
  std::set<std::string> products = {};
};
Result<Stages> make_stages(const Task& task, const StageOptions& options = {});

}  // namespace cutegen::recipes
