// SPDX-License-Identifier: Apache-2.0
// Joined products: one kernel for several products with the same first factor A.
//
// Contract: join_products() returns one Contraction for the whole region (a part of a graph). Each
// output of the region becomes a part of this Contraction: one or more products of A, or ranges of
// columns of one product, plus the pointwise work on them. A part has its own columns of B and its
// own output, so no kernel has to copy parts of a stored product. If the pointwise work of a part
// reads several products at the same position (gate and up), these products are partners, and a
// tile has columns of all partners. No column belongs to two parts.
//
// Example: q, k, v = linear(x).chunk(3, -1): three parts with a third of the columns each
//          silu(x @ g) * (x @ u): one part, whose partner is the second product
#pragma once

#include "recipes/nest/contraction.h"

namespace cutegen::recipes {

Result<Contraction> join_products(const Task& task, const Region& region, const Masks& masks);

}  // namespace cutegen::recipes
