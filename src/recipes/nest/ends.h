// SPDX-License-Identifier: Apache-2.0
// Ends: values that the kernel of a product can store instead of the product's result.
//
// Contract: pointwise operators and views compute an end from the product's result. Every path from
// the product's result to the values in `wanted` leads through each end, so that no other node
// needs the product's result. In the list that ends_of() returns, the end furthest from the product
// is first, and the product's result is last.
//
// Example: softmax(relu(product + bias)): relu, product + bias, product
#pragma once

#include "recipes/nest/fused.h"

namespace cutegen::recipes {

std::vector<std::string> ends_of(const Region& region, const std::vector<std::string>& wanted,
                                 const std::string& product);

}  // namespace cutegen::recipes
