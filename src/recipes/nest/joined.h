// SPDX-License-Identifier: Apache-2.0
// Joined products: one kernel for several products of the same first factor.
//
// Contract: each output of the region becomes a part: one or more products of A, or runs of columns
// of one product, and pointwise work on them. A part has its own columns of B and its own output,
// so no kernel copies parts of a stored product. If the work reads several results at one place
// (gate and up), their columns are partners in one tile. No part computes columns of another one.
//
// Example: q, k, v = linear(x).chunk(3, -1): three parts with a third of the columns each
//          silu(x @ g) * (x @ u): one part, whose partner is the second product
#pragma once

#include "recipes/nest/contraction.h"

namespace cutegen::recipes {

Result<Contraction> join_products(const Task& task, const Region& region, const Masks& masks);

}  // namespace cutegen::recipes
