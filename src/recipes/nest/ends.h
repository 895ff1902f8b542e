// SPDX-License-Identifier: Apache-2.0
// Ends: values that the kernel of a product can store instead of the product's result.
//
// Contract: pointwise operators and views compute an end from the product's result. Every path from
// this result to the values in `wanted` leads through each end, so that no other node needs the
// result itself. ends_of() lists the end furthest from the product first, and the product's result
// last.
//
// Example: softmax(relu(product + bias)): relu, product + bias, product
#pragma once

#include "recipes/fuse/fused.h"

namespace cutegen::recipes {

std::vector<std::string> ends_of(const Region& region, const std::vector<std::string>& wanted,
                                 const std::string& product);

}  // namespace cutegen::recipes
