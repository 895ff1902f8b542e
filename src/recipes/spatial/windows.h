// SPDX-License-Identifier: Apache-2.0
// Windows: a common form of convolutions and pooling, operators that compute each result from a
// window of the input.
//
// Contract: find_window() reads aten.convolution, max pooling and average pooling over one to three
// axes after the batch and the channels, and also resampling (resamples.h). It returns nullopt for
// operators without windows, and an `unsupported` error for a use of an operator that find_window()
// does not cover. A Window has no bias, because decompose() turns the bias into an addition.
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
  std::string op, input, weight;  // `input` and `weight` name values; pooling has no weight
  Shape kernel, stride, padding, dilation, output_padding;
  Shape behind = {};  // by axis: end padding minus start padding; empty: all 0
  Resampling resampling = {};
  int64_t groups = 1, divisor = 0;  // divisor 0: the number of elements in the window
  bool ceil = false, include_pad = true;

  bool pools() const { return kind == WindowKind::max || kind == WindowKind::average; }
  bool weighted() const { return kind <= WindowKind::transposed; }
  size_t rank() const { return kernel.size(); }
  // Returns the size of a result's axis as an expression of the launch plan.
  std::string extent(size_t axis, const std::string& input, const std::string& window) const;
};

bool is_window(const Node& node);
Result<std::optional<Window>> find_window(const Graph& graph, const Node& node);

}  // namespace cutegen::recipes
