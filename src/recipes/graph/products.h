// SPDX-License-Identifier: Apache-2.0
// Products: rewrites all matrix products of a graph as mm, bmm or mv.
//
// Contract: lower_products() returns a graph with the same results in which every product is mm,
// bmm or mv. addmm, baddbmm and similar operators become a product and pointwise operators. A
// product with a diagonal matrix becomes a multiplication of rows or columns by the diagonal's
// elements. triu and tril become where() with a mask, which is a placeholder node of the graph, but
// not a tensor of the task. as_reduction() turns a product with one row or one column into mul and
// sum.
//
// A product that replaces a convolution may have keyword arguments. With kTf32, the product's
// kernel may round the factors to tf32. With kRounded, both factors are floats that are already
// rounded to tf32, and they are contiguous along the depth (the axis that the product sums over).
//
// Example: addmm(bias, x, w) -> add(mm(x, w), bias)
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/graph.h"

namespace cutegen::recipes {

inline constexpr const char* kTf32 = "tf32";
inline constexpr const char* kRounded = "rounded";

// A triangular mask over the last two axes: true if column - row >= diagonal (upper) or column -
// row <= diagonal (lower).
struct Mask {
  bool upper = true;
  int64_t diagonal = 0;
};

struct Lowered {
  Graph graph;
  std::map<std::string, Mask> masks;  // maps the names of placeholders to their masks
};

bool is_product(const Node& node);  // true for mm, bmm and mv
Result<Lowered> lower_products(Graph graph);
// Says which factor of a product is a vector. A vector is a matrix with one row or one column at
// every shape of the task.
enum class Vector { first, second };
Result<Graph> as_reduction(Graph graph, const std::string& product, Vector vector);

}  // namespace cutegen::recipes
