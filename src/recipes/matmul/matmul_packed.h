// SPDX-License-Identifier: Apache-2.0
// Writes the pointwise work after a product for kernels in which the lanes of a warp exchange
// 16-bit results in pairs (WgmmaGemm::each_packed).
//
// Contract: packs_pairs() returns whether each_packed() can do the work. The kernel must write a
// single output, of 16 bits, and each operand must be the same for all rows. packed_text() writes
// the call for vectors of 8 results. `coordinates` is text that declares the coordinates at which
// the call reads operands.
//
// Example: if (packs_pairs(finish)) text += packed_text(finish, layouts, coordinates);
#pragma once

#include <string>

#include "recipes/matmul/matmul_finish.h"

namespace cutegen::recipes {

bool packs_pairs(const MatmulFinish& finish);
std::string packed_text(MatmulFinish& finish, Layouts& layouts, const std::string& coordinates);

}  // namespace cutegen::recipes
