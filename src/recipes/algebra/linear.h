// SPDX-License-Identifier: Apache-2.0
// LinearSum: moves a sum or mean through linear operators, down to a matrix product or a
// convolution.
//
// Contract: of() appends nodes that compute the sum or mean of a value over `axes`, and returns the
// name of the result, in which these axes have size 1. It returns nullopt if the value is not a
// linear function of a product's or convolution's result, or if a node outside this computation
// reads an intermediate value. Constant factors must lie between 2^-16 and 2^16. The new nodes
// multiply the summed operand (sum(w, 1) in the example) by the constant factors, so that no
// intermediate value is larger than in the original graph.
//
// Example: sum(x @ w / 2 + b, 1) -> x . (sum(w, 1) / 2) + sum(b)
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "recipes/algebra/editor.h"

namespace cutegen::recipes {

// A factor by which the rule multiplies a whole result. `by` is a number, or a tensor with one
// element. If `divides` is set, `by` is a divisor.
struct Factor1 {
  Json by;
  bool divides = false;
};
using Factors = std::vector<Factor1>;

class LinearSum {
 public:
  // Computes the sum or mean of a product's or convolution's result over `axes`, and multiplies the
  // sum or mean by `factors`. Returns the name of this value, or nullopt if the rule does not cover
  // the node.
  using Base = std::function<std::optional<std::string>(
      const LinearSum&, const Node& node, const std::vector<int>& axes, const Factors& factors)>;
  LinearSum(Editor& edit, bool mean, Base base)
      : edit_(edit), mean_(mean), base_(std::move(base)) {}

  std::optional<std::string> of(const std::string& value, const std::vector<int>& axes,
                                const Factors& factors = {}) const;
  // Appends a sum or mean of the value itself, whatever node computes the value.
  std::string direct(const std::string& value, const std::vector<int>& axes) const;
  std::string times(std::string value, const Factors& factors) const;
  Editor& edit() const { return edit_; }
  bool mean() const { return mean_; }

 private:
  using Found = std::optional<std::string>;
  Found through_factor(const Node& node, const std::vector<int>& axes, Factors factors) const;
  Found through_sum(const Node& node, const std::vector<int>& axes, const Factors& factors) const;
  Found through_view(const Node& node, const std::vector<int>& axes, const Factors& factors) const;
  Found term(const Json& json, const Shape& to, const std::vector<int>& axes) const;

  Editor& edit_;
  bool mean_;
  Base base_;
};

}  // namespace cutegen::recipes
