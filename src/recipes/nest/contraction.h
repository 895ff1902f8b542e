// SPDX-License-Identifier: Apache-2.0
// Contraction: one matrix product and the pointwise work on its result, in the form that the matmul
// kernels need.
//
// Contract: contract() takes a region (the part of a graph that becomes one stage). The region's
// graph must come from lower_products() (graph/products.h). The product's factors must be views of
// the task's tensors, or of values that earlier stages store in scratch memory. `loads` has the
// operands of both factors; its axes are the batches, m, n and k. `finish` is the work from the
// product to the region's outputs. `finish` is a loop nest over the outputs' axes, in which one
// instruction (a leaf) reads the product's result. The loops are grouped by batches, m and n. If
// the first output is contiguous along an axis, this axis is n. After an error, `cut` names the
// value that an earlier stage would have to store, or is empty if that would not help.
//
// Example: relu(x @ w.T + bias): a = x, b = w (both contiguous along k), finish: relu(product +
// bias)
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "recipes/graph/products.h"
#include "recipes/graph/weights.h"
#include "recipes/nest/nest.h"

namespace cutegen::recipes {

using Masks = std::map<std::string, Mask>;  // maps the names of placeholders to their masks

// A factor with its strides along its rows (m or n), along the depth k, and from batch to batch.
struct Factor {
  Operand operand;
  Stride row, depth;
  std::vector<Stride> batch;  // by index in Contraction::batch_axes
  // If set, the operand is a tensor of packed weights, and `row` and `depth` count its elements.
  std::optional<PackedWeights> packed = {};
};

struct Contraction {
  std::string op;  // "aten.mm.default"
  MathMode math_mode = MathMode::fp32;
  bool hopper = false;   // the program may use features of sm_90a
  bool rounded = false;  // both factors are floats that an earlier stage has rounded to tf32
  Fused loads, finish;
  std::vector<int> batch_axes;  // batch axes of `loads`, outermost first
  int m = -1, n = -1, k = -1;   // axes of `loads`; -1 if the size is 1
  Factor a, b;
  int product = -1;           // leaf of `finish` that reads the product's result
  std::map<int, Mask> masks;  // leaves of `finish` that read triangular masks
  bool turned = false;  // contract() swapped the factors, so that m is the product's last axis
  std::optional<Mask> zero_outside;  // `finish` takes results outside this triangle as zero
  std::vector<Loop> loops_m, loops_n, loops_batch;  // loops of `finish`, outermost first

  // A joined kernel (joined.h) computes several products of A. `finish` reads the first product and
  // the `partners` at the same position. Each Contraction in `parts` has its own outputs and its
  // own `finish`.
  struct Partner {
    Factor b;
    std::string start;    // first row of b that the product uses
    std::string columns;  // how many rows of b the product uses
    int product = -1;     // leaf of `finish` with the partner's result
  };
  std::optional<Axis> columns;  // columns of the product that `finish` reads
  std::string start = "0";      // first of `columns`
  std::vector<Partner> partners;
  std::vector<Contraction> parts;
  bool joined() const { return columns.has_value(); }
  int64_t groups() const { return 1 + int64_t(partners.size()); }  // products in a tile

  int64_t size(int axis) const;        // size in the task file
  std::string extent(int axis) const;  // plan expression
  int64_t batches() const;
};

// The maximum number of rows of a product that reads packed weights. For more rows, a program is
// faster if an earlier stage unpacks the weights once.
inline constexpr int64_t kMostPackedRows = 128;

struct ContractionAttempt {
  Result<Contraction> product;
  std::string cut;
};

ContractionAttempt contract(const Task& task, const Region& region, const Masks& masks,
                            const Node& product);
// The steps of contract(): load_factors() reads the factors of a product, extents_of_product()
// returns the sizes of the product's result, and group_axes_of_output() groups the output's axes by
// batch, m and n.
Result<Contraction> load_factors(const Task& task, const Region& region, const Node& node,
                                 std::string& cut);
std::vector<std::string> extents_of_product(const Contraction& c, const Value& result);
// An axis of the product's result may consist of several axes that a reshape merged. Returns these
// axes for each axis of the result, as far as contract() knows them.
MergedAxes parts_of_result(const Contraction& c);
Result<void> group_axes_of_output(Contraction& c, const Shape& whole, bool has_n);
// Returns which factor is a vector at every shape of the task, or nullopt if neither is.
std::optional<Vector> vector_factor(const Task& task, const Region& region, const Node& product);

}  // namespace cutegen::recipes
