// SPDX-License-Identifier: Apache-2.0
// Channel values: values in the epilogue of a convolution that depend only on the channel.
//
// Contract: channel_values() returns the instructions of float values that a kernel can compute
// once per channel and tile instead of once per result. Their operands are vectors along the
// channels (axis 1), single elements and constants. A channel value that is only an operand of
// another one is not in the list. With more than `kMostChannelValues` entries, the list is empty
// instead.
//
// Example: (conv - mean) * (rsqrt(variance + eps) * weight) + bias
//   -> mean, rsqrt(variance + eps) * weight, bias
#pragma once

#include <vector>

#include "recipes/fuse/fused.h"

namespace cutegen::recipes {

constexpr size_t kMostChannelValues = 8;

std::vector<int> channel_values(const Fused& fused);

}  // namespace cutegen::recipes
