// SPDX-License-Identifier: Apache-2.0
// Ends: the last values that a product's own kernel can compute.
//
// Contract: ends_of() returns values that pointwise work and views compute from the product's
// result, element by element, and that every path from there to `wanted` passes. Then nothing else
// needs the product's result. The value furthest from the product comes first, its result last.
//
// Example: softmax(relu(product + bias)): relu, product + bias, product
#pragma once

#include "recipes/nest/fused.h"

namespace cutegen::recipes {

std::vector<std::string> ends_of(const Region& region, const std::vector<std::string>& wanted,
                                 const std::string& product);

}  // namespace cutegen::recipes
