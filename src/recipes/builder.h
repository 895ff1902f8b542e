// SPDX-License-Identifier: Apache-2.0
// Builder: walks a graph from its outputs to its tensors and writes the instructions of a Fused.
//
// Contract: value() returns the instruction that computes a value at one position of the loop nest.
// A View says which axis of the nest each axis of the value follows (-1: it does not vary); behind
// a reshape, which shape the whole contiguous value is seen in. Equal (value, view) is built once.
//
// Example: builder.value("relu", {{0, 1}, {}})
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "recipes/fused.h"
#include "recipes/pointwise.h"
#include "recipes/reductions.h"

namespace cutegen::recipes {

struct View {
  std::vector<int> axes;
  std::optional<Shape> reshaped;
};

// Operators that only change where a value is read; that make a tensor of one constant.
[[nodiscard]] bool is_view(const Node& node);
[[nodiscard]] bool is_fill(const Node& node);

class Builder {
 public:
  Builder(const Graph& graph, std::vector<Axis> axes);
  [[nodiscard]] Result<int> value(const std::string& name, const View& view);
  [[nodiscard]] Fused& fused() { return fused_; }

 private:
  [[nodiscard]] Result<int> build(const std::string& name, const Node* node, const View& view);
  [[nodiscard]] Result<int> leaf(const std::string& name, const View& view);
  [[nodiscard]] Result<int> pointwise(const Node& node, const Pointwise& p, const View& view);
  [[nodiscard]] Result<std::optional<int>> through_view(const Node& node, const View& view);
  [[nodiscard]] Result<int> reshape(const Node& node, const std::string& from, const View& view);
  [[nodiscard]] Result<int> reduction(const std::string& name, const Node& node, const Reduction& r,
                                      const View& view);
  [[nodiscard]] Result<int> affine(const Reduction& r, const View& view, int normalized);
  [[nodiscard]] Result<void> check_axes(const Node& node, const Reduction& r,
                                        const View& view) const;
  [[nodiscard]] View broadcast(const Shape& from, const Shape& to, const View& view) const;
  // New instructions.
  int make(const std::string& name, const std::string& code, std::vector<int> inputs,
           bool boolean = false);
  int reduce(const std::string& name, ReduceKind kind, int input);
  int constant(const std::string& code);
  int count() { return constant("count"); }  // elements of a row
  int expanded(const Reduction& r, int x);

  const Graph& graph_;
  Fused fused_;
  std::map<std::string, int> built_;
};

}  // namespace cutegen::recipes
