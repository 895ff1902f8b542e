// SPDX-License-Identifier: Apache-2.0
// NestSizes: the sizes of a graph's values as expressions of the launch plan, and kernel parameters
// that receive these sizes.
//
// Contract: if a size is not known as an expression, extent_of() returns nullopt, and the functions
// that return a Result call NestWriter::cut_before() with the value that has the size.
//
// Example: auto rows = sizes.extent_of("x", 0);  // "dim(x,0)"
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "recipes/fuse/nest_writer.h"

namespace cutegen::recipes {

class NestSizes {
 public:
  explicit NestSizes(NestWriter& nest) : nest_(nest) {}

  // Returns the size of an axis as a plan expression. `name` is a tensor of the task or a value in
  // scratch memory.
  std::optional<std::string> extent_of(const std::string& name, size_t axis) const;
  // Returns the size of an axis of `name`, which a slice or split of `input` returns. The size of a
  // sliced axis is known if the slice is one of several equal parts.
  std::optional<std::string> slice_extent(const Node& node, const std::string& name,
                                          const std::string& input, size_t axis) const;
  // Returns the size of an axis after a cutegen.shift (graph/decompose.h): the size of the input's
  // axis plus the number of elements that a padding or a repetition adds.
  std::optional<std::string> shifted_extent(const Node& node, size_t axis) const;
  // Replaces "@0", "@1", ... in the expression by the sizes of the value's axes.
  Result<std::string> with_sizes(const std::string& value, std::string expression);

  // Adds a kernel parameter for a size that the plan computes: "0 fc.weight" is the size of axis 0,
  // "-1 x" the number of elements.
  Result<int> size(const std::string& text);
  Result<int> size_of(const SizeArgument& size);
  // Adds a kernel parameter for an expression in which "@" is the size of an axis of the nest.
  int size_along(int axis, const std::string& expression);
  // Returns the name of the kernel parameter that gets the value of a plan expression.
  std::string size_parameter(const std::string& expression);
  // If an argument of the node is a list of sizes, sets the sizes of the nest's axes from the list.
  void show_sizes(const Node& node, const View& view);

 private:
  NestWriter& nest_;
};

// Returns a copy of `size` whose field `tensor` is the argument `tensor`: the name that the launch
// plan uses for the tensor of `size`.
SizeArgument renamed(SizeArgument size, const std::string& tensor);

}  // namespace cutegen::recipes
