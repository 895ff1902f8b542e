// SPDX-License-Identifier: Apache-2.0
// Cuts: decides where to divide a region (the part of a graph that should become one loop nest) if
// its reductions need different loop nests.
//
// Contract: find_cut() returns the name of a value that an earlier stage should store in scratch,
// or "" if that does not help. Two reductions are alike if they have the same input shape and axes.
// The last reduction and those like it remain in the region. If one of these depends on a reduction
// that is not alike, the value is its input, or a much smaller value from which pointwise operators
// compute the input. Otherwise the value is the result of a reduction that is not alike.
//
// Example: mean(norm(a - b, axis 1) + m) -> keep the value that mean reads, one number per row
#pragma once

#include "recipes/graph/reductions.h"
#include "recipes/nest/fused.h"

namespace cutegen::recipes {

struct Reducing {
  const Node* node;
  Reduction r;
};

// Whether one loop nest can compute both reductions. A scan can share a loop nest only with scans
// in the same direction.
bool alike(const Reduction& a, const Reduction& b);
std::vector<std::string> inputs_of(const Node& node);
std::string find_cut(const Region& region, const std::vector<Reducing>& found);

}  // namespace cutegen::recipes
