// SPDX-License-Identifier: Apache-2.0
// Contraction: a graph with one matrix product, in the form that tile kernels need.
//
// Contract: find_contraction() takes a graph without in-place operators. Factors are views of the
// task's tensors; the axes of `loads` are the batches, m, n and k. `finish` holds what follows the
// product: a Fused over the output's axes, grouped by the product's own axes, with the product as a
// leaf. n is the dimension along which the first output is contiguous, if there is one.
//
// Example: relu(x @ w.T + bias): a = x, b = w (both along k), finish: relu(product + bias)
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "recipes/graph/products.h"
#include "recipes/nest/nest.h"
#include "recipes/nest/stages.h"

namespace cutegen::recipes {

// One factor: how it moves along its rows (m or n), along the depth k, and from batch to batch.
struct Factor {
  Operand operand;
  Stride row, depth;
  std::vector<Stride> batch;  // as Contraction::batch_axes
};

struct Contraction {
  std::string op;  // "aten.mm.default"
  MathMode math_mode = MathMode::fp32;
  bool hopper = false;  // the program may use what only sm_90a has
  Fused loads, finish;
  std::vector<int> batch_axes;  // of `loads`, outermost first
  int m = -1, n = -1, k = -1;   // axes of `loads`; -1: 1
  Factor a, b;
  int product = -1;                                 // leaf of `finish`
  std::map<int, Mask> masks;                        // leaves of `finish` that are triangles
  bool turned = false;                              // m runs along the product's last axis
  std::optional<Mask> zero_outside;                 // the product counts inside this triangle only
  std::vector<Loop> loops_m, loops_n, loops_batch;  // of `finish`, outermost first

  int64_t size(int axis) const;        // official
  std::string extent(int axis) const;  // plan expression
  int64_t batches() const;
};

Result<Contraction> find_contraction(const Task& task, const Lowered& lowered);

// What a task's graph becomes: loop nests, or a matrix product and what follows it. A product with
// a vector is a reduction, one with a diagonal matrix is pointwise.
using Form = std::variant<Stages, Contraction>;
Result<Form> find_form(const Task& task);

}  // namespace cutegen::recipes
