// SPDX-License-Identifier: Apache-2.0
// Reducing ATen operators: their input, axes and result.
//
// Contract: find_reduction reads the operator's arguments. It returns nothing if the operator does
// not reduce, and an unsupported error for a use that it does not cover. Axes are normalised and
// sorted. A scan counts as a reduction along its axis whose result has the input's shape.
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
  std::string input;      // value name
  Shape shape;            // of the input
  std::vector<int> axes;  // reduced
  bool keepdim = false;
  bool elementwise = false;  // the result has the input's shape (softmax, norms)
  double parameter = 0;      // order of a vector norm, correction of a variance, eps of a norm
  std::vector<std::optional<std::string>> affine;  // weight, bias of a norm
  std::optional<std::string> index;                // pick: the position of the wanted element
  std::optional<Scan> scan;                        // base "scan"
};

Result<std::optional<Reduction>> find_reduction(const Graph& graph, const Node& node);

}  // namespace cutegen::recipes
