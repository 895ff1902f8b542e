// SPDX-License-Identifier: Apache-2.0
// LinearSum: moves a sum or mean through linear work, down to a product or a convolution.
//
// Contract: of() returns the sum or mean of a value over `axes`, which keep size 1, as nodes that
// the editor has added. It returns nothing if the value is not linear in a product or convolution,
// or if another node reads a value on the way. Constant factors must lie between 2^-16 and 2^16:
// they go to the pre-summed operand, so that no intermediate value is larger than the graph's own.
//
// Example: sum(x @ w / 2 + b, 1) -> x . (sum(w, 1) / 2) + sum(b)
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "recipes/algebra/editor.h"

namespace cutegen::recipes {

// A factor that applies to every result: a number, or a tensor with one element.
struct Factor1 {
  Json by;
  bool divides = false;
};
using Factors = std::vector<Factor1>;

class LinearSum {
 public:
  // Returns the sum or mean of the node's result, multiplied by the factors, or nothing.
  using Base = std::function<std::optional<std::string>(
      const LinearSum&, const Node& node, const std::vector<int>& axes, const Factors& factors)>;
  LinearSum(Editor& edit, bool mean, Base base)
      : edit_(edit), mean_(mean), base_(std::move(base)) {}

  std::optional<std::string> of(const std::string& value, const std::vector<int>& axes,
                                const Factors& factors = {}) const;
  // The sum or mean of a value itself, without looking at the node that computes it.
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
