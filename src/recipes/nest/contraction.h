// SPDX-License-Identifier: Apache-2.0
// Contraction: one matrix product and the pointwise work on its result, in the form that tile
// kernels need.
//
// Contract: contract() takes a region whose graph has gone through lower_products(). Factors are
// views of the task's tensors or of kept values; the axes of `loads` are the batches, m, n and k.
// `finish` is the work from the product to the region's outputs: a Fused over the outputs' axes,
// grouped by the product's axes, in which the product's result is a leaf. n is the axis along which
// the first output is contiguous, if there is such an axis. After an error, `cut` names the value
// that an earlier stage would have to keep, if that helps.
//
// Example: relu(x @ w.T + bias): a = x, b = w (both along k), finish: relu(product + bias)
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "recipes/graph/products.h"
#include "recipes/graph/weights.h"
#include "recipes/nest/nest.h"

namespace cutegen::recipes {

using Masks = std::map<std::string, Mask>;  // by placeholder

// One factor: how it moves along its rows (m or n), along the depth k, and from batch to batch.
struct Factor {
  Operand operand;
  Stride row, depth;
  std::vector<Stride> batch;  // as Contraction::batch_axes
  // If set, the operand is the packed tensor; `row` and `depth` are strides in its elements.
  std::optional<PackedWeights> packed = {};
};

struct Contraction {
  std::string op;  // "aten.mm.default"
  MathMode math_mode = MathMode::fp32;
  bool hopper = false;  // the program may use what only sm_90a has
  Fused loads, finish;
  std::vector<int> batch_axes;  // axes of `loads` that are batches, outermost first
  int m = -1, n = -1, k = -1;   // axes of `loads`; -1: 1
  Factor a, b;
  int product = -1;                  // leaf of `finish`
  std::map<int, Mask> masks;         // leaves of `finish` that are triangles
  bool turned = false;               // the factors are swapped: m is the product's last axis
  std::optional<Mask> zero_outside;  // if set: only this triangle of the product is used
  std::vector<Loop> loops_m, loops_n, loops_batch;  // loops of `finish`, outermost first

  // Joined products (joined.h). A partner is a further product of A that `finish` reads at the same
  // place. A part is a further product of A with work of its own.
  struct Partner {
    Factor b;
    std::string start;    // of the columns that `finish` reads, among the rows of b
    std::string columns;  // all rows of b
    int product = -1;     // leaf of `finish`
  };
  std::optional<Axis> columns;  // the run of columns of b that `finish` reads; else all
  std::string start = "0";      // where it begins
  std::vector<Partner> partners;
  std::vector<Contraction> parts;
  bool joined() const { return columns.has_value(); }
  int64_t groups() const { return 1 + int64_t(partners.size()); }  // products in a tile

  int64_t size(int axis) const;        // official
  std::string extent(int axis) const;  // plan expression
  int64_t batches() const;
};

// The most rows of a product that reads packed weights. With more, it takes less time to unpack the
// weights once.
inline constexpr int64_t kMostPackedRows = 128;

struct ContractionAttempt {
  Result<Contraction> product;
  std::string cut;
};

ContractionAttempt contract(const Task& task, const Region& region, const Masks& masks,
                            const Node& product);
// Steps of contract(): the factors of a product; the sizes of its result; the output's axes grouped
// by the product's axes: batch, m, n.
Result<Contraction> load_factors(const Task& task, const Region& region, const Node& node,
                                 std::string& cut);
std::vector<std::string> extents_of_product(const Contraction& c, const Value& result);
// The axes that a reshape merged into the first axis of the result, if they are known.
std::vector<Axis> parts_of_result(const Contraction& c);
Result<void> group_axes_of_output(Contraction& c, const Shape& whole, bool has_n);
// The factor that is a vector at every size of the task, if there is one.
std::optional<Vector> vector_factor(const Task& task, const Region& region, const Node& product);

}  // namespace cutegen::recipes
