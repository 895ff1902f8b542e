// SPDX-License-Identifier: Apache-2.0
// Reads the input, the axes and the result of a reducing ATen operator.
//
// Contract: find_reduction() returns nullopt if the operator does not reduce, and an `unsupported`
// error for a use of an operator that find_reduction() does not cover. `axes` is sorted, without
// negative numbers. A scan (scans.h) counts as a reduction along its axis, although its result has
// the input's shape.
//
// Example: aten.mean.dim(x, [-1], True) -> {base "mean", input "x", axes {1}, keepdim}
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/graph.h"
#include "recipes/graph/scans.h"

namespace cutegen::recipes {

struct Reduction {
  std::string base;       // "mean", "_softmax"
  std::string input;      // name of the value to reduce
  Shape shape;            // shape of the input
  std::vector<int> axes;  // the reduced axes
  bool keepdim = false;
  bool elementwise = false;  // the result has the input's shape (softmax, norms)
  double parameter = 0;      // a vector norm's order, a variance's correction or a norm's eps
  std::vector<std::optional<std::string>> affine;  // weight, bias of a norm
  std::optional<std::string> index;  // only for "pick": the value with the positions to read
  std::optional<Scan> scan;          // only for "scan"
};

Result<std::optional<Reduction>> find_reduction(const Graph& graph, const Node& node);

}  // namespace cutegen::recipes
