// SPDX-License-Identifier: Apache-2.0
// Channel values: what the work behind a convolution needs of each channel, and of nothing else.
//
// Contract: channel_values() returns the largest float values that depend on operands along the
// channels (axis 1), and besides on single elements and constants. A kernel computes them once for
// many places. Empty if there are more than `kMostChannelValues`.
//
// Example: (conv - mean) * (rsqrt(variance + eps) * weight) + bias: mean, rsqrt(...) * weight, bias
#pragma once

#include <vector>

#include "recipes/nest/fused.h"

namespace cutegen::recipes {

constexpr size_t kMostChannelValues = 8;

std::vector<int> channel_values(const Fused& fused);

}  // namespace cutegen::recipes
