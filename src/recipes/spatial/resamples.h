// SPDX-License-Identifier: Apache-2.0
// Resampling: padding, flips, rolls, interpolation and adaptive pooling. These operators compute a
// result from input elements whose positions depend only on the result's position along each axis.
//
// Contract: resampling_of() returns an AxisMap for each axis, which says how positions in the
// result map to positions in the input. If resampling_of() does not cover a use of an operator, the
// error is `unsupported`. fold_zero_pads() removes a constant_pad_nd that adds zeros around the
// image axes before a convolution, and makes the convolution pad with these zeros instead.
//
// Example: aten.reflection_pad1d(x, [2, 3]) -> {keep, keep, {reflect, before 2, more 5}}
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/graph.h"

namespace cutegen::recipes {

enum class Along {
  keep,
  pad,
  reflect,
  nearest_edge,
  wrap,
  flip,
  nearest,
  exact,
  linear,
  cubic,
  adaptive
};

struct AxisMap {
  Along along = Along::keep;
  int64_t before = 0;    // result elements before the input's first element
  int64_t more = 0;      // size of the result minus size of the input
  bool aligned = false;  // PyTorch's align_corners
  double scale = 0;      // input elements per result element; 0: input size / result size
  int64_t size = 0;      // size of the result, if the module sets the size
  std::optional<SizeArgument> as = {};  // tensor axis whose size is `size`, if any
  int64_t times = 0, over = 1;          // if times > 0: size = input size * times / over
  // Returns the size of the result's axis as an expression of the launch plan.
  std::string extent(const std::string& input, const std::string& same) const;
};

struct Resampling {
  std::vector<AxisMap> maps;               // by axis
  double fill = 0;                         // the value of elements outside the input
  bool averages = false, highest = false;  // adaptive average or max pooling
};

bool is_resampling(const Node& node);
Result<Resampling> resampling_of(const Graph& graph, const Node& node);

// Moves the zeros that constant_pad_nd adds before a convolution into the convolution's padding.
Graph fold_zero_pads(Graph graph);

}  // namespace cutegen::recipes
