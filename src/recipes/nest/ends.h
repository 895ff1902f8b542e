// SPDX-License-Identifier: Apache-2.0
// Ends: values that the kernel of a product can store instead of the product's result.
//
// Contract: ends_of() returns values that follow from the product's result by pointwise work and
// views, and through which every path from the result to `wanted` leads, so that nothing else needs
// the result. The value furthest from the product comes first, the product's result last.
//
// Example: softmax(relu(product + bias)): relu, product + bias, product
#pragma once

#include "recipes/nest/fused.h"

namespace cutegen::recipes {

std::vector<std::string> ends_of(const Region& region, const std::vector<std::string>& wanted,
                                 const std::string& product);

}  // namespace cutegen::recipes
