// SPDX-License-Identifier: Apache-2.0
// Chooses the convolutions that matrix products compute (spatial/conv_products.h).
//
// Contract: `stages` are the stages of the task on Hopper if kernels for windows compute all
// convolutions. product_convolutions() returns the names of the convolutions' results for which a
// product has the shorter estimated time. A product is at least as accurate as the other kernels.
//
// Example: make_stages(task, {.hopper = true, .products = product_convolutions(task, *stages)});
#pragma once

#include <set>
#include <string>

#include "recipes/nest/stages.h"

namespace cutegen::recipes {

std::set<std::string> product_convolutions(const Task& task, Stages stages);
// Returns whether `products`, the stages with matrix products, have at most two more stages per
// convolution than `stages`: a copy of the blocks and a copy of the filter.
bool adds_only_copies(const Stages& products, const Stages& stages, size_t convolutions);

}  // namespace cutegen::recipes
