// SPDX-License-Identifier: Apache-2.0
// Cuts: decides where to divide a region (the part of a graph that should become one loop nest) if
// its reductions need different loop nests.
//
// Contract: find_cut() returns the name of a value that an earlier stage should store in scratch
// memory, or "" if that would not help. Two reductions are alike if they have the same input shape
// and axes. The region's last reduction and all reductions like it remain in the region. If a
// remaining reduction depends on one that does not remain, find_cut() chooses the remaining
// reduction's input, or a much smaller value from which pointwise operators compute this input.
// Otherwise, find_cut() chooses the result of a reduction that does not remain.
//
// Example: mean(norm(a - b, axis 1) + m) -> keep the value that mean reads, one number per row
#pragma once

#include "recipes/fuse/fused.h"
#include "recipes/graph/reductions.h"

namespace cutegen::recipes {

struct Reducing {
  const Node* node;
  Reduction r;
};

// Returns whether one loop nest can compute the reductions a and b. A scan can share a loop nest
// only with scans in the same direction.
bool alike(const Reduction& a, const Reduction& b);
std::vector<std::string> inputs_of(const Node& node);
std::string find_cut(const Region& region, const std::vector<Reducing>& found);

}  // namespace cutegen::recipes
