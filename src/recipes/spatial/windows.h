// SPDX-License-Identifier: Apache-2.0
// Windows: a common form of convolutions and pooling, in which each result reads a window of an
// operand.
//
// Contract: find_window() reads aten.convolution and max and average pooling over one to three axes
// after the batch and the channels, and resampling (resamples.h). It returns nothing for other
// operators, and an unsupported error if it does not cover this use. A Window has no bias:
// decompose() adds it.
//
// Example: aten.convolution(x, w, None, [2, 2], [1, 1], [1, 1], False, [0, 0], 1) -> stride {2, 2}
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/graph.h"
#include "recipes/spatial/resamples.h"

namespace cutegen::recipes {

enum class WindowKind { convolution, transposed, max, average, resample };

struct Window {
  WindowKind kind = WindowKind::convolution;
  std::string op, input, weight;  // values; pooling has no weight
  Shape kernel, stride, padding, dilation, output_padding;
  Shape behind = {};  // how much more padding comes after each axis than before it; empty: none
  Resampling resampling = {};
  int64_t groups = 1, divisor = 0;  // divisor 0: the number of elements in the window
  bool ceil = false, include_pad = true;

  bool pools() const { return kind == WindowKind::max || kind == WindowKind::average; }
  bool weighted() const { return kind <= WindowKind::transposed; }
  size_t rank() const { return kernel.size(); }
  // The size of a result's axis as a plan expression.
  std::string extent(size_t axis, const std::string& input, const std::string& window) const;
};

bool is_window(const Node& node);
Result<std::optional<Window>> find_window(const Graph& graph, const Node& node);

}  // namespace cutegen::recipes
