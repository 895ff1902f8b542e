// SPDX-License-Identifier: Apache-2.0
// The tensor maps (TMA descriptors) of a product's operands: their entries in the plan, and the
// constants with which the kernel uses them.
//
// Contract: a map's axes are (contiguous axis, other axis, batch). TMA needs strides that are
// multiples of 16 bytes. If an operand has strides that TMA does not support, the plan's symbol
// (named expression) `tma` is 0, the maps describe a single element, and the kernel copies with
// ordinary loads.
//
// Example: add_maps(c, label, part); add_map_arguments(c, label, step);
//          source += map_constants(c, params);
#pragma once

#include "recipes/nest/contraction.h"
#include "recipes/text/program_part.h"

namespace cutegen::recipes {

// A second factor in a kernel of joined products (nest/joined.h). `start` is the first row that the
// product uses, `columns` the number of rows, and `map` the name of the tensor map, which equal
// factors share.
struct JoinedFactor {
  const Factor* factor;
  std::string start, columns, map;
};
// Returns the second factors of all joined products, in order: Contraction::groups() factors for
// each part.
std::vector<JoinedFactor> factors_of(const Contraction& c);
// Adds the symbol `tma`, the define USE_TMA and the tensor maps map_a, map_b, ... to the part.
void add_maps(const Contraction& c, const Label& label, ProgramPart& part);
// Inserts the tensor maps before the other arguments of a launch.
void add_map_arguments(const Contraction& c, const Label& label, Json& step);
std::string map_parameters(const Contraction& c);
std::string map_constants(const Contraction& c, const Json& params);
// Returns the coordinate of a CTA's batch along the map's third axis.
std::string map_batch(const Contraction& c, const Factor& factor);

inline bool along_depth(const Factor& factor) {
  return factor.depth.move == Move::next;
}

}  // namespace cutegen::recipes
