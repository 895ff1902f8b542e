// SPDX-License-Identifier: Apache-2.0
// Channel values: values in the epilogue of a convolution that depend only on the channel.
//
// Contract: channel_values() returns the instructions of float values that a kernel can compute
// once per channel and tile instead of once per result. The operands of a channel value are vectors
// along the channels (axis 1), single elements and constants. If a channel value is only an operand
// of another channel value, the list does not contain it. channel_values() returns an empty list
// instead of a list with more than `kMostChannelValues` entries.
//
// Example: (conv - mean) * (rsqrt(variance + eps) * weight) + bias
//   -> mean, rsqrt(variance + eps) * weight, bias
#pragma once

#include <vector>

#include "recipes/nest/fused.h"

namespace cutegen::recipes {

constexpr size_t kMostChannelValues = 8;

std::vector<int> channel_values(const Fused& fused);

}  // namespace cutegen::recipes
