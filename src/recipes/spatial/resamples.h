// SPDX-License-Identifier: Apache-2.0
// Resampling: operators whose results read the input at places that depend on the position along
// each axis: padding, flips, rolls, interpolation and adaptive pooling.
//
// Contract: resampling_of() returns how the result's axes map to the input's, or nothing for other
// operators, or an unsupported error if it does not cover this use. All axes of the result have a
// map. pads_with_zeros() reads a constant_pad_nd that adds zeros along the axes behind the
// channels: a convolution can then pad instead.
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
  int64_t before = 0;                   // elements that come before the input's first one
  int64_t more = 0;                     // elements that the result has more than the input
  bool aligned = false;                 // the corners of input and result coincide
  double scale = 0;                     // input elements per result; 0: ratio of the sizes
  int64_t size = 0;                     // of the result, if it does not follow the input's
  std::optional<SizeArgument> as = {};  // the tensor's axis that has this size
  int64_t times = 0, over = 1;          // or input size * times / over; times 0: unused
  // The size of the result's axis as a plan expression.
  std::string extent(const std::string& input, const std::string& same) const;
};

struct Resampling {
  std::vector<AxisMap> maps;               // for each axis
  double fill = 0;                         // what lies outside the input
  bool averages = false, highest = false;  // adaptive pooling
};

bool is_resampling(const Node& node);
Result<Resampling> resampling_of(const Graph& graph, const Node& node);

// Lets convolutions pad with the zeros that constant_pad_nd adds before them.
Graph fold_zero_pads(Graph graph);

}  // namespace cutegen::recipes
