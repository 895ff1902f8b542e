// SPDX-License-Identifier: Apache-2.0
// Products: brings the matrix products of a graph into one form before fusing.
//
// Contract: lower_products() returns an equal graph in which every product is mm, bmm or mv. addmm
// and its relatives become a product and pointwise work. A product with a diagonal matrix becomes a
// scaled copy. triu and tril become where() over a mask. The mask is a placeholder of the graph,
// but not a tensor of the task. as_reduction() turns a product with one row or one column into mul
// and sum.
//
// Example: addmm(bias, x, w) -> add(mm(x, w), bias)
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/graph.h"

namespace cutegen::recipes {

// A mask over the last two axes: true for column - row >= diagonal (upper) or <= diagonal (lower).
struct Mask {
  bool upper = true;
  int64_t diagonal = 0;
};

struct Lowered {
  Graph graph;
  std::map<std::string, Mask> masks;  // by placeholder
};

bool is_product(const Node& node);  // mm, bmm, mv
Result<Lowered> lower_products(Graph graph);
// Which factor is a vector: a matrix with one row or one column at every shape of the task.
enum class Vector { first, second };
Result<Graph> as_reduction(Graph graph, const std::string& product, Vector vector);

}  // namespace cutegen::recipes
