// SPDX-License-Identifier: Apache-2.0
// The tensor maps of a product's operands: in the plan, and as constants of the kernel.
//
// Contract: a map's axes are (contiguous axis, other axis, batch). TMA needs strides that are
// multiples of 16 bytes. If an operand has other strides, the plan's symbol `tma` is 0, the maps
// describe one element, and the kernel copies without TMA.
//
// Example: add_maps(c, label, part); add_map_arguments(label, step); source += map_constants(c,
// params);
#pragma once

#include "recipes/nest/contraction.h"
#include "recipes/text/program_part.h"

namespace cutegen::recipes {

// A second factor of joined products: where the wanted columns begin among its rows, how many rows
// it has, and the name of its map. Equal factors share a map.
struct JoinedFactor {
  const Factor* factor;
  std::string start, columns, map;
};
// The joined factors of all parts, in order; each part has groups() of them.
std::vector<JoinedFactor> factors_of(const Contraction& c);
// Adds the symbol, the define USE_TMA and the maps map_a, map_b, ...
void add_maps(const Contraction& c, const Label& label, ProgramPart& part);
// Puts the maps in front of a step's arguments.
void add_map_arguments(const Contraction& c, const Label& label, Json& step);
// The maps as parameters of the kernel.
std::string map_parameters(const Contraction& c);
std::string map_constants(const Contraction& c, const Json& params);
// The coordinate of a CTA's batch along the map's third axis.
std::string map_batch(const Contraction& c, const Factor& factor);

inline bool along_depth(const Factor& factor) {
  return factor.depth.move == Move::next;
}

}  // namespace cutegen::recipes
