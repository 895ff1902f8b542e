// SPDX-License-Identifier: Apache-2.0
// Channel values: parts of a convolution's epilogue that differ only from channel to channel.
//
// Contract: channel_values() returns float values whose operands are vectors along the channels
// (axis 1), single elements and constants. If one such value is part of another, it returns only
// the outer one. A kernel computes them once per tile instead of once per result. The list is empty
// if there are more than `kMostChannelValues`.
//
// Example: (conv - mean) * (rsqrt(variance + eps) * weight) + bias: mean, rsqrt(...) * weight, bias
#pragma once

#include <vector>

#include "recipes/nest/fused.h"

namespace cutegen::recipes {

constexpr size_t kMostChannelValues = 8;

std::vector<int> channel_values(const Fused& fused);

}  // namespace cutegen::recipes
