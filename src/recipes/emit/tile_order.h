// SPDX-License-Identifier: Apache-2.0
// Tile order: the order in which threads of an elementwise kernel take vectors, if the outputs are
// contiguous along the innermost loop, but an operand is contiguous along another loop, as in a
// transposition.
//
// Contract: turned_loop() returns the loop along which the operand is contiguous (the turned loop),
// or -1 if threads should take neighbouring vectors along the innermost loop. A tile has
// kTileVectors vectors (or register blocks): `inner` of them along the innermost loop, for each of
// several iterations of the turned loop. A CTA then uses most bytes of each sector that it reads or
// writes. inner_vectors() returns `inner` as the text "32 / width", because a tile has 32 elements
// along the innermost loop. tile_order_text() declares place(), inside() and `vectors` in the
// kernel. tile_extents() returns the numbers of tiles along the loops as expressions of the launch
// plan, outermost loop first; `sizes` counts vectors.
//
// Example: out[b, i, j] = x[b, j, i] -> the loop of i is turned
#pragma once

#include <string>
#include <vector>

#include "recipes/nest/nest.h"

namespace cutegen::recipes {

constexpr int64_t kTileVectors = 256;

int turned_loop(const Fused& fused, const Nest& nest);
// `inverses` names the kernel's arguments with which place() divides by multiplication.
std::string tile_order_text(const Nest& nest, int turned, const std::string& inner,
                            const std::vector<std::string>& inverses);
std::string inner_vectors(const std::string& width);
std::vector<std::string> tile_extents(const std::vector<std::string>& sizes, int turned,
                                      const std::string& inner);

}  // namespace cutegen::recipes
