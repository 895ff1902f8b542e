// SPDX-License-Identifier: Apache-2.0
// Channel values: values in the epilogue of a convolution that depend only on the channel.
//
// Contract: channel_values() returns instructions whose float values a kernel can compute once per
// channel and tile instead of once per result. Operands of these instructions are vectors along the
// channels (axis 1), single elements and constants. The list omits a channel value that only other
// channel values need. If the list would have more than `kMostChannelValues` entries, it is empty.
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
