// SPDX-License-Identifier: Apache-2.0
// Contraction: one matrix product and the pointwise work on its result, in the form that the matmul
// kernels need.
//
// Contract: contract() takes a region (the part of a graph that becomes one stage) whose graph
// lower_products() has returned. The factors must be views of the task's tensors, or of values that
// earlier stages keep in scratch. `loads` holds the factors' operands. Its axes are the batches, m,
// n and k. `finish` is the work from the product to the region's outputs. It is a loop nest over
// the outputs' axes that reads the product's result as a leaf. The loops of `finish` are grouped by
// the product's axes. n is the axis along which the first output is contiguous, if there is such an
// axis. After an error, `cut` names the value that an earlier stage would have to keep, or is empty
// if that does not help.
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

using Masks = std::map<std::string, Mask>;  // by the placeholder's name

// A factor with its strides along its rows (m or n), along the depth k, and from batch to batch.
struct Factor {
  Operand operand;
  Stride row, depth;
  std::vector<Stride> batch;  // one for each of Contraction::batch_axes
  // If set, the operand is the packed tensor, and `row` and `depth` count elements of this tensor.
  std::optional<PackedWeights> packed = {};
};

struct Contraction {
  std::string op;  // "aten.mm.default"
  MathMode math_mode = MathMode::fp32;
  bool hopper = false;  // the program may use features that only sm_90a has
  Fused loads, finish;
  std::vector<int> batch_axes;  // axes of `loads` that are batches, outermost first
  int m = -1, n = -1, k = -1;   // axes of `loads`; -1 if the size is 1
  Factor a, b;
  int product = -1;                  // the product's result, a leaf of `finish`
  std::map<int, Mask> masks;         // leaves of `finish` that are triangular masks
  bool turned = false;               // the factors are swapped, and m is the product's last axis
  std::optional<Mask> zero_outside;  // if set, `finish` uses only this triangle of the product
  std::vector<Loop> loops_m, loops_n, loops_batch;  // loops of `finish`, outermost first

  // Further products of A in the same kernel (joined.h). `finish` reads a partner and the first
  // product at the same position. A part has its own work and its own outputs.
  struct Partner {
    Factor b;
    std::string start;    // the first row of b that the product uses
    std::string columns;  // the number of rows of b
    int product = -1;     // the partner's result, a leaf of `finish`
  };
  std::optional<Axis> columns;  // if set, `finish` reads only these columns
  std::string start = "0";      // the first of these columns
  std::vector<Partner> partners;
  std::vector<Contraction> parts;
  bool joined() const { return columns.has_value(); }
  int64_t groups() const { return 1 + int64_t(partners.size()); }  // number of products in a tile

  int64_t size(int axis) const;        // size at the official shape
  std::string extent(int axis) const;  // the same as a plan expression
  int64_t batches() const;
};

// The most rows of a product that reads packed weights. With more rows, it is faster to unpack the
// weights once in an earlier stage.
inline constexpr int64_t kMostPackedRows = 128;

struct ContractionAttempt {
  Result<Contraction> product;
  std::string cut;
};

ContractionAttempt contract(const Task& task, const Region& region, const Masks& masks,
                            const Node& product);
// The steps of contract(). load_factors() reads the factors of a product, extents_of_product()
// returns the sizes of its result, and group_axes_of_output() groups the output's axes by batch, m
// and n.
Result<Contraction> load_factors(const Task& task, const Region& region, const Node& node,
                                 std::string& cut);
std::vector<std::string> extents_of_product(const Contraction& c, const Value& result);
// Returns the axes that a reshape merged into the first axis of the result, if they are known.
std::vector<Axis> parts_of_result(const Contraction& c);
Result<void> group_axes_of_output(Contraction& c, const Shape& whole, bool has_n);
// Returns which factor is a vector at every shape of the task, or nullopt if none is.
std::optional<Vector> vector_factor(const Task& task, const Region& region, const Node& product);

}  // namespace cutegen::recipes
